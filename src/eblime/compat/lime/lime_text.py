"""Explanations of texts, with lime's names, settings and draws."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eblime._checks import check_count
from eblime._types import FloatArray
from eblime.compat.lime._explain import LimeExplainer
from eblime.compat.lime.explanation import DomainMapper, Explanation, Weighted
from eblime.domains.text import read_text
from eblime.protocols import Method

Split = str | Callable[[str], Iterable[str]]


class Pieces:
    """A text as pieces, `as_list`, some of which are features: `inverse_vocab` has their words.

    `positions` are the pieces that belong to each feature: a list with `bow`, else one number.
    """

    def __init__(self, raw: str, tokens: Callable[[str], object], bow: bool, mask: str) -> None:
        self.raw, self.bow, self.mask_string = raw, bow, mask
        self.scene = read_text(raw, tokens=tokens, bag=bow, hide="" if bow else mask, most=None)
        self.as_list = list(self.scene.pieces)
        self.as_np = np.array(self.as_list)
        self.string_start = np.cumsum([0, *map(len, self.as_list)])[:-1]
        owners = np.asarray(self.scene.owners)
        places = [np.flatnonzero(owners == j) for j in range(self.num_words())]
        self.inverse_vocab: list[str] = [self.as_list[found[0]] for found in places]
        self.positions: Any = [found.tolist() for found in places] if bow else np.ravel(places)

    def raw_string(self) -> str:
        """The text."""
        return self.raw

    def num_words(self) -> int:
        """Number of features."""
        return self.scene.n_features

    def word(self, id_: int) -> str:
        """The word of a feature."""
        return self.inverse_vocab[id_]

    def string_position(self, id_: int) -> Any:
        """Where the occurrences of a feature start in the text."""
        return self.string_start[np.atleast_1d(self.positions[id_])]

    def inverse_removing(self, words_to_remove: Iterable[int]) -> str:
        """The text without some features; without `bow` the mask string takes their place."""
        mask = np.ones((1, self.num_words()))
        mask[0, list(words_to_remove)] = 0
        return self.scene.inputs(mask)[0]


class IndexedString(Pieces):
    """A text cut into words, by a regular expression of what is between them or by a function."""

    def __init__(
        self,
        raw_string: str,
        split_expression: Split = r"\W+",
        bow: bool = True,
        mask_string: str | None = None,
    ) -> None:
        def tokens(text: str) -> list[object]:
            if callable(split_expression):
                return [word for word in split_expression(text) if word]
            gaps = [match.span() for match in re.finditer(split_expression, text)]
            ends = [0, *(end for gap in gaps for end in gap), len(text)]
            return [(a, b) for a, b in zip(ends[::2], ends[1::2], strict=True) if a < b]

        mask = "UNKWORDZ" if mask_string is None else mask_string
        Pieces.__init__(self, raw_string, tokens, bow, mask)


class IndexedCharacters(Pieces):
    """A text cut into characters; parameters as in `IndexedString`, the default mask is chr(0)."""

    def __init__(self, raw_string: str, bow: bool = True, mask_string: str | None = None) -> None:
        Pieces.__init__(self, raw_string, list, bow, chr(0) if mask_string is None else mask_string)


@dataclass(eq=False)
class TextDomainMapper(DomainMapper):
    """The words of a text's features."""

    indexed_string: Pieces

    def map_exp_ids(  # type: ignore[override]
        self, exp: Weighted, positions: bool = False
    ) -> list[tuple[str, float]]:
        """(word, weight) pairs; with `positions`, words such as "bad_3-12"."""
        text = self.indexed_string
        if not positions:
            return [(text.word(j), weight) for j, weight in exp]
        places = ["-".join(map(str, text.string_position(j))) for j, _ in exp]
        return [(f"{text.word(j)}_{at}", w) for at, (j, w) in zip(places, exp, strict=True)]


@dataclass(eq=False)
class LimeTextExplainer(LimeExplainer):
    """Explains predictions for texts; parameters are those of lime.

    Besides them, `method` is how the linear model is fitted: "eblime" (default) gives posteriors,
    "lime" gives lime's numbers; any method of this library.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.compat.lime import LimeTextExplainer
    >>> model = lambda texts: np.array([["bad" in t, "bad" not in t] for t in texts], dtype=float)
    >>> explainer = LimeTextExplainer(random_state=0)
    >>> exp = explainer.explain_instance("a bad film", model, num_samples=200)
    >>> exp.as_list()[0][0]
    'bad'
    """

    kernel_width: float = 25
    kernel: Callable[..., FloatArray] | None = None
    verbose: bool = False
    class_names: Sequence[object] | None = None
    feature_selection: str = "auto"
    split_expression: Split = r"\W+"
    bow: bool = True
    mask_string: str | None = None
    random_state: Any = None
    char_level: bool = False
    _: KW_ONLY
    method: str | Method = "eblime"

    vocabulary = None

    def explain_instance(
        self,
        text_instance: str,
        classifier_fn: Callable[[list[str]], ArrayLike],
        labels: Sequence[int] = (1,),
        top_labels: int | None = None,
        num_features: int = 10,
        num_samples: int = 5000,
        distance_metric: str | Callable[..., float] = "cosine",
        model_regressor: object = None,
    ) -> Explanation:
        """Explain the prediction for a text.

        `classifier_fn` returns class probabilities, (n, classes), of a list of texts. A text is
        asked about with some of its words hidden: first how many, then which ones, are drawn.
        """
        check_count("num_samples", num_samples)
        bow, mask = self.bow, self.mask_string
        text: Pieces
        if self.char_level:
            text = IndexedCharacters(text_instance, bow, mask)
        else:
            text = IndexedString(text_instance, self.split_expression, bow, mask)
        masks = np.ones((num_samples, text.num_words()))
        sizes = self.random_state.randint(1, masks.shape[1] + 1, num_samples - 1)
        for row, size in zip(masks[1:], sizes, strict=True):
            row[self.random_state.permutation(len(row))[:size]] = 0
        result = Explanation(TextDomainMapper(text), random_state=self.random_state)
        ask = lambda: classifier_fn(text.scene.inputs(masks))  # noqa: E731
        how = labels, top_labels, num_features, distance_metric, model_regressor
        self._fill(result, text.scene, masks, ask, *how, unit=100.0)
        return result

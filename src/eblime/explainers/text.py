"""`TextExplainer`: texts, by words, sentences or characters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eblime._checks import check_text
from eblime.domains.masked import MaskedSubject
from eblime.domains.tabular.row import as_mapping
from eblime.domains.text import Tokens, as_finder, read_text
from eblime.explainers.base import BaseExplainer


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TextExplainer(BaseExplainer):
    """Explains a model's prediction for a text, by its words, sentences or characters.

    Parameters
    ----------
    model
        Anything that scores a list of texts: a scikit-learn pipeline, a Hugging Face pipeline, a
        function.
    tokens
        What a feature is: "word", "sentence", "char", a regular expression that matches tokens, or
        a function from the text to tokens, as strings in their order or as pairs (start, end). With
        "word" or "char" and more than 500 of them, sentences or chunks of about 20 words are
        explained instead, with a warning.
    bag
        Whether all occurrences of a token are one feature, as in lime. Each sentence is one anyway.
    hide
        What replaces a hidden token, such as "[MASK]"; an empty string removes it.
    n_masks, design, kernel, method, progress, labels, calls, cache
        See `eblime.explainers.base.BaseExplainer`.

    Notes
    -----
    lime's masks and weights for texts are `design="sizes"` and `kernel="cosine"`; they estimate
    another quantity.

    Examples
    --------
    >>> import eblime
    >>> shouts = lambda texts: [text.count("!") / 3 + ("good" in text) for text in texts]
    >>> e = eblime.TextExplainer(shouts).explain("a good, good film")
    >>> print(e.features[1], e.posterior.mean[1].round(2))
    word 'good' x2 1.0
    """

    tokens: Tokens = "word"
    bag: bool = True
    hide: str = ""

    domain = "text"
    about = ("tokens", "bag", "hide")

    def __post_init__(self) -> None:
        check_text("hide", self.hide)
        as_finder(self.tokens)
        self._make_loop()

    def input_of(self, entry: object) -> Any:
        """The text itself, or the column "text" of a row."""
        row = as_mapping(entry)
        if not isinstance(row, Mapping):  # a text; all else is refused when it is read
            return entry
        if "text" not in row:
            known = ", ".join(map(str, row))
            raise ValueError(f'A row must have a column "text"; its columns are {known}.')
        return row["text"]

    def subject(self, x: Any) -> MaskedSubject:
        """Read a text and cut it into features.

        Parameters
        ----------
        x
            A string.
        """
        return MaskedSubject(scene=read_text(x, **self.own))

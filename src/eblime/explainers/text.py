"""`TextExplainer`: texts, by words, sentences or characters."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from eblime._progress import Progress
from eblime._repr import settings_repr
from eblime.domains.text.scene import Tokens, read_text
from eblime.engine.neighbourhood import MaskedSubject
from eblime.engine.targets import Labels
from eblime.explainers.base import BaseExplainer
from eblime.models.adapt import as_model, output_names
from eblime.protocols import Kernel, Method

__all__ = ["TextExplainer"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TextExplainer(BaseExplainer):
    """Explains what a model says of a text, by its words, sentences or characters.

    Parameters
    ----------
    model
        Anything that scores a list of texts: a scikit-learn pipeline, a Hugging Face pipeline, a
        function.
    tokens
        "word", "sentence", "char", a regular expression that matches tokens, or a function from
        the text to tokens, as strings in their order or as (start, end).
    bag
        All occurrences of a token are one feature (as in lime); otherwise each is one.
    hide
        What stands for a hidden token, such as "[MASK]"; nothing by default.
    most
        A text of more features than that is cut into sentences instead, or into chunks of about 20
        tokens where it has no usable sentences, with a warning.
    n_masks, design, kernel, method, batch_size, progress, labels
        As for `ImageExplainer`; the design and the kernel are lime's for texts.

    Examples
    --------
    >>> shouts = lambda texts: [text.count("!") / 3 + ("good" in text) for text in texts]
    >>> e = TextExplainer(shouts).explain("a good, good film")
    >>> print(e.features[1], e.posterior.mean[1].round(2))
    word 'good' x2 1.0
    """

    model: Any
    tokens: Tokens = "word"
    bag: bool = True
    hide: str = ""
    most: int | None = 500
    n_masks: int = 1000
    design: Any = "sizes"
    kernel: str | Kernel | None = "cosine"
    method: str | Method = "eblime"
    batch_size: int | None = None
    progress: Progress = None
    labels: Labels | None = None

    about = ("tokens", "bag", "hide")

    def __post_init__(self) -> None:
        """Refuse settings that cannot work, before any text is seen."""
        if not isinstance(self.hide, str):
            raise TypeError(f"`hide` must be a string; got {self.hide!r}.")
        if not (isinstance(self.tokens, (str, re.Pattern)) or callable(self.tokens)):
            raise TypeError(
                f"`tokens` must be a word, a regular expression or a function; got {self.tokens!r}."
            )
        if self.labels is None:
            object.__setattr__(self, "labels", output_names(self.model))
        self.check()
        object.__setattr__(self, "model", as_model(self.model))

    def __repr__(self) -> str:
        """The model and the settings that differ from the defaults."""
        return settings_repr(self)

    @property
    def domain(self) -> str:
        """The name of the domain: "text"."""
        return "text"

    def input_of(self, entry: Any) -> Any:
        """The text itself, or the column "text" of a row."""
        if isinstance(entry, str):
            return entry
        if "text" not in entry:
            known = ", ".join(map(str, entry.keys()))
            raise ValueError(f'A row must have a column "text"; it has {known}.')
        return entry["text"]

    def subject(self, x: Any) -> MaskedSubject:
        """Read a text and split it into features."""
        scene = read_text(x, tokens=self.tokens, bag=self.bag, hide=self.hide, most=self.most)
        return MaskedSubject(scene=scene)

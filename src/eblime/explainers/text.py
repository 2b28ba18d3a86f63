@dataclass(frozen=True, slots=True, eq=False)
class TextExplainer:
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
        A text of more features than that is cut into sentences instead, with a warning.
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
    design: str | Design = "sizes"
    kernel: str | Kernel | None = "cosine"
    method: str | Method = "eblime"
    batch_size: int | None = None
    progress: Progress = False
    labels: Labels | None = None
    _about: ClassVar = ("tokens", "bag", "hide")

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
        inquiry_of(self).check()
        object.__setattr__(self, "model", as_model(self.model))

    def explain(self, text: str, target: Target = None, rng: RNGLike = 0) -> Explanation:
        """Explain one output of the model for a text; `target` and `rng` as for images."""
        targets = 1 if target is None else [target]
        return next(iter(self._inquire(text, targets, rng).values()))

    def explain_targets(
        self, text: str, targets: int | Sequence[int | str] = 3, rng: RNGLike = 0
    ) -> dict[int, Explanation]:
        """Explain several outputs from one set of model calls: the k highest, or those listed."""
        return self._inquire(text, targets, rng)

    def _inquire(self, text: str, targets: Any, rng: RNGLike) -> dict[int, Explanation]:
        return self.inquiry.explain(self.scene(text), targets, rng)

    @property
    def inquiry(self) -> Inquiry:
        """What this explainer shares with the others."""
        return inquiry_of(self)

    def scene(self, text: str) -> TextScene:
        """A text, read and cut."""
        return read_text(text, tokens=self.tokens, bag=self.bag, hide=self.hide, most=self.most)

"""Explanations of texts, with lime's names, settings and draws."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from eblime._types import FloatArray
from eblime.compat.lime._distances import (
    describe_kernel,
    distances_to_first,
    exponential_kernel,
)
from eblime.compat.lime._indexed import IndexedCharacters, IndexedString, Pieces
from eblime.compat.lime._random import as_random_state
from eblime.compat.lime._record import Sample, top_classes
from eblime.compat.lime._result import fill
from eblime.compat.lime.explanation import DomainMapper, Explanation
from eblime.compat.lime.lime_base import Asked, LimeBase, check_settings, fit_asked
from eblime.protocols import Method

__all__ = ["IndexedCharacters", "IndexedString", "LimeTextExplainer", "TextDomainMapper"]


class TextDomainMapper(DomainMapper):
    """The words of a text's features."""

    page_options = ("text", "opacity")

    def __init__(self, indexed_string: Pieces) -> None:
        self.indexed_string = indexed_string

    def map_exp_ids(self, exp: Any, positions: bool = False, **kwargs: Any) -> list[Any]:
        """(word, weight) pairs; with `positions`, words such as "bad_3-12"."""
        if kwargs:
            raise TypeError(f"`{next(iter(kwargs))}` is not an option for a text.")
        text = self.indexed_string

        def name(j: int) -> str:
            places = "-".join(str(place) for place in text.string_position(j))
            return f"{text.word(j)}_{places}" if positions else text.word(j)

        return [(name(j), weight) for j, weight in exp]


class LimeTextExplainer:
    """Explains predictions for texts; the parameters are those of lime.

    Parameters
    ----------
    kernel_width, kernel
        Width of the kernel, and the kernel: a function (distances, kernel_width) -> weights.
    verbose
        Whether to print the intercept and both predictions of each fit.
    class_names
        Names of the classes.
    feature_selection
        "auto", "forward_selection", "highest_weights", "lasso_path" or "none".
    split_expression
        A regular expression of what is between words, or a function from the text to its words.
    bow
        Whether all occurrences of a word are one feature, and hidden words are removed.
    mask_string
        Without `bow`: takes the place of a hidden word.
    random_state
        Seed or `RandomState`; None is NumPy's global one.
    char_level
        Whether the features are characters.
    method
        "eblime" (default) gives posteriors, "lime" gives lime's numbers; any method of this
        library.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.compat.lime import LimeTextExplainer
    >>> def model(texts):
    ...     bad = np.array([0.8 * ("bad" in text) + 0.1 for text in texts])
    ...     return np.stack([1 - bad, bad], axis=1)
    >>> explainer = LimeTextExplainer(random_state=0)
    >>> exp = explainer.explain_instance("a bad film", model, num_samples=200)
    >>> exp.as_list()[0][0]
    'bad'
    """

    def __init__(
        self,
        kernel_width: float = 25,
        kernel: Callable[..., Any] | None = None,
        verbose: bool = False,
        class_names: Sequence[Any] | None = None,
        feature_selection: str = "auto",
        split_expression: str | Callable[[str], Iterable[str]] = r"\W+",
        bow: bool = True,
        mask_string: str | None = None,
        random_state: Any = None,
        char_level: bool = False,
        *,
        method: str | Method = "eblime",
    ) -> None:
        check_settings(1, 1, feature_selection)
        self.random_state = as_random_state(random_state)
        kernel_fn = partial(kernel or exponential_kernel, kernel_width=kernel_width)
        self.base = LimeBase(kernel_fn, verbose, self.random_state, method=method)
        self.class_names = class_names
        self.vocabulary = None
        self.feature_selection = feature_selection
        self.bow = bow
        self.mask_string = mask_string
        self.split_expression = split_expression
        self.char_level = char_level

    @property
    def method(self) -> str | Method:
        """How the linear model is fitted."""
        return self.base.method

    def explain_instance(
        self,
        text_instance: str,
        classifier_fn: Callable[[list[str]], Any],
        labels: Sequence[int] = (1,),
        top_labels: int | None = None,
        num_features: int = 10,
        num_samples: int = 5000,
        distance_metric: str | Callable[..., Any] = "cosine",
        model_regressor: Any = None,
    ) -> Explanation:
        """Explain the prediction for a text.

        Parameters
        ----------
        text_instance
            The text.
        classifier_fn
            From a list of texts to class probabilities, (n, classes).
        labels
            Columns of the model's output to explain.
        top_labels
            Explain that many of the most likely classes instead.
        num_features
            How many words to list, at most.
        num_samples
            How many perturbed texts to ask about, with the text itself.
        distance_metric
            How far a perturbed text is from the text, times 100.
        model_regressor
            A linear regressor of scikit-learn to use instead of `method`.
        """
        check_settings(num_features, num_samples, self.feature_selection)
        text = self._indexed(text_instance)
        scene = text.scene()
        masks, predicted, distances = self.__data_labels_distances(
            text, classifier_fn, num_samples, distance_metric=distance_metric
        )
        scores = _class_scores(predicted, len(masks))
        if self.class_names is None:
            self.class_names = [str(j) for j in range(scores.shape[1])]
        mapper = TextDomainMapper(text)
        result = Explanation(mapper, class_names=self.class_names, random_state=self.random_state)
        chosen = result.choose_labels(scores, labels, top_labels)
        asked = Asked(
            data=masks, scores=scores, distances=distances, labels=chosen, features=scene.features
        )
        answers, fits = fit_asked(
            self.base, asked, num_features, self.feature_selection, model_regressor
        )
        sample = Sample.of(
            answers[0],
            scene,
            {
                "kernel": describe_kernel(self.base, distance_metric, unit=100.0),
                "top_classes": top_classes(scores[0], self.class_names),
            },
        )
        fits_by_label = dict(zip(chosen, fits, strict=True))
        fill(result, fits_by_label, sample, scores, self.class_names)
        return result

    def __data_labels_distances(
        self,
        indexed_string: Pieces,
        classifier_fn: Callable[[list[str]], Any],
        num_samples: int,
        distance_metric: str | Callable[..., Any] = "cosine",
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Masks of words, the model's answers and the distances; subclasses may replace it.

        It has lime's name because programs call `_LimeTextExplainer__data_labels_distances`.
        """
        scene = indexed_string.scene()
        masks = self._masks(num_samples, scene.n_features)
        distances = 100 * distances_to_first(masks, distance_metric)
        return masks, _class_scores(classifier_fn(scene.inputs(masks)), num_samples), distances

    def _indexed(self, text: str) -> Pieces:
        """The text cut into words or characters."""
        if not isinstance(text, str):
            raise TypeError(f"`text_instance` must be a string; got {type(text).__name__}.")
        if self.char_level:
            return IndexedCharacters(text, bow=self.bow, mask_string=self.mask_string)
        return IndexedString(
            text,
            split_expression=self.split_expression,
            bow=self.bow,
            mask_string=self.mask_string,
        )

    def _masks(self, n: int, p: int) -> FloatArray:
        """Which words each perturbed text has: how many are hidden, then which ones."""
        masks = np.ones((n, p))
        sizes = self.random_state.randint(1, p + 1, n - 1)
        for row, size in zip(masks[1:], sizes, strict=True):
            row[self.random_state.permutation(p)[:size]] = 0
        return masks


def _class_scores(predicted: Any, n: int) -> FloatArray:
    """The model's answers, (n, classes)."""
    dense = predicted.toarray() if hasattr(predicted, "toarray") else predicted
    scores = np.asarray(dense, dtype=np.float64)
    if scores.ndim != 2 or len(scores) != n:
        raise ValueError(
            f"`classifier_fn` must return probabilities of shape ({n}, classes); "
            f"got shape {scores.shape}."
        )
    return scores

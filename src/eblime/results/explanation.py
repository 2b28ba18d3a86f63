"""The result of an explanation: posterior, answers, scene and provenance."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eblime import registry
from eblime._checks import as_generator, check_choice, check_count
from eblime._progress import Progress
from eblime._repr import describe
from eblime._text import paragraph, printable
from eblime._types import BoolArray, Columns, FloatArray, IntArray, RNGLike
from eblime.answers import Answers
from eblime.core.indices import banzhaf, shapley
from eblime.methods.quadrature import INDICES, Quadrature, fit_indices
from eblime.methods.regression import as_method, fit_each
from eblime.posterior import Posterior
from eblime.protocols import Kernel, Method, Scene
from eblime.results import export, indices
from eblime.results.estimand import describe_estimand
from eblime.results.notes import footer
from eblime.results.prediction import Prediction, asked, predict
from eblime.results.reasons import Reason, find_reasons

if TYPE_CHECKING:
    import pandas as pd
    import shap
    import shapiq
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


_PLOTS_OF = {  # some domains alone
    "map": ("image",),
    "text": ("text", "prompt"),
    "signal": ("signal",),
    "slices": ("volume",),
    "projections": ("volume",),
}
_MOST_FEATURES = 64  # of interactions: the covariance of all pairs is kept


@dataclass(frozen=True, slots=True, kw_only=True)
class NotRefitted:
    """The method of an explanation that cannot be fitted to its answers again.

    It is not installed, or it is a system that is not a regression of its answers.
    """

    name: str

    def fit(self, rng: np.random.Generator, answers: Answers) -> Posterior:
        """Refused."""
        raise ValueError(
            f"{self.name} cannot fit answers again: it is not installed here, or no regression. "
            "Choose a method, such as refit('lime')."
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Explanation:
    """Why the model gave this score to this input, and how certain that is.

    Examples
    --------
    >>> import eblime
    >>> score = lambda texts: [0.9 * ("good" in t) / (1 + ("slow" in t)) for t in texts]
    >>> e = eblime.TextExplainer(score).explain("good but slow")
    >>> e.prediction
    0.45
    >>> e.features
    ["word 'good'", "word 'but'", "word 'slow'"]
    >>> e.posterior.mean.round(2) + 0.0
    array([ 0.64,  0.  , -0.26])
    """

    posterior: Posterior
    answers: Answers  # what was asked and answered
    method: Method  # how the posterior was fitted to the answers
    scene: Scene
    target: int  # column of the model's output
    label: str  # its name
    prediction: float  # the model's score for the input itself
    exhaustive: bool  # all 2^p masks were used: the importances are exact
    provenance: Mapping[str, Any]  # settings, seed, versions, model calls, seconds
    generator: Mapping[str, Any] | None = None  # state of the generator before the fit
    source: Any = None  # model and input, to ask more; None after saving and loading

    @property
    def masks(self) -> FloatArray:
        """The perturbed inputs as the regression sees them, (N, p)."""
        return self.answers.masks

    @property
    def scores(self) -> FloatArray:
        """What the model answered, (N,)."""
        return self.answers.scores

    @property
    def weights(self) -> FloatArray:
        """How much each answer counts, (N,)."""
        return self.answers.weights

    @property
    def features(self) -> Sequence[str]:
        """Names of the features."""
        return self.scene.features

    @property
    def segments(self) -> IntArray:
        """The feature of each pixel, voxel or sample (C, T), numbered 0 .. p - 1."""
        labels = getattr(self.scene, "labels", None)  # signals by frequency bands have none
        if not isinstance(labels, np.ndarray):
            raise AttributeError(
                "`segments` needs an explanation of an image or a volume, or of a signal by parts "
                f"of time or channels; the domain of this one is {self.scene.domain!r}."
            )
        found = labels.view()
        found.flags.writeable = False
        return found

    @property
    def headline(self) -> str:
        """What was explained: the target and its prediction."""
        shown = f"{printable(self.label)}: predicted {self.prediction:.4g}"
        if self.unit:
            shown += f" ({self.unit}; probability {1 / (1 + np.exp(-self.prediction)):.4g})"
        return shown

    @property
    def unit(self) -> str:
        """The unit of the scores in words: "log-odds" with `link="logit"`, otherwise ""."""
        read = self.provenance.get("input") or {}
        return "log-odds" if read.get("link") == "logit" else ""

    @property
    def grounded(self) -> float | None:
        """How much higher the score of a prompt is with all sources than with none of them.

        None for other inputs, and where the score with none is not known.
        """
        none = ~self.masks.any(axis=1)
        if self.scene.domain != "prompt" or not none.any():
            return None
        return self.prediction - float(self.scores[none].mean())

    @property
    def estimand(self) -> str:
        """What the importances estimate: an average over which masks, with which weights.

        The same sentence for the same quantity, whatever the method; see "What is estimated".
        """
        return describe_estimand(self)

    def heatmap(self, of: str = "mean") -> FloatArray:
        """The mean, or the "sd", of each pixel's superpixel, (H, W); for images only."""
        check_choice("of", of, ("mean", "sd"))
        values = self.posterior.mean if of == "mean" else self.posterior.sd
        return np.asarray(values[self.segments])

    def mask(self, top: int = 5, positive_only: bool = True) -> BoolArray:
        """The pixels, voxels or samples of the most important features.

        Parameters
        ----------
        top
            How many superpixels to take; fewer if there are not as many.
        positive_only
            Take only superpixels with a positive mean; otherwise the largest by absolute value.

        Examples
        --------
        >>> import numpy as np
        >>> import eblime
        >>> image = np.zeros((2, 4))
        >>> image[:, 2:] = 1.0
        >>> halves = ("grid", {"rows": 1, "columns": 2})
        >>> bright = lambda batch: batch.mean(axis=(1, 2))
        >>> e = eblime.ImageExplainer(bright, segmentation=halves, hide=0).explain(image)
        >>> e.mask(top=1)
        array([[False, False,  True,  True],
               [False, False,  True,  True]])
        """
        check_count("top", top)
        segments, mean = self.segments, self.posterior.mean
        chosen = [j for j in self.posterior.order() if not positive_only or mean[j] > 0]
        return np.isin(segments, chosen[:top])

    def as_list(self, top: int | None = None, prob: float | None = None) -> list[tuple[Any, ...]]:
        """Features and their means, from the most important on.

        Parameters
        ----------
        top
            How many features to list; None lists all.
        prob
            Adds both ends of the credible interval with this probability, so that an entry is
            (feature, mean, low, high). None lists (feature, mean).

        Examples
        --------
        >>> import eblime
        >>> score = lambda texts: [0.9 * ("good" in t) - 0.4 * ("slow" in t) for t in texts]
        >>> e = eblime.TextExplainer(score).explain("good but slow")
        >>> [(name, round(mean, 2)) for name, mean in e.as_list(top=2)]
        [("word 'good'", 0.9), ("word 'slow'", -0.4)]
        """
        if top is not None:
            check_count("top", top)
        order, mean, features = self.posterior.order()[:top], self.posterior.mean, self.features
        rows = [(str(features[j]), float(mean[j])) for j in order]
        if prob is None:
            return list(rows)
        ends = self.posterior.select(order).interval(prob).tolist()
        return [(*row, low, high) for row, (low, high) in zip(rows, ends, strict=True)]

    def details(self) -> Columns:
        """What is known of each feature besides its name, one entry per feature.

        Such as the place and size of a superpixel, or the column and value of a row.
        """
        known = getattr(self.scene, "details", None)
        return {} if known is None else {name: list(values) for name, values in known().items()}

    def refit(self, method: str | Method, *, rng: RNGLike = 0) -> Explanation:
        """The same answers through another method, with no further model call.

        Parameters
        ----------
        method
            A name, such as "lime", or an object with settings, as for an explainer.
        rng
            Seed or generator, for the methods that draw.

        Examples
        --------
        >>> import eblime
        >>> e = eblime.TextExplainer(lambda texts: [len(t) for t in texts]).explain("one or three")
        >>> e.refit(eblime.LIME(alpha=0.1)).posterior.method
        'LIME'
        """
        chosen: Any = as_method(method)
        index = getattr(chosen, "index", "lime")
        indices.check_game(self.answers, index)
        own = getattr(chosen, "kernel", None)
        if own is None and index == "lime" and hasattr(chosen, "with_kernel"):
            chosen = chosen.with_kernel(indices.own_kernel(self))
        generator = as_generator(rng)
        state = generator.bit_generator.state
        (posterior,) = fit_each(chosen, generator, [self.answers])
        known = {name: value for name, value in self.provenance.items() if name != "pooled"}
        return dataclasses.replace(
            self,
            generator=state,
            posterior=posterior,
            method=chosen,
            provenance={**known, "method": describe(chosen)},
        )

    def importances(
        self, index: str = "lime", *, width: float | None = None, kernel: str | Kernel | None = None
    ) -> Posterior:
        """The posterior of any index, from the answers that are there: no model call.

        The answers decide a posterior over functions of the mask (see `Quadrature`), and every
        index is a linear functional of it. For tables, the function is the mean score over the
        rows of the background.

        Parameters
        ----------
        index
            "lime", "banzhaf" or "shapley", as for `Quadrature`.
        width
            Width of the kernel of "lime", in lime's convention; None is that of the explanation.
        kernel
            Another kernel for "lime", instead of `width`; None is that of the explanation.

        Examples
        --------
        >>> import eblime
        >>> explainer = eblime.TextExplainer(lambda texts: [len(t) for t in texts], n_masks=60)
        >>> e = explainer.explain("one two three four five six")
        >>> e.importances("shapley").mean.round(2)
        array([3., 3., 5., 4., 4., 3.])
        """
        check_choice("index", index, INDICES)
        if (width is not None) + (kernel is not None) > (index == "lime"):
            raise ValueError(
                "`width` and `kernel` must be None unless index='lime', and must not both be given."
            )
        if width is not None:
            return indices.posteriors_by_width(self, [width])[0]
        if index == "lime" and kernel is None:
            kernel = indices.own_kernel(self)
        chosen = Quadrature(kernel=kernel, index=index)  # type: ignore[arg-type]  # checked above
        return indices.index_posteriors(self, [chosen])[0]

    def interactions(self, index: str = "banzhaf") -> indices.Interactions:
        """Interactions of all pairs of features, from the answers that are there.

        How much more the score changes when two features are shown together than when each is shown
        alone, averaged over masks of the others: all masks counting the same ("banzhaf"), or all
        sizes ("shapley", the Shapley interaction index). See `importances` for the rest.
        """
        check_choice("index", index, ("banzhaf", "shapley"))
        answers = self.answers.varying
        indices.check_game(answers, index)
        p = answers.n_features
        if not 2 <= p <= _MOST_FEATURES:
            raise ValueError(
                f"Interactions need 2 to {_MOST_FEATURES} features; the explanation has {p}."
            )
        pairwise = (banzhaf() if index == "banzhaf" else shapley(p)).pairwise()
        (found,) = fit_indices(answers, [pairwise], [f"{index.capitalize()} interactions"])
        return indices.Interactions(
            posterior=found,
            pairs=pairwise.subsets(p),
            features=tuple(str(name) for name in answers.features or self.features),
            label=self.label,
        )

    def more(
        self, n: int, *, explainer: Any = None, x: Any = None, progress: Progress = None
    ) -> Explanation:
        """Ask the model about n more masks; returns the explanation of all answers.

        An explanation that was loaded from a file or pickled needs its `explainer` and its input
        `x`. `progress` is as for `ImageExplainer`.
        """
        if (explainer is None) != (x is None):
            raise ValueError("`explainer` and `x` must be given together, or neither of them.")
        source = self.source if explainer is None else explainer.source_of(self, x)
        if source is None:
            raise ValueError(
                "`explainer` and `x` must be given to continue an explanation that was loaded or "
                "pickled: e.more(n, explainer=explainer, x=x)."
            )
        return source.more(self, n, progress)  # type: ignore[no-any-return]

    def table(self, prob: float = 0.95, top: int = 5) -> str:
        """The most important features as text.

        Parameters
        ----------
        prob
            Probability of the intervals.
        top
            How many features.

        Examples
        --------
        >>> import eblime
        >>> e = eblime.TextExplainer(lambda texts: [len(t) for t in texts]).explain("one or three")
        >>> print(e.table(prob=0.9, top=1))
        EBLIME: 8 masks, R2 1.000, effective sample size 7.5
        feature        mean     sd  90% low   high  P(>0)
        word 'three'  5.000  0.000    5.000  5.000   >.99
        ... and 2 more features
        """
        return self.posterior.table(list(self.features), prob, top)

    def predict(self, masks: ArrayLike, prob: float = 0.95) -> Prediction:
        """The scores of masks as the fit predicts them: `mean`, `low` and `high`, (n,) each.

        What if these features were hidden? The intervals are for single scores: they have the
        posterior of the fit and the scatter of the scores about it.

        Parameters
        ----------
        masks
            Zeros and ones, (n, p) or (p,); 1 is a feature that is shown.
        prob
            Probability of the intervals.

        Examples
        --------
        >>> import eblime
        >>> score = lambda texts: [0.5 + 0.2 * ("good" in t) - 0.3 * ("slow" in t) for t in texts]
        >>> e = eblime.TextExplainer(score).explain("good but slow")
        >>> e.predict([0, 1, 1]).mean.round(2), e.asked([0, 1, 1])
        (array([0.2]), 0.2)
        """
        return predict(self, masks, prob)

    def asked(self, mask: ArrayLike) -> float | None:
        """The model's own answer for a mask, (p,) zeros and ones; None if it was not asked."""
        return asked(self, mask)

    def reasons(self, k: int = 3, direction: str = "against") -> list[Reason]:
        """The features that speak most clearly for or against the prediction, the strongest first.

        Parameters
        ----------
        k
            How many; fewer if fewer features have that direction.
        direction
            "against" for those that lower the score, "for" for those that raise it.

        Examples
        --------
        >>> import eblime
        >>> score = lambda texts: [0.5 + 0.2 * ("good" in t) - 0.3 * ("slow" in t) for t in texts]
        >>> e = eblime.TextExplainer(score).explain("good but slow")
        >>> print(e.reasons(1)[0])
        word 'slow' lowers the score by 0.3 (exactly); P(strongest) > .99
        """
        return find_reasons(self, k, direction)

    def to_frame(self, prob: float = 0.95, k: int = 5) -> pd.DataFrame:
        """One row per feature: feature, mean, sd, low, high, prob_positive, top_k and `details`.

        `top_k` is the probability that the feature is among the `k` most important to the linear
        surrogate; it is about the fit, not the probability that an object or a defect is there.
        """
        return export.to_frame(self, prob, k)

    def plot(self, kind: str | None = None, *, ax: Axes | None = None, **settings: object) -> Axes:
        """Draw the explanation; returns matplotlib Axes.

        Parameters
        ----------
        kind
            "intervals" (the default), "means" (the default of a point estimate), "waterfall",
            "density", "ranks", "lambda", "convergence", "width" or "fit"; "map" of images, "text"
            of texts and prompts, "signal" of signals, "slices" and "projections" of volumes.
        ax
            Where to draw; None makes new axes.
        settings
            Those of the kind, such as `top=10`, or `of="uncertainty"` of a map; see `eblime.plot`.
        """
        if kind is None:
            kind = "intervals" if self.posterior.has_spread else "means"
        known = registry.names("plots")
        if kind not in known:
            own = self.scene.domain
            suit = ", ".join(repr(name) for name in known if own in _PLOTS_OF.get(name, (own,)))
            raise ValueError(f"`kind` must be one of {suit}; got {kind!r:.60}.")
        return registry.find("plots", kind)(self, ax=ax, **settings)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to one file, without pickle, whole or not at all; `eblime.load` reads it.

        Parameters
        ----------
        path
            The file, such as "row.eblime"; one that exists is replaced.

        Examples
        --------
        >>> import tempfile
        >>> import eblime
        >>> e = eblime.TextExplainer(lambda texts: [len(t) for t in texts]).explain("one or three")
        >>> eblime.load(e.save(tempfile.mkdtemp() + "/text.eblime")).prediction
        12.0
        """
        from eblime.results.storage import save

        return save(self, path)

    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str | None = None,
        truth: BoolArray | None = None,
    ) -> str:
        """One self-contained page to share, as HTML; `eblime.report` puts several into one.

        Parameters
        ----------
        path
            Where to write the page; None only returns it.
        title
            Its title.
        truth
            A mask, (H, W), to outline on an image, such as the known place of a defect.

        Examples
        --------
        >>> import eblime
        >>> e = eblime.TextExplainer(lambda texts: [len(t) for t in texts]).explain("one or three")
        >>> "<title>Lengths" in e.to_html(title="Lengths")
        True
        """
        return registry.find("pages", "page")(self, path, title=title, truth=truth)

    def _repr_html_(self) -> str:
        return registry.find("pages", "notebook")(self)

    def to_json(self, prob: float = 0.95, k: int = 5) -> str:
        """The numbers as JSON text; the reference has the layout."""
        return export.to_json(self, prob, k)

    def to_arviz(self, n_draws: int = 4_000, rng: RNGLike = 0) -> Any:
        """Draws for ArviZ, one chain of i.i.d. (beta, sigma2, lam)."""
        return export.to_arviz(self, n_draws, rng)

    def to_shap(self, prob: float = 0.95) -> shap.Explanation:
        """A `shap.Explanation`, which shap's plots draw; its bounds are the credible interval.

        `base_values` plus the sum of `values` is what the linear fit predicts for the input. `data`
        has the values of a row, the words of a text, and ones for superpixels.
        """
        return export.one_to_shap(self, prob)

    def to_shapiq(self, index: str = "shapley", order: int = 1) -> shapiq.InteractionValues:
        """A `shapiq.InteractionValues`, which shapiq's plots draw, from the stored answers.

        Its index is "SV" or "BV" for order 1, "SII" or "BII" for order 2, which has the pairs too;
        its baseline is the score with everything hidden, as asked or as the values imply.
        """
        return export.to_shapiq(self, index, order)

    def __repr__(self) -> str:
        """One line: what was explained, how well."""
        return (
            f"Explanation(target={self.target}, label={self.label!r}, "
            f"prediction={self.prediction:.4g}, posterior={self.posterior!r})"
        )

    def __str__(self) -> str:
        """What was explained, the five most important features, and notes about the fit."""
        sentences = map(paragraph, footer(self))
        return "\n".join([self.headline, self.table(), *sentences])

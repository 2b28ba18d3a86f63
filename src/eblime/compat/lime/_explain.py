"""From perturbed inputs to a result, by an `eblime.Explainer`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eblime._checks import as_floats, check_choice, check_count, check_scores
from eblime._types import FloatArray
from eblime.answers import Answers
from eblime.compat.lime.explanation import Weighted, class_name
from eblime.compat.lime.lime_base import SELECTIONS, LimeBase, exponential_kernel
from eblime.domains.drawn import DRAWN, Drawn
from eblime.explainers.general import Explainer
from eblime.kernels import ExponentialKernel
from eblime.laws import PointMass, PointValue
from eblime.posterior import Posterior
from eblime.protocols import Method, Scene
from eblime.results.explanation import Explanation, NotRefitted


@dataclass(frozen=True)
class _Unfitted:
    """Keeps the answers of an explanation whose weights come from elsewhere."""

    name: str = "LIME"

    def fit(self, rng: np.random.Generator, answers: Answers) -> Posterior:
        """All zeros."""
        law = PointMass(mean=np.zeros(answers.n_features), method=self.name)
        return Posterior.from_law(law, answers, method=self.name)


def with_weights(e: Explanation, name: str, listed: Weighted, intercept: float) -> Explanation:
    """The explanation with weights that are known already, as a point estimate."""
    mean = np.zeros(e.answers.n_features)
    mean[[j for j, _ in listed]] = [weight for _, weight in listed]
    law, known = PointMass(mean=mean, method=name), PointValue(value=intercept)
    about = {"method": name, "estimand": f"coefficients of {name}"}
    posterior = Posterior.from_law(law, e.answers, extras={"intercept": known}, **about)
    return replace(e, posterior=posterior, method=NotRefitted(name=name))


class LimeExplainer:
    """What explainers share: the settings of the fit, and the way to a result."""

    kernel: Callable[..., FloatArray] | None
    kernel_width: Any
    verbose: bool
    feature_selection: str
    random_state: Any
    method: str | Method
    mode: str = "classification"
    class_names: Sequence[object] | None = None

    def __post_init__(self) -> None:
        check_choice("feature_selection", self.feature_selection, SELECTIONS)
        kernel_fn = partial(self.kernel or exponential_kernel, kernel_width=self.kernel_width)
        self.base = LimeBase(kernel_fn, self.verbose, self.random_state, method=self.method)
        self.random_state = self.base.random_state

    def _fill(
        self,
        result: Any,
        scene: Scene,
        data: FloatArray,
        ask: Callable[[], ArrayLike],
        labels: Sequence[int],
        top_labels: int | None,
        num_features: int,
        metric: str | Callable[..., float],
        regressor: object,
        *,
        unit: float = 1.0,
        **about: Any,
    ) -> FloatArray:
        """Fit what `ask` returns to `data`; `base` fits each label, which users may replace.

        Distances are multiplied by `unit`; `about` is for the provenance. Returns all outputs of
        the model, (N, outputs).
        """
        from sklearn.metrics import pairwise_distances

        check_count("num_features", num_features)
        chosen = [int(label) for label in dict.fromkeys(labels)]
        if not (top_labels or chosen):
            raise ValueError(
                "`labels` must have at least one column of the model's output; got none."
            )
        base, selection = self.base, self.feature_selection
        if metric == "euclidean":
            distances = unit * np.linalg.norm(data - data[0], axis=1)
        else:
            distances = unit * pairwise_distances(data, data[:1], metric=metric).ravel()
        scores = as_floats("scores", ask())
        if scores.ndim == 2 and top_labels:
            chosen = np.argsort(scores[0])[-top_labels:].tolist()
        if scores.ndim != 2 or not set(chosen) <= set(range(scores.shape[1])):
            raise ValueError(
                "The model must return scores of shape (n, classes), and `labels` must be columns "
                f"of it; got shape {scores.shape} and labels {chosen}."
            )
        about |= {"input": {}, "design": "as in lime", "seed": "random_state"}
        weigh: Any = getattr(base, "kernel_fn", np.ones_like)
        usual = metric == "euclidean" or (metric == "cosine" and (data[0] == 1).all())
        if usual and getattr(weigh, "func", None) is exponential_kernel:
            width, known = weigh.keywords["kernel_width"] / unit, str(metric)
            kernel: Any = ExponentialKernel(distance=known, width=width)  # type: ignore[arg-type]
        else:
            about["kernel"] = f"kernel_fn on {metric} distances"
            kernel = lambda _: weigh(distances)  # noqa: E731
        fit_label = base.explain_instance_with_data
        ours = getattr(fit_label, "__func__", None) is LimeBase.explain_instance_with_data
        certain = ours and base.has_posterior(regressor)
        how = {"kernel": kernel, "method": base.method if certain else _Unfitted()}
        drawn = Drawn(scene, data, check_scores(scores, len(data), ndim=2).__getitem__)
        explainer = Explainer(lambda batch: batch, DRAWN, n_masks=len(data), **how)
        names: Any = {0: "prediction"}
        if self.mode == "classification":
            if self.class_names is None:
                self.class_names = [str(j) for j in range(scores.shape[1])]
            names = result.class_names = self.class_names
            result.predict_proba = scores[0]
            order = np.argsort(-scores[0], kind="stable")[:10].tolist()
            about["top_classes"] = [(class_name(names, j), float(scores[0, j])) for j in order]
        for label, e in explainer.explain_targets(drawn, chosen).items():
            if certain:
                fit = base.summarise(e.posterior, data[0], e.scores[0], num_features, selection)
            else:
                settings: Any = {"model_regressor": regressor, "feature_selection": selection}
                fit = fit_label(data, scores, distances, label, num_features, **settings)
                fit = float(np.ravel(fit[0])[0]), [(int(j), float(w)) for j, w in fit[1]], *fit[2:]
                source = type(base if regressor is None else regressor).__name__
                about["method"] = "LIME" if source == "LimeBase" else source
                e = with_weights(e, about["method"], fit[1], fit[0])
            result.intercept[label], result.local_exp[label], result.score, result.local_pred = fit
            facts = {k: v for k, v in e.provenance.items() if k != "seconds"} | about
            e = replace(e, scene=scene, source=None, provenance=facts)
            result.explanations[label] = replace(e, label=class_name(names, label))
        result.top_labels = chosen[::-1] if top_labels else None
        return scores

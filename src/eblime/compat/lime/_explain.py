"""From perturbed inputs to a result, by an `eblime.Explainer`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from eblime._checks import as_floats, check_choice, check_count, check_scores
from eblime._types import FloatArray
from eblime.answers import Answers
from eblime.compat.lime.explanation import Result, class_name
from eblime.compat.lime.lime_base import SELECTIONS, LimeBase, exponential_kernel
from eblime.domains.drawn import DRAWN, Drawn
from eblime.engine.calls import Calls, ModelError
from eblime.explainers.general import Explainer
from eblime.kernels import ExponentialKernel
from eblime.laws import PointMass, PointValue
from eblime.methods.ridge import LIME
from eblime.posterior import Posterior
from eblime.results.explanation import Explanation

_PRIVATE = ("_LimeTabularExplainer__data_inverse", "_LimeTextExplainer__data_labels_distances")


@dataclass(frozen=True, slots=True, repr=False)
class Weights:
    """A method that fits nothing: weights and an intercept that are known already."""

    name: str
    listed: Sequence[tuple[int, float]]
    intercept: float

    def fit(self, rng: np.random.Generator, answers: Answers) -> Posterior:
        """The weights as a point estimate."""
        mean = np.zeros(answers.n_features)
        mean[[j for j, _ in self.listed]] = [weight for _, weight in self.listed]
        law, known = PointMass(mean=mean, method=self.name), PointValue(value=self.intercept)
        about = {"method": self.name, "estimand": f"coefficients of {self.name}"}
        return Posterior.from_law(law, answers, extras={"intercept": known}, **about)

    def __repr__(self) -> str:
        """What the weights come from."""
        return self.name


def ask(
    drawn: Drawn, model: Callable[[Any], Any], labels: Sequence[int], top: int | None, **how: Any
) -> tuple[FloatArray, dict[int, Explanation]]:
    """Ask the model: all its outputs, (N, outputs), and explanations by label.

    With `top` the labels are the most likely ones, in lime's order. `how` are settings of
    `eblime.Explainer`.
    """
    answers: list[FloatArray] = []
    chosen = [] if top else [int(label) for label in dict.fromkeys(labels)]
    if not (top or chosen):
        raise ValueError("`labels` must have at least one column of the model's output; got none.")

    def outputs(batch: Any) -> FloatArray:
        found = model(batch)
        scores = as_floats("scores", found.toarray() if hasattr(found, "toarray") else found)
        n_outputs = scores.shape[-1] if scores.ndim == 2 else 0
        if not n_outputs or any(not -n_outputs <= label < n_outputs for label in chosen):
            raise ValueError(
                "The model must return scores of shape (n, classes), and `labels` must be columns "
                f"of it; got shape {scores.shape} and labels {chosen}."
            )
        answers.append(check_scores(scores, len(scores), ndim=2))
        chosen[:] = chosen or np.argsort(scores[0])[-(top or 0) :].tolist()
        return scores[:, chosen]

    n = len(drawn.data)
    try:  # all outputs that are left
        found = Explainer(outputs, DRAWN, n_masks=n, **how).explain_targets(drawn, 10**6)
    except ModelError as error:  # programs for lime expect the model's own errors
        raise error.__cause__ or error from None
    kept = {j: replace(e, scene=drawn.input, source=None) for j, e in found.items()}
    explained = {label: replace(kept[j], target=label) for j, label in enumerate(chosen)}
    return np.concatenate(answers), explained


class LimeExplainer:
    """What explainers share: the settings of the fit, and the way to a result."""

    mode = "classification"
    class_names: Sequence[Any] | None = None

    def __init_subclass__(cls) -> None:
        """Refuse subclasses that replace private methods of lime, which are never called here."""
        for name in set(_PRIVATE) & set(vars(cls)):
            raise TypeError(
                f"{cls.__name__} replaces lime's private method {name}, which eblime does not "
                "call. Write a domain for eblime.Explainer instead."
            )

    def _set(
        self, width: float, kernel: Any, verbose: bool, selection: str, seed: Any, method: Any
    ) -> None:
        """Check and set what the constructors of all explainers take."""
        check_choice("feature_selection", selection, SELECTIONS)
        self.feature_selection = selection
        kernel_fn = partial(kernel or exponential_kernel, kernel_width=width)
        self.base: Any = LimeBase(kernel_fn, verbose, seed, method=method)
        self.random_state: np.random.RandomState = self.base.random_state

    def _fill(
        self,
        result: Result,
        drawn: Drawn,
        model: Callable[[Any], Any],
        labels: Sequence[int],
        top_labels: int | None,
        num_features: int,
        metric: str | Callable[..., Any],
        regressor: Any,
        *,
        unit: float = 1.0,
        **about: Any,
    ) -> FloatArray:
        """Ask the model, and fit every label with `base`, which users may replace.

        Distances are multiplied by `unit`; `about` is for the provenance. Returns all outputs of
        the model, (N, outputs).
        """
        from sklearn.metrics import pairwise_distances

        check_count("num_features", num_features)
        base, data, selection = self.base, drawn.data, self.feature_selection
        about |= {"input": {}, "design": "as in lime", "seed": "random_state"}
        distances = unit * pairwise_distances(data, data[:1], metric=metric).ravel()
        weigh: Any = getattr(base, "kernel_fn", np.ones_like)
        usual = metric == "euclidean" or (metric == "cosine" and (data[0] == 1).all())
        if usual and getattr(weigh, "func", None) is exponential_kernel:
            width, known = weigh.keywords["kernel_width"] / unit, str(metric)
            kernel: Any = ExponentialKernel(distance=known, width=width)  # type: ignore[arg-type]
        else:
            about["kernel"] = f"kernel_fn on {metric} distances"
            kernel = lambda near: weigh(distances)  # noqa: E731
        fit_label = base.explain_instance_with_data
        ours = getattr(fit_label, "__func__", None) is LimeBase.explain_instance_with_data
        certain = ours and base.has_posterior(regressor)
        how = {"kernel": kernel, "method": base.method if certain else LIME()}
        calls = Calls(batch_size=len(data))
        scores, found = ask(drawn, model, labels, top_labels, calls=calls, **how)
        names: Any = {0: "prediction"}
        if self.mode == "classification":
            if self.class_names is None:
                self.class_names = [str(j) for j in range(scores.shape[1])]
            names = result.class_names = self.class_names
            result.predict_proba = scores[0]
            order = np.argsort(-scores[0], kind="stable")[:10].tolist()
            about["top_classes"] = [(class_name(names, j), float(scores[0, j])) for j in order]
        for label, e in found.items():
            if certain:
                fit = base.summarise(e.posterior, data[0], e.scores[0], num_features, selection)
            else:
                settings = {"model_regressor": regressor, "feature_selection": selection}
                fit = fit_label(data, scores, distances, label, num_features, **settings)
                fit = float(np.ravel(fit[0])[0]), [(int(j), float(w)) for j, w in fit[1]], *fit[2:]
                source = type(base if regressor is None else regressor).__name__
                e = e.refit(Weights("LIME" if source == "LimeBase" else source, fit[1], fit[0]))
            result.intercept[label], result.local_exp[label], result.score, result.local_pred = fit
            facts = {k: v for k, v in e.provenance.items() if k != "seconds"} | about
            result.keep(label, replace(e, label=class_name(names, label), provenance=facts))
        result.top_labels = list(found)[::-1] if top_labels else None
        return scores

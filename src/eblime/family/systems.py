"""Relatives of LIME that ask the model in their own way, as entries of `eblime.compare`.

Each takes the explainer's number of masks as its budget of model calls. The result is an
explanation of the same features and target as the one it is compared with.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from eblime._checks import as_generator, check_choice, check_count
from eblime._types import RNGLike
from eblime.answers import Answers
from eblime.engine.settings import LoopSettings, stop_settings
from eblime.engine.state import begin
from eblime.engine.targets import target_of
from eblime.engine.watch import Watch
from eblime.family.active import ACQUISITIONS, unravel
from eblime.family.comparison import explanation_like
from eblime.family.dlime import DLIME, InOrder
from eblime.family.mixture import fit_mixture
from eblime.family.number_rows import number_rows
from eblime.family.repeats import AveragedExplanation
from eblime.laws import normal_law
from eblime.posterior import Posterior
from eblime.results.explanation import Explanation
from eblime.stopping.lars import LarsStable

__all__ = ["AveragedLIME", "ClusterLIME", "RegressionsOfRows", "StableLIME", "UnRAVEL"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StableLIME:
    """S-LIME: LIME with more masks until the first `k` features of a lasso path are stable.

    Examples
    --------
    >>> import eblime
    >>> score = lambda texts: [("good" in t) - 0.2 * ("bad" in t) for t in texts]
    >>> methods = {"LIME": "lime", "S-LIME": eblime.family.StableLIME(k=1)}
    >>> found = eblime.compare(score, "a good film with a bad end and some songs", methods)
    >>> found["S-LIME"].features[int(found["S-LIME"].posterior.mean.argmax())]
    "word 'good'"
    """

    k: int = 3

    def check(self, explainer: Any, x: Any) -> None:
        """Refuse settings that cannot work, and fewer masks than a first round has."""
        check_count("k", self.k)
        asking = replace(explainer, method="lime")
        asking.check()
        settings: LoopSettings = stop_settings(asking.loop, LarsStable(1), explainer.n_masks)
        state = begin(settings, asking.subject(x), 1, 0)
        try:
            Watch(settings=state.settings).design(state)
        except ValueError as error:
            raise ValueError(f"S-LIME has `n_masks` as its `max_masks`: {error}") from error

    def explain_for_comparison(
        self, explainer: Any, x: Any, reference: Explanation, rng: RNGLike
    ) -> Explanation:
        """Explain the input; the explainer's number of masks is the most that are asked."""
        rule = LarsStable(min(self.k, reference.scene.n_features))
        target = target_of(reference.target, explainer.labels)
        asking = replace(explainer, method="lime")
        found: Explanation = asking.explain(x, target, rng, until=rule, max_masks=explainer.n_masks)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class AveragedLIME:
    """Averaged LIME: the mean of several runs, which share the budget; normal intervals.

    Examples
    --------
    >>> import eblime
    >>> score = lambda texts: [("good" in t) - 0.2 * ("bad" in t) for t in texts]
    >>> methods = {"LIME": "lime", "averaged": eblime.family.AveragedLIME(runs=4)}
    >>> found = eblime.compare(score, "a good film with a bad end", methods, n_masks=100)
    >>> found["averaged"].as_list(top=1)[0][0]
    "word 'good'"
    """

    runs: int = 5

    def check(self, explainer: Any, x: Any) -> None:
        """Refuse settings that cannot work."""
        check_count("runs", self.runs)
        if self.runs < 2 or explainer.n_masks // self.runs < 2:
            raise ValueError(
                f"`runs` must be from 2 to half of the {explainer.n_masks} masks; got {self.runs}."
            )
        self._part(explainer).check()

    def explain_for_comparison(
        self, explainer: Any, x: Any, reference: Explanation, rng: RNGLike
    ) -> Explanation:
        """Explain the input several times."""
        part, generator = self._part(explainer), as_generator(rng)
        seeds = generator.integers(2**32, size=self.runs).tolist()
        target = target_of(reference.target, explainer.labels)
        runs = [part.explain(x, target, seed) for seed in seeds]
        found = AveragedExplanation(
            features=tuple(reference.features),
            importances=np.array([[[run.posterior.mean for run in runs]]]),
        )
        posterior = Posterior.from_law(
            normal_law(found.mean, np.diag(found.error**2)),
            runs[0].answers,
            method="Averaged LIME",
            estimand=runs[0].posterior.estimand,
        )
        calls = sum(int(run.provenance["model_calls"]) for run in runs)
        return explanation_like(reference, posterior, runs[0].answers, calls=calls)

    def _part(self, explainer: Any) -> Any:
        """The explainer of one run."""
        return replace(explainer, method="lime", n_masks=explainer.n_masks // self.runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLIME:
    """DLIME: the rows of the input's cluster, among as many background rows as the budget has.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rows = np.random.default_rng(0).normal(size=(60, 2))
    >>> methods = {"LIME": "lime", "DLIME": eblime.family.ClusterLIME()}
    >>> double = lambda table: 2 * table[:, 0]
    >>> found = eblime.compare(double, rows[0], methods, background=rows, n_masks=60)
    >>> int(abs(found["DLIME"].posterior.mean).argmax())  # the first column
    0
    """

    n_clusters: int = 2

    def check(self, explainer: Any, x: Any) -> None:
        """Refuse inputs other than rows of numbers, and settings that cannot work."""
        known = number_rows(explainer, x, "DLIME").sampled(explainer.n_masks - 1, 0)
        check_count("n_clusters", self.n_clusters, maximum=len(known.background))

    def explain_for_comparison(
        self, explainer: Any, x: Any, reference: Explanation, rng: RNGLike
    ) -> Explanation:
        """Explain the row by real rows; bins and names are those of the explainer."""
        known = number_rows(explainer, x, "DLIME").sampled(explainer.n_masks - 1, rng)
        rows = known.background
        clusters = DLIME(model=explainer.model, background=rows, n_clusters=self.n_clusters)
        near = rows[clusters.neighbours(known.row)]
        asking = replace(
            explainer,
            method="lime",
            design=None,
            perturb=InOrder.after_itself(near, known.table),
            n_masks=len(near) + 1,
        )
        target = target_of(reference.target, explainer.labels)
        found: Explanation = asking.explain(x, target, rng)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionsOfRows:
    """DMM-MEN: the regression of the row's component, among rows of the background.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rows = np.random.default_rng(0).normal(size=(60, 2))
    >>> methods = {"LIME": "lime", "DMM-MEN": eblime.family.RegressionsOfRows(draws=50, burn_in=50)}
    >>> double = lambda table: 2 * table[:, 0]
    >>> found = eblime.compare(double, rows[0], methods, background=rows, n_masks=60)
    >>> int(abs(found["DMM-MEN"].posterior.mean).argmax())  # the first column
    0
    """

    draws: int = 300
    burn_in: int = 300

    def check(self, explainer: Any, x: Any) -> None:
        """Refuse inputs other than rows of numbers, and settings that cannot work."""
        number_rows(explainer, x, "DMM-MEN")
        check_count("draws", self.draws, minimum=2)
        check_count("burn_in", self.burn_in, minimum=0)
        check_count("n_masks", explainer.n_masks, minimum=2)

    def explain_for_comparison(
        self, explainer: Any, x: Any, reference: Explanation, rng: RNGLike
    ) -> Explanation:
        """Fit the mixture to the model's scores of background rows; explain the row by it."""
        known = number_rows(explainer, x, "DMM-MEN").sampled(explainer.n_masks - 1, rng)
        rows = known.background
        outputs = np.asarray(explainer.model(known.table(rows)), dtype=np.float64)
        scores = outputs.reshape(len(rows), -1)[:, reference.target]
        whole = fit_mixture(rows, scores, draws=self.draws, burn_in=self.burn_in, rng=rng)
        posterior = whole.local(known.row, reference.prediction)
        answers = Answers(
            masks=rows,
            scores=scores,
            weights=np.ones(len(rows)),
            features=tuple(reference.features),
        )
        return explanation_like(reference, posterior, answers, calls=len(rows) + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnRAVEL:
    """UnRAVEL: slopes of a Gaussian process; at most `n_calls` rows, as each takes its time.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rows = np.random.default_rng(0).normal(size=(60, 2))
    >>> methods = {"LIME": "lime", "UnRAVEL": eblime.family.UnRAVEL(n_calls=15)}
    >>> double = lambda table: 2 * table[:, 0]
    >>> found = eblime.compare(double, rows[0], methods, background=rows, n_masks=60)
    >>> int(abs(found["UnRAVEL"].posterior.mean).argmax())  # the first column
    0
    """

    n_calls: int = 60
    acquisition: Literal["FUR", "UR"] = "FUR"

    def check(self, explainer: Any, x: Any) -> None:
        """Refuse inputs other than rows of numbers, and settings that cannot work."""
        number_rows(explainer, x, "UnRAVEL")
        check_choice("acquisition", self.acquisition, ACQUISITIONS)
        check_count("n_calls", self.n_calls, minimum=3)
        check_count("n_masks", explainer.n_masks, minimum=3)

    def explain_for_comparison(
        self, explainer: Any, x: Any, reference: Explanation, rng: RNGLike
    ) -> Explanation:
        """Ask about one row after the other."""
        known = number_rows(explainer, x, "UnRAVEL")
        found = unravel(
            lambda rows: explainer.model(known.table(rows)),
            known.row,
            known.background,
            n_calls=min(self.n_calls, explainer.n_masks),
            acquisition=self.acquisition,
            target=reference.target,
            rng=rng,
        )
        answers = Answers(
            masks=found.rows,
            scores=found.scores,
            weights=np.ones(len(found.scores)),
            features=tuple(reference.features),
        )
        return explanation_like(reference, found.posterior, answers, calls=len(found.scores))

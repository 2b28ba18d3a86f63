"""Signals and volumes: planted truth, real classifiers beside other methods, and speed.

Part `planted`: signals in which one window of 20, one channel of 6 or one frequency band of 8 holds
the pattern of the model at full size. The others hold up to half of it, with either sign, and the
patterns interact. The importances of all features are known from all masks.

Part `real`: GunPoint and BasicMotions of aeon with Rocket and MiniRocket: deletion and insertion
beside LEFTIST, whose regression is that of lime, and KernelSHAP. All get the same windows and ask
about as many masks. It needs `pip install aeon`, which is not in the extra `studies` because it
holds back other packages.

Part `speed`: time of a signal of 2,000 samples beside other packages, and time and memory of a
volume of 128^3 voxels, with models that take almost no time. Packages that are missing are left
out.

    python -m studies signals --part planted --jobs 2 --store
    python -m studies signals --part real --items 20 --jobs 2 --store
    python -m studies signals --part speed --store
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from threadpoolctl import threadpool_limits

import eblime
from eblime._types import FloatArray
from eblime.designs.masks import exhaustive
from eblime.domains.signal import SignalScene
from studies.charts.style import RESULTS
from studies.faithfulness import faithfulness, paired_gaps
from studies.intervals import interval_measures, mean_interval
from studies.runner import Row, add_run_options, positive, run_study, study_generator
from studies.speed.clock import Clocked, median_seconds, quiet
from studies.subjects import SIGNALS
from studies.tables import frame_table, write_csv

__all__ = ["plant", "planted", "signal_times"]

# the numbers of features and of masks; all masks of 6 channels are 64, those of 8 bands 256
KINDS = {"windows": (20, (100, 200, 500)), "channels": (6, (20, 40, 200))}
KINDS["bands"] = (8, (50, 100, 200))
REPEATS = 5  # explanations of a planted signal for each number of masks
METHODS = ("eblime", "lime", "shap", "captum-shap", "random")
NAMES = {"lime": "LEFTIST", "shap": "KernelSHAP, shap", "captum-shap": "KernelSHAP, captum"}
SAMPLES, WINDOWS, MASKS = 2000, 40, 1000  # of the signal whose time is measured


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--part", default="planted", choices=["planted", "real", "speed"])
    parser.add_argument("--n", type=positive, default=100, help="masks of part real")
    parser.add_argument("--rounds", type=positive, default=5, help="of part speed")
    parser.add_argument("--store", action="store_true", help="write the table to docs/results")
    add_run_options(parser, many="100 planted signals, 20 of each real data set")


def run(options: argparse.Namespace) -> None:
    """Run a part; print its table, and store it if wanted."""
    how = {name: getattr(options, name) for name in ("seed", "jobs", "out", "progress")}
    if options.part == "planted":
        found = planted_summary(planted(items=options.items or 100, **how))
    elif options.part == "real":
        found = real(n=options.n, items=options.items or 20, **how)
    else:
        found = pd.concat([signal_times(options.rounds), volume_costs(options.rounds)])
    print(f"\n{frame_table(found)}\n")
    if options.store:
        write_csv(found, RESULTS / f"signals-{options.part}.csv", digits=5)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Planted:
    """A signal, and a model that looks for one pattern in each part of it."""

    kind: str  # the segmentation
    signal: FloatArray  # (C, T)
    patterns: FloatArray  # (p, C T), each of length 1
    place: int  # of the feature with the whole pattern

    @property
    def explainer(self) -> eblime.SignalExplainer:
        """Explains the model with the defaults of `SignalExplainer`."""
        cut = self.kind if self.kind == "channels" else (self.kind, {"n": len(self.patterns)})
        return eblime.SignalExplainer(self.model, cut, layout="first", progress=False)

    def model(self, batch: FloatArray) -> FloatArray:
        """Signals (n, C, T) -> scores (n,): how much of the pattern is there, and where twice."""
        return self.score(batch.reshape(len(batch), -1) @ self.patterns.T)

    @staticmethod
    def score(sizes: FloatArray) -> FloatArray:
        """The score from the size of the pattern in each part, (n, p) -> (n,).

        Parts act on each other: in pairs of neighbours, and because the score has an upper bound.
        """
        pairs = (sizes * np.roll(sizes, 1, axis=1)).sum(axis=1)
        return np.asarray(1 / (1 + np.exp(1 - 2 * sizes.sum(axis=1) - pairs / 2)))

    def importances(self) -> FloatArray:
        """The fit to the scores of all masks, weighted by the default kernel; intercept free, (p,).

        A hidden part takes away the same from the signal whatever else is hidden, so that the sizes
        of the pattern are linear in the mask. The kernel weighs each part on its own, so that the
        importance of one is the difference of two weighted means.
        """
        p = len(self.patterns)
        scene = self.explainer.subject(self.signal).scene
        assert isinstance(scene, SignalScene)
        masks = np.concatenate([np.ones((1, p)), 1 - np.eye(p)])
        shown, *without = np.asarray(scene.inputs(masks)).reshape(p + 1, -1) @ self.patterns.T
        low, high = exhaustive(np.random.default_rng(0), 0, min(p, 12)), np.zeros((1, 0))
        if p > 12:
            high = exhaustive(np.random.default_rng(0), 0, p - 12)
        sums = np.zeros((2, p))
        for rest in high:
            every = np.hstack([low, np.broadcast_to(rest, (len(low), len(rest)))])
            weights = eblime.kernels.ExponentialKernel()(every)
            scores = self.score(shown - (1 - every) @ (shown - np.array(without)))
            sums += np.array([(weights * scores) @ every, (weights * scores) @ (1 - every)])
        ratio = np.exp(-1 / (2 * 0.75**2 * p))  # weight of a hidden part
        shares = np.array([1, ratio]) / (1 + ratio)
        total = (1 + ratio) ** p
        return np.asarray((sums[0] / shares[0] - sums[1] / shares[1]) / total)


def plant(kind: str, rng: np.random.Generator) -> Planted:
    """Noise with a pattern in each part, at full size in one of them, up to half in the others."""
    p = KINDS[kind][0]
    shape = {"windows": (1, 20 * p), "channels": (p, 100), "bands": (1, 40 * p)}[kind]
    patterns = np.zeros((p, *shape))
    steps = np.arange(shape[1])
    for k in range(p):
        if kind == "bands":
            patterns[k, 0] = np.cos(2 * np.pi * steps * (k + 0.5) / (2 * p) + rng.uniform(0, 6))
        else:
            start = 20 * k + 4 if kind == "windows" else int(rng.integers(20, 60))
            wave = np.sin(np.arange(12) * rng.uniform(1, 2)) * np.hanning(12)
            patterns[k, 0 if kind == "windows" else k, start : start + 12] = wave
    patterns = patterns.reshape(p, -1)
    patterns /= np.linalg.norm(patterns, axis=1, keepdims=True)
    sizes, place = rng.uniform(-0.5, 0.5, size=p), int(rng.integers(p))
    sizes[place] = 1.0
    signal = 0.05 * rng.normal(size=shape) + (sizes @ patterns).reshape(shape)
    return Planted(kind=kind, signal=signal, patterns=patterns, place=place)


def planted(*, items: int = 100, seed: int = 0, **how: Any) -> pd.DataFrame:
    """One row per signal, number of masks and repeat; `how` are settings of `run_study`."""
    return run_study(planted_rows, {"seed": seed, "repeats": REPEATS}, range(items), **how)


def planted_rows(settings: Mapping[str, Any], number: int) -> list[Row]:
    """Explanations of one signal of each kind."""
    rows = []
    for index, (kind, (_, sizes)) in enumerate(KINDS.items()):
        made = plant(kind, study_generator(settings, number, index))
        truth, explainer = made.importances(), made.explainer
        for n in sizes:
            for repeat in range(settings["repeats"]):
                rng = study_generator(settings, number, index, n, repeat)
                post = replace(explainer, n_masks=n).explain(made.signal, rng=rng).posterior
                found = interval_measures(post.interval(), truth, 0.95)
                top = int(np.abs(post.mean).argmax())
                rows.append(
                    {
                        **{"kind": kind, "N": n, "item": number},
                        "first": int(np.abs(truth).argmax()) == made.place,
                        **{"asked": post.n_masks, "right": top == made.place},
                        "p_right": post.top_k_probability(1)[made.place],
                        **{name: found[name] for name in ("coverage", "top_1", "top_2_3")},
                        "r2": post.r2_held_out,
                    }
                )
    return rows


def planted_summary(rows: pd.DataFrame) -> pd.DataFrame:
    """How often the planted feature comes first, and coverage by rank, with 95 % intervals."""
    found = []
    for (kind, n), part in rows.groupby(["kind", "N"], sort=False):
        ends = stats.binomtest(int(part["right"].sum()), len(part)).proportion_ci()
        by_item = part.groupby("item")["coverage"].mean().to_numpy()
        low, high = mean_interval(by_item)
        found.append(
            {
                **{"features": kind, "N": n, "asked": int(part["asked"].iloc[0])},
                **{"signals": len(by_item), "truly_first": part["first"].mean()},
                "right": part["right"].mean(),
                **{"right_low": ends.low, "right_high": ends.high},
                **{"p_right": part["p_right"].mean(), "coverage": by_item.mean()},
                **{"low": low, "high": high, "top_1": part["top_1"].mean()},
                **{"top_2_3": part["top_2_3"].mean(), "r2": part["r2"].mean()},
            }
        )
    return pd.DataFrame(found)


def real(*, n: int = 100, items: int = 20, **how: Any) -> pd.DataFrame:
    """One row per data set, classifier, measure and other method: both means and their gap.

    A gap above 0 means that eblime is worse; `low` and `high` are its 95 % interval, input by
    input.
    """
    settings: dict[str, Any] = {"n": n, "items": items, "methods": METHODS, "nearby": 0}
    rows = pd.concat([faithfulness(name, **settings, **how) for name in SIGNALS])
    rows["method"] = rows["method"].replace(NAMES)
    gaps = paired_gaps(rows.drop(columns="infidelity"), "eblime")
    means = rows.groupby(["dataset", "method"])[["insertion", "deletion"]].mean()
    for name, key in (("eblime", None), ("theirs", "other")):
        gaps[name] = [
            means.loc[(line["dataset"], line[key] if key else "eblime"), line["measure"]]
            for line in gaps.to_dict("records")
        ]
    verdicts = np.where(gaps["high"] < 0, "better", np.where(gaps["low"] > 0, "worse", "undecided"))
    gaps["eblime is"] = verdicts
    first = ["dataset", "measure", "other", "eblime", "theirs"]
    return gaps[[*first, "gap", "low", "high", "items", "eblime is"]]


def signal_times(rounds: int) -> pd.DataFrame:
    """Own processor time for 1,000 masks of a signal, one thread, for each package."""
    import torch

    rng = np.random.default_rng(0)
    signal = rng.normal(size=SAMPLES).cumsum()
    model = Clocked(lambda batch: batch[:, ::50].sum(axis=1), time.process_time)
    jobs = signal_jobs(signal, model)
    spent: dict[str, list[float]] = {name: [] for name in jobs}

    def counted(name: str) -> Callable[[], object]:
        def job() -> object:
            model.seconds = 0.0
            found = quiet(jobs[name])
            spent[name].append(model.seconds)
            return found

        return job

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        whole = median_seconds({name: counted(name) for name in jobs}, rounds, time.process_time)
    torch.set_num_threads(threads)
    own = {name: whole[name] - float(np.median(spent[name])) for name in jobs}
    rows = [
        {"what": f"signal, {name}", "seconds": seconds, "ours_over_theirs": own["eblime"] / seconds}
        for name, seconds in own.items()
    ]
    return pd.DataFrame(rows)


def signal_jobs(signal: FloatArray, model: Clocked) -> dict[str, Callable[[], object]]:
    """Each package's explanation of the signal; ours with intervals."""
    ours = eblime.SignalExplainer(model, ("windows", {"n": WINDOWS}), n_masks=MASKS, progress=False)
    scene = ours.subject(signal).scene
    assert isinstance(scene, SignalScene)
    assert scene.labels is not None
    labels, hidden = scene.labels[0], scene.hidden[0, 0]
    jobs: dict[str, Callable[[], object]] = {
        "eblime": lambda: ours.explain(signal, rng=0).posterior.interval()
    }
    if find_spec("captum") is not None:
        for name in ("KernelShap", "Lime"):
            jobs[f"captum {name}"] = captum_job(name, signal, labels, hidden, model)
    if find_spec("shap") is not None:
        jobs["shap, masks turned into signals by np.where"] = shap_job(
            signal, labels, hidden, model
        )
    if find_spec("windowshap") is not None:
        jobs["windowshap"] = windowshap_job(signal, hidden, model)
    return jobs


def captum_job(
    name: str, signal: FloatArray, labels: Any, hidden: FloatArray, model: Clocked
) -> Callable[[], object]:
    """`captum.attr.KernelShap` or `Lime` with a feature mask, 100 signals in one call."""
    import torch
    from captum import attr

    shown, baseline = torch.from_numpy(signal)[None], torch.from_numpy(hidden)[None]
    method = getattr(attr, name)(lambda batch: torch.as_tensor(model(batch.numpy())))
    how = {"baselines": baseline, "feature_mask": torch.from_numpy(labels)[None]}
    return lambda: method.attribute(shown, **how, n_samples=MASKS, perturbations_per_eval=100)


def shap_job(
    signal: FloatArray, labels: Any, hidden: FloatArray, model: Clocked
) -> Callable[[], object]:
    """`shap.KernelExplainer`, which has no windows: our line turns its masks into signals."""
    import shap

    def score(masks: FloatArray) -> Any:
        return model(np.where(masks[:, labels] > 0.5, signal, hidden))

    def job() -> object:
        explainer = shap.KernelExplainer(score, np.zeros((1, WINDOWS)), silent=True)
        return explainer.shap_values(np.ones((1, WINDOWS)), nsamples=MASKS, silent=True)

    return job


def windowshap_job(signal: FloatArray, hidden: FloatArray, model: Clocked) -> Callable[[], object]:
    """`windowshap.StationaryWindowSHAP`, which asks about 2,128 masks."""
    from windowshap.windowshap import StationaryWindowSHAP

    class Model:
        predict = staticmethod(lambda batch: model(batch[:, :, 0])[:, None])

    background, own = hidden.reshape(1, -1, 1), signal.reshape(1, -1, 1)
    cut = SAMPLES // WINDOWS
    return lambda: StationaryWindowSHAP(Model(), cut, background, own).shap_values()


_VOLUME = """
import json, sys, time
from pathlib import Path
import numpy as np
import eblime

def explain(side, dtype):
    rng = np.random.default_rng(0)
    volume = rng.normal(scale=40, size=(side, side, side)).astype(dtype)
    explainer = eblime.VolumeExplainer(
        lambda batch: batch[:, ::16, ::16, ::16].sum(axis=(1, 2, 3)).astype(float),
        ("blocks", {"n": 4}), n_masks=1000, progress=False,
    )
    start = time.perf_counter(), time.process_time()
    explainer.explain(volume, rng=0).posterior.interval()
    return time.perf_counter() - start[0], time.process_time() - start[1]

def most():  # of this process: `ru_maxrss` begins with that of its parent
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1024

explain(8, sys.argv[1])  # imports
before = most()
elapsed, processor = explain(128, sys.argv[1])
print(json.dumps({"elapsed": elapsed, "seconds": processor, "megabytes": most() - before}))
"""


def volume_costs(rounds: int) -> pd.DataFrame:
    """Medians of processor time and memory beyond the imports, in processes of their own."""
    rows = []
    for dtype in ("uint8", "float32", "float64"):
        runs = [
            json.loads(
                subprocess.run(
                    [sys.executable, "-c", _VOLUME, dtype], capture_output=True, check=True
                ).stdout
            )
            for _ in range(min(rounds, 3))
        ]
        rows.append({"what": f"volume, {dtype}", **pd.DataFrame(runs).median().to_dict()})
    return pd.DataFrame(rows)

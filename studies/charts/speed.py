"""Figures and numbers of the page about speed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from studies.charts.style import GREEN, GREY, canvas, save
from studies.tables import table

__all__ = ["speed_part"]

NETWORKS = {
    "resnet50": "ResNet-50",
    "vgg16": "VGG16",
    "vit_b_16": "ViT-B/16",
    "convnext_tiny": "ConvNeXt-Tiny",
    "efficientnet_lite0": "EfficientNet-Lite0",
}


def speed_part(found: pd.DataFrame, changes: pd.DataFrame) -> dict[str, str]:
    """Times beside other packages: two figures, numbers of the text and a table."""
    tasks = {str(name): part.set_index("name") for name, part in found.groupby("task", sort=False)}
    real, photo, row, text, fit = (
        next(part for task, part in tasks.items() if task.startswith(start))
        for start in (
            *("photo, EfficientNet", "photo, no model, 36", "row of", "text of"),
            "posterior, 1000 masks of 40",
        )
    )
    renamed = {"captum Lime": "captum", "shap Partition": "shap", "eblime, background 50": "eblime"}
    renamed |= {"shap, background 50": "shap"}
    figure, panels = canvas(2, 2, 8.4, 4.2)
    titles = (
        "photo, EfficientNet-Lite0, 200 masks",
        "photo, 1,000 masks, without a model",
        "row of a table, 5,000 perturbed rows",
        "text of 250 words, 5,000 perturbed texts",
    )
    for axes, title, part in zip(panels.flat, titles, (real, photo, row, text), strict=True):
        part = part.rename(index=renamed)
        names = [name for name in ("captum", "shap", "lime", "eblime") if name in part.index]
        for k, name in enumerate(names):
            own, model = part.loc[name, ["seconds", "model_seconds"]].fillna(0)
            colour = GREEN if name == "eblime" else GREY
            axes.barh(k, own, color=colour)
            axes.barh(k, model, left=own, color=colour, alpha=0.3)
            axes.annotate(f" {_seconds(own)}", (own + model, k), va="center", fontsize=8.5)
        axes.set_xlim(0, 1.25 * axes.get_xlim()[1])
        axes.set_yticks(range(len(names)), names)
        axes.set_title(title, fontsize=10)
    for axes in panels[1]:
        axes.set_xlabel("seconds: own time (dark), model (pale)", fontsize=8.5)
    save(figure, "speed")

    figure, panels = canvas(1, 1, 8.4, 2.3)
    axes = panels[0, 0]
    for k, (name, seconds) in enumerate(fit["seconds"][::-1].items()):
        colour = GREEN if name == "EBLIME()" else GREY
        axes.hlines(k, 1e-3, seconds, color=colour, alpha=0.4)
        axes.plot(seconds, k, "o", color=colour)
        axes.annotate(f"   {_seconds(seconds)}", (seconds, k), va="center", fontsize=8.5)
    axes.set_yticks(range(len(fit)), fit.index[::-1])
    axes.set_xscale("log")
    axes.set_xlim(1e-3, axes.get_xlim()[1] * 4)
    axes.set_xlabel("seconds, logarithmic scale", fontsize=8.5)
    save(figure, "speed-posterior")

    ratios = {
        f"speed-{name}": f"{part.loc[ours, 'seconds'] / part.loc[theirs, 'seconds']:.2f}"
        for name, part, ours, theirs in (
            ("real-lime", real, "eblime", "lime"),
            ("real-captum", real, "eblime", "captum Lime"),
            ("real-forward", real, "eblime", "forward passes alone, channels last"),
            ("fit-ridge", fit, "EBLIME()", "BayesianRidge, scikit-learn"),
            ("row-lime", row, "eblime, background 50", "lime"),
            ("row-shap", row, "eblime, background 50", "shap, background 50"),
            ("text-lime", text, "eblime", "lime"),
            ("compat-row", row, "eblime.compat.lime, eblime", "lime"),
            ("compat-text", text, "eblime.compat.lime, eblime", "lime"),
            ("compat-photo", photo, "eblime.compat.lime", "lime"),
            ("compat-real", real, "eblime.compat.lime", "lime"),
        )
    }
    times = {
        f"times-{name}": f"{photo.loc[other, 'seconds'] / photo.loc['eblime', 'seconds']:.0f}"
        for name, other in (("lime", "lime"), ("captum", "captum Lime"), ("shap", "shap Partition"))
    }
    packages = {"eblime": "eblime", "lime": "lime", "captum": "captum Lime"}
    for start, part in (("seconds", real), ("own", photo)):
        times |= {f"{start}-{n}": _seconds(part.loc[p, "seconds"]) for n, p in packages.items()}
    shown = found[found["study"].isin(["speed-image", "speed-tabular", "speed-text", "speed-fit"])]
    rows = [
        [line["task"], line["name"], _seconds(line["seconds"]), _seconds(line["model_seconds"])]
        for line in shown.to_dict("records")
    ]
    head = ["task", "", "own time", "model's time, where separate"]
    many = tasks["one of 3000 rows, 1000 masks, logistic regression"]["seconds"]
    rates = {"lime": "lime, joblib, 2 processes", "eblime": "eblime, 2 workers"}
    return {
        **ratios,
        **times,
        **{f"rate-{name}": f"{1 / many[line]:.0f}" for name, line in rates.items()},
        "speed-numbers": table(head, rows, right=2),
        **gpu_part(tasks, changes, found[found["study"] == "speed-batch-gpu"]),
    }


def _seconds(value: float) -> str:
    """A time in milliseconds or seconds; empty if it is missing."""
    if np.isnan(value):
        return ""
    return f"{1e3 * value:.3g} ms" if value < 1 else f"{value:,.{0 if value >= 10 else 1}f} s"


def gpu_part(
    tasks: Mapping[str, pd.DataFrame], changes: pd.DataFrame, batch: pd.DataFrame
) -> dict[str, str]:
    """A GPU: times beside forward passes, photos per second, and the hours of ten million."""
    rows, changes = [], changes[changes["precision"] == "auto"].set_index("network")
    for name, change in changes.iterrows():
        seconds = tasks[str(name)]["seconds"]
        ours = seconds["eblime, auto"]
        layouts = ("forward passes alone", "forward passes alone, channels last")
        ratios = [f"{ours / seconds[layout]:.2f}" for layout in layouts]
        full = f"{seconds['eblime, full'] / seconds[layouts[1]]:.2f}"
        captum = f"{seconds['captum Lime'] / seconds[layouts[1]]:.1f}"
        rows.append([NETWORKS[str(name)], f"{1e3 * ours:.0f}", *ratios, full, captum])
        rows[-1] += [change["used"], f"{change['change']:.2f}"]
    head = ["network", "ms", "over forward passes", "in channels last", "full precision", "captum"]
    words = {"gpu-image": table([*head, "used", "change in sds"], rows)}
    wide = batch.pivot(index="task", columns="name", values="seconds")
    alone, together = wide["one after the other"], wide["in a run"]
    hours = 1e7 * together / 3600
    mixed = hours[[name for name in hours.index if "half" in name]]
    rows = [
        [name, f"{1 / alone[name]:.1f}", f"{1 / together[name]:.1f}", f"{hours[name]:.0f}"]
        for name in wide.index
    ]
    head = ["network", "photos per second, one after the other", "in a run"]
    return {
        **words,
        "gpu-run": f"{(alone / together).min():.1f} to {(alone / together).max():.1f}",
        "gpu-dollars": f"{round(3 * mixed.min(), -1):.0f} to {round(3 * mixed.max(), -1):,.0f}",
        "gpu-numbers": table([*head, "GPU hours of ten million"], rows),
    }

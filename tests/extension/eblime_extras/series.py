"""A domain: one-dimensional series, cut into windows that are hidden by their mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eblime.domains import Command, Domain, Option

_WIDTH, _HEIGHT = 640, 160  # of the picture in a page


@dataclass(frozen=True, kw_only=True, eq=False)
class SeriesScene:
    """A series and the ends of its windows."""

    values: np.ndarray  # (T,)
    edges: Sequence[int]  # (p + 1,) window j is values[edges[j] : edges[j + 1]]

    @property
    def domain(self) -> str:
        """Name of the domain."""
        return "series"

    @property
    def n_features(self) -> int:
        """Number of windows."""
        return len(self.edges) - 1

    @property
    def features(self) -> Sequence[str]:
        """Names of the windows, such as "steps 0-9"."""
        return [
            f"steps {start}-{end - 1}"
            for start, end in zip(self.edges[:-1], self.edges[1:], strict=True)
        ]

    @property
    def sizes(self) -> Sequence[int]:
        """Batch sizes worth trying."""
        return (64, 512, 4096)

    def inputs(self, masks: np.ndarray) -> np.ndarray:
        """One series per mask, (N, T)."""
        windows = np.split(self.values, self.edges[1:-1])
        hidden = np.concatenate([np.full(len(part), part.mean()) for part in windows])
        shown = np.repeat(masks, np.diff(self.edges), axis=1)
        return np.where(shown > 0.5, self.values, hidden)

    def details(self) -> Mapping[str, Sequence[Any]]:
        """First and last step of each window."""
        return {"start": list(self.edges[:-1]), "end": [edge - 1 for edge in self.edges[1:]]}


def read_series(values: Any, *, window: int = 10) -> SeriesScene:
    """Cut a series into windows.

    Parameters
    ----------
    values
        Numbers in the order of time.
    window
        Steps in a window; the last window may be shorter.
    """
    found = np.asarray(values, dtype=float)
    if found.ndim != 1 or not len(found) or not np.isfinite(found).all():
        raise ValueError(f"A series must be a list of finite numbers; got shape {found.shape}.")
    edges = [*range(0, len(found), window), len(found)]
    return SeriesScene(values=found, edges=edges)


def check_series(scene: SeriesScene) -> None:
    """Refuse a scene from a file whose windows do not fit its values."""
    steps = np.diff(scene.edges)
    if scene.edges[0] != 0 or scene.edges[-1] != len(scene.values) or not (steps > 0).all():
        raise ValueError("The windows of a series must cover it from start to end, in order.")


def series_view(explanation: Any) -> str:
    """The series as a line, over one rectangle per window that the page colours."""
    scene, mean = explanation.scene, explanation.posterior.mean
    x = _WIDTH / len(scene.values)
    most = np.abs(mean).max() or 1.0
    windows = "".join(
        f'<rect data-feature="{j}" x="{x * start:.1f}" y="0" width="{x * (end - start):.1f}" '
        f'height="{_HEIGHT}" fill="{"#009E73" if mean[j] > 0 else "#D55E00"}" '
        f'fill-opacity="{0.75 * abs(mean[j]) / most:.2f}"/>'
        for j, (start, end) in enumerate(zip(scene.edges[:-1], scene.edges[1:], strict=True))
    )
    low, high = scene.values.min(), scene.values.max()
    heights = _HEIGHT * (0.95 - 0.9 * (scene.values - low) / ((high - low) or 1.0))
    line = " ".join(f"{x * (t + 0.5):.1f},{y:.1f}" for t, y in enumerate(heights))
    return (
        f'<svg class="series" viewBox="0 0 {_WIDTH} {_HEIGHT}" tabindex="0" role="application" '
        'aria-label="The series; arrow keys go from one window to the next by importance">'
        f'{windows}<polyline points="{line}" fill="none" stroke="currentColor"/></svg>'
    )


def _items(
    argument: str, model: Callable[[], Any], options: Mapping[str, Any]
) -> list[tuple[str, str, Any]]:
    """A file with one number per line, or a folder of such files."""
    path = Path(argument)
    files = sorted(path.glob("*.txt")) if path.is_dir() else [path]
    return [(file.name, file.stem, np.loadtxt(file, ndmin=1)) for file in files]


SERIES = Domain(
    name="series",
    feature="window",
    scene=SeriesScene,
    read=read_series,
    check_scene=check_series,
    view=series_view,
    picture="series",
    command=Command(
        argument="A text file with one number per line, or a folder of such files.",
        example="eblime explain series pulse.txt --model model:score --window 12",
        items=_items,
        options=[Option("window", "Steps in a window.", type=int, minimum=1)],
    ),
)

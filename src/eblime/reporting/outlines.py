"""Superpixels as SVG outlines that follow the edges of their pixels exactly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["outlines"]


def outlines(labels: NDArray[np.intp]) -> list[str]:
    """An SVG path for each label 0 .. p - 1; empty for a label without pixels.

    A hole is a loop in the opposite direction, so that both fill rules leave it empty.
    """
    count = int(labels.max()) + 1
    edges: list[dict[tuple[int, int], list[tuple[int, int]]]] = [{} for _ in range(count)]
    padded = np.pad(labels, 1, constant_values=-1)
    inner = padded[1:-1, 1:-1]
    # directed edges between pixel corners (row, column), with the superpixel on the right
    for step, neighbour, start in (
        ((0, 1), padded[:-2, 1:-1], (0, 0)),  # border above: go right along the top
        ((1, 0), padded[1:-1, 2:], (0, 1)),  # border on the right: go down
        ((0, -1), padded[2:, 1:-1], (1, 1)),  # border below: go left
        ((-1, 0), padded[1:-1, :-2], (1, 0)),  # border on the left: go up
    ):
        rows, columns = np.nonzero(inner != neighbour)
        for label, row, column in zip(
            inner[rows, columns].tolist(),
            (rows + start[0]).tolist(),
            (columns + start[1]).tolist(),
            strict=True,
        ):
            edges[label].setdefault((row, column), []).append(step)
    return [_path(steps) for steps in edges]


def _path(edges: dict[tuple[int, int], list[tuple[int, int]]]) -> str:
    """Chain directed unit edges into closed loops; a straight run is one command.

    As many edges enter a corner as leave it, so every loop closes.
    """
    parts: list[str] = []
    while edges:
        first = corner = next(iter(edges))
        parts.append(f"M{first[1]} {first[0]}")
        run, last = 0, None
        while run == 0 or corner != first:
            step = edges[corner].pop()
            if not edges[corner]:
                del edges[corner]
            if last is not None and step != last:
                parts.append(_command(last, run))
                run = 0
            run, last = run + 1, step
            corner = (corner[0] + step[0], corner[1] + step[1])
        parts.append("z")  # closing the path draws the last run
    return "".join(parts)


def _command(step: tuple[int, int], run: int) -> str:
    """One straight run as a relative SVG command."""
    return f"{'v' if step[0] else 'h'}{run * (step[0] + step[1])}"

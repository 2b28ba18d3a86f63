"""Superpixels as vector outlines, exact to the pixel: what a page lets people point at."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["outlines"]


def outlines(labels: NDArray[np.intp]) -> list[str]:
    """An SVG path for each label 0 .. p - 1, along the edges of its pixels; "" where none is left.

    A hole is a loop of the opposite sense, so that either fill rule leaves it empty.
    """
    count = int(labels.max()) + 1
    edges: list[dict[tuple[int, int], list[tuple[int, int]]]] = [{} for _ in range(count)]
    padded = np.pad(labels, 1, constant_values=-1)
    inner = padded[1:-1, 1:-1]
    # directed edges between pixel corners (row, column), the superpixel always to the right
    for step, neighbour, start in (
        ((0, 1), padded[:-2, 1:-1], (0, 0)),  # nothing above: walk right along the top
        ((1, 0), padded[1:-1, 2:], (0, 1)),  # nothing right: walk down
        ((0, -1), padded[2:, 1:-1], (1, 1)),  # nothing below: walk left
        ((-1, 0), padded[1:-1, :-2], (1, 0)),  # nothing left: walk up
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
    """Chain directed unit edges into closed loops; straight runs become one command.

    As many edges enter a corner as leave it, so that every walk comes back to where it began.
    """
    parts: list[str] = []
    while edges:
        first = place = next(iter(edges))
        parts.append(f"M{first[1]} {first[0]}")
        run, last = 0, None
        while run == 0 or place != first:
            step = edges[place].pop()
            if not edges[place]:
                del edges[place]
            if last is not None and step != last:
                parts.append(_command(last, run))
                run = 0
            run, last = run + 1, step
            place = (place[0] + step[0], place[1] + step[1])
        parts.append("z")  # which draws the last run itself
    return "".join(parts)


def _command(step: tuple[int, int], run: int) -> str:
    """One straight run as a relative SVG command."""
    return f"{'v' if step[0] else 'h'}{run * (step[0] + step[1])}"

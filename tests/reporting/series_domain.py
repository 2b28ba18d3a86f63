"""A small domain of another package: a series cut into segments."""

import dataclasses
from collections.abc import Sequence
from html import escape

import numpy as np

from eblime.domains.record import Domain


@dataclasses.dataclass(frozen=True, kw_only=True)
class SeriesScene:
    """A series of numbers in segments of four."""

    values: np.ndarray
    features: Sequence[str]
    domain: str = "series"
    sizes: Sequence[int] = (32,)

    @property
    def n_features(self):
        """Number of segments."""
        return len(self.features)

    def inputs(self, masks):
        """Hidden segments are zero."""
        return self.values * np.repeat(masks, 4, axis=1)


def read(series):
    """Cut a series into segments."""
    names = [f"segment {j} <b>" for j in range(len(series) // 4)]
    return SeriesScene(values=np.asarray(series, dtype=float), features=names)


def view(explanation):
    """One rectangle per segment, and its name below."""
    marks = "".join(
        f'<rect data-feature="{j}" x="{10 * j}" width="10" height="20"/>'
        for j in range(explanation.scene.n_features)
    )
    names = "".join(
        f'<span data-feature="{j}">{escape(name)}</span> '
        for j, name in enumerate(explanation.features)
    )
    columns = 10 * explanation.scene.n_features
    return f'<svg viewBox="0 0 {columns} 20">{marks}</svg><p>{names}</p>'


def series_domain(**changes):
    """The record of the domain."""
    settings = {"name": "series", "feature": "segment", "scene": SeriesScene, "read": read}
    return Domain(**settings | {"view": view} | changes)

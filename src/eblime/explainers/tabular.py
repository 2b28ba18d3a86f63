"""`TabularExplainer`: rows of a table, by columns or groups of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eblime._checks import check_choice
from eblime._progress import Progress
from eblime._repr import settings_repr
from eblime.domains.tabular.background import Background, TableSettings, prepare
from eblime.domains.tabular.custom import UserPerturb
from eblime.domains.tabular.frames import as_frame
from eblime.domains.tabular.sparse_frame import SparseFrame
from eblime.domains.tabular.neighbourhood import PERTURB
from eblime.domains.tabular.subject import REPRESENTATIONS, TableSubject, open_row
from eblime.engine.targets import Labels
from eblime.explainers.base import BaseExplainer
from eblime.models.adapt import as_model, output_names
from eblime.protocols import Kernel, Method

__all__ = ["TabularExplainer"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TabularExplainer(BaseExplainer):
    """Explains what a model says of a row of a table, by its columns.

    Parameters
    ----------
    model
        Anything that scores rows: a scikit-learn pipeline, a gradient booster, a function, ... It
        is asked with tables of the background's kind: same columns, order and dtypes.
    background
        Rows that say what is usual, such as the training data: a pandas or polars frame, an array
        or a sparse matrix (whose features are the columns where the row is not zero).
    categorical
        Columns of numbers that are really categories, by name or number. Strings, booleans and
        categories are known by their dtype.
    representation
        "binary": is the feature in the same bin as the row's? "continuous": how far a number is
        from its mean, in standard deviations; categories stay binary.
    bins
        "quartile", "decile", "entropy" (needs `background_labels`), a list of edges for all columns
        of numbers, or a dictionary from column to edges or name.
    perturb
        How other values are drawn: "bins", each feature from the background by itself; "normal",
        the same with normals inside the bins, as lime does; "rows", whole rows of the background,
        which keeps correlations; or a function of (rng, n, row) that returns n rows.
    groups
        Columns that move together as one feature, such as dummies: {"job": ["job_a", "job_b"]}.
    around
        With "continuous": sample around the row (True) or around the mean, as lime does (False).
    names
        Names of the columns, where the background is an array.
    background_labels
        A label for each row of the background, for entropy bins.
    n_masks, kernel, method, batch_size, progress, labels
        As for `ImageExplainer`; the names of a classifier's classes are taken from it.
    design
        None lets chance decide which features stay in their bin, as lime does (but "bernoulli" for
        sparse matrices); a name or function says which are hidden, and those that are not keep the
        row's own values.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> people = np.column_stack([rng.integers(18, 80, 500), rng.random(500)])
    >>> older = lambda rows: (rows[:, 0] > 40).astype(float)
    >>> e = TabularExplainer(older, people, names=["age", "luck"]).explain([25, 0.5])
    >>> print(e.features[0], e.posterior.mean[0].round(1))
    age <= 34 -0.9
    """

    model: Any
    background: Any
    categorical: Sequence[str | int] | None = None
    representation: str = "binary"
    bins: str | Sequence[float] | Mapping[str, Any] = "quartile"
    perturb: str | UserPerturb = "bins"
    groups: Mapping[str, Sequence[str | int]] | None = None
    around: bool = True
    names: Sequence[str] | None = None
    background_labels: Any = None
    n_masks: int = 1000
    design: Any = None
    kernel: str | Kernel | None = None
    method: str | Method = "eblime"
    batch_size: int | None = None
    progress: Progress = None
    labels: Labels | None = None
    _settings: TableSettings = field(init=False, repr=False)
    _table: Background | SparseFrame = field(init=False, repr=False)

    about = ("representation", "bins", "perturb")

    def __post_init__(self) -> None:
        """Refuse settings that cannot work, and cut the background into bins, once."""
        check_choice("representation", self.representation, REPRESENTATIONS)
        if isinstance(self.perturb, str):
            check_choice("perturb", self.perturb, PERTURB)
        elif not callable(self.perturb):
            raise TypeError(f"`perturb` must be a name or a function; got {self.perturb!r}.")
        if self.design is not None and (
            self.representation == "continuous" or not isinstance(self.perturb, str)
        ):
            raise ValueError(
                "`design` must be None with representation='continuous' or a function as "
                "`perturb`: there chance decides."
            )
        if self.labels is None:
            object.__setattr__(self, "labels", output_names(self.model))
        self.check()
        known = None if self.background_labels is None else np.asarray(self.background_labels)
        settings = TableSettings(
            categorical=self.categorical, bins=self.bins, groups=self.groups, labels=known
        )
        frame = as_frame(self.background, self.names)
        if isinstance(frame, SparseFrame) and not isinstance(self.perturb, str):
            raise TypeError("`perturb` must be a name where the background is a sparse matrix.")
        if isinstance(frame, SparseFrame) and self.design is None:
            binary = self.representation == "binary"  # what is rarely not zero would not be seen
            object.__setattr__(self, "design", "bernoulli" if binary else None)
        table = frame if isinstance(frame, SparseFrame) else prepare(frame, settings)
        object.__setattr__(self, "_settings", settings)
        object.__setattr__(self, "_table", table)
        object.__setattr__(self, "model", as_model(self.model))

    def __repr__(self) -> str:
        """The model and the settings that differ from the defaults."""
        return settings_repr(self)

    @property
    def domain(self) -> str:
        """The name of the domain: "tabular"."""
        return "tabular"

    def subject(self, x: Any) -> TableSubject:
        """Read and check a row, so that it can be perturbed.

        A row is a dictionary, a pandas series, a frame of one row, or values in the columns' order.
        """
        return open_row(
            x,
            self._table,
            self._settings,
            representation=self.representation,
            around=self.around,
            perturb=self.perturb,
        )

"""`TabularExplainer`: rows of a table, by columns or groups of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime._checks import check_choice, check_count
from eblime._repr import describe, name_of
from eblime.domains.tabular.background import Background, TableSettings, prepare
from eblime.domains.tabular.frames import SparseFrame, as_frame
from eblime.domains.tabular.neighbourhood import BACKGROUND_ROWS, PERTURB, UserPerturb
from eblime.domains.tabular.row import REPRESENTATIONS, TableSubject, open_row
from eblime.explainers.base import BaseExplainer
from eblime.methods.regression import as_method


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TabularExplainer(BaseExplainer):
    """Explains a model's prediction for a row of a table, by its columns.

    Parameters
    ----------
    model
        Anything that scores rows: a scikit-learn pipeline, a gradient booster, a function, ... It
        gets tables of the background's kind, with the same columns, order and dtypes.
    background
        Typical rows, such as the training data: a pandas or polars frame, an array, or a sparse
        matrix (then the features are the columns in which the row is not zero). A single row is a
        reference to compare with. The explainer keeps a copy.
    categorical
        Columns of numbers that are categories, by name or number. Strings, booleans and
        categories are recognised by their dtype.
    representation
        "binary": whether a value is in the row's bin. "continuous": a number in standard deviations
        from its mean, so that its importance is a slope; numbers are drawn from normal laws around
        the row, or with "continuous-mean" around the mean, as in lime. Categories stay binary.
    bins
        How numbers are cut: "quartile", "decile", ("entropy", labels) with one label per row of the
        background, a list of edges, or a dictionary from column to one of these. Edges of a column
        of dates are dates.
    perturb
        Where the values of perturbed rows come from. "bins": each column independently from the
        background. "normal": the same, with normal distributions inside the bins, as in lime,
        rounded in columns of whole numbers. "rows": whole rows of the background, which keeps
        correlations. "background": all hidden columns from one row of the background, and the score
        of a mask is the mean over `rows_per_mask` such rows; interventional Shapley values, as
        shap's, need it. Or a function of (rng, n, row) that returns n rows.
    rows_per_mask
        Only for perturb="background": rows of the background per mask, each of which is a model
        call. None is all of them, or 100 at random for each mask if there are more. Fewer rows need
        fewer calls and have wider intervals. Of a background of more than 200 rows, 200 are kept,
        drawn at random when the explainer is made, or `rows_per_mask` if that is more.
    groups
        Columns that change together as one feature, such as dummy variables:
        {"job": ["job_a", "job_b"]}.
    names
        Names of the columns, for a background that is an array.
    n_masks, kernel, method, progress, labels, calls, cache
        See `eblime.explainers.base.BaseExplainer`.
    design
        None draws all values at random, as in lime: a feature is shown if its value is in the row's
        bin. A name or a function, as for the other explainers, chooses the hidden features
        instead, and the others keep the row's own values. For a sparse matrix None means
        "bernoulli"; with perturb="background" "adaptive" for `Quadrature`, else "paired".

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rng = np.random.default_rng(0)
    >>> people = np.column_stack([rng.integers(18, 80, 500), rng.random(500)])
    >>> older = lambda rows: (rows[:, 0] > 40).astype(float)
    >>> e = eblime.TabularExplainer(older, people, names=["age", "luck"]).explain([25, 0.5])
    >>> print(e.features[0], e.posterior.mean[0].round(1))
    age <= 34 -0.9

    Shapley values, as shap defines them for the same background:

    >>> shapley = eblime.Quadrature(index="shapley")
    >>> game = eblime.TabularExplainer(older, people[:50], perturb="background", method=shapley)
    >>> e = game.explain([25, 0.5])
    >>> bool(np.isclose(e.posterior.mean[0], 0.0 - older(people[:50]).mean()))
    True
    """

    background: Any
    categorical: Sequence[str | int] | None = None
    representation: str = "binary"
    bins: str | Sequence[Any] | Mapping[str, Any] = "quartile"
    perturb: str | UserPerturb = "bins"
    groups: Mapping[str, Sequence[str | int]] | None = None
    names: Sequence[str] | None = None
    rows_per_mask: int | None = None
    _: KW_ONLY
    design: Any = None
    _settings: TableSettings = field(init=False)
    _table: Background | SparseFrame = field(init=False)

    domain = "tabular"
    about = ("representation", "bins", "perturb", "rows_per_mask")

    def __post_init__(self) -> None:
        """Check and normalise the settings; read the background and cut it into bins."""
        self._check_perturbation()
        frame = as_frame(self.background, self.names)  # a copy
        if self.perturb == "background" and isinstance(frame, SparseFrame):
            raise TypeError("`perturb` must not be 'background' with a sparse matrix.")
        self._normalise(background=frame.native)
        self._make_loop()
        if self.perturb == "background" and self.design is None:
            rounds = getattr(self.loop.method, "functional", None) is not None
            self._normalise(loop=replace(self.loop, design="adaptive" if rounds else "paired"))
        bins, labels = _split_bins(self.bins)
        settings = TableSettings.read(frame.names, self.categorical, bins, self.groups, labels)
        self._normalise(_settings=settings)
        if not isinstance(frame, SparseFrame):
            most = self._most_rows
            table = prepare(frame, settings, by_value=most is not None, most=most)
            self._normalise(_table=table)
            return
        if not isinstance(self.perturb, str):
            raise TypeError("`perturb` must be a name if the background is a sparse matrix.")
        design = self.design
        if design is None and self.representation == "binary":
            design = "bernoulli"  # random rows would almost never show a rare column
        loop = replace(self.loop, design=design)
        loop.check()
        self._normalise(_table=frame, design=design, loop=loop)

    def _check_perturbation(self) -> None:
        """Refuse settings of the perturbation that are unknown or do not fit together."""
        check_choice("representation", self.representation, REPRESENTATIONS)
        if isinstance(self.perturb, str):
            check_choice("perturb", self.perturb, PERTURB)
        elif not callable(self.perturb):
            raise TypeError(f"`perturb` must be a name or a function; got {self.perturb!r}.")
        random = self.representation != "binary" or not isinstance(self.perturb, str)
        if self.design is not None and random:
            raise ValueError(
                "`design` must be None with representation='continuous' or with a function as "
                "`perturb`: their rows are random."
            )
        self._check_game()

    def _check_game(self) -> None:
        """Refuse settings that do not fit the game of a row."""
        game = self.perturb == "background"
        if self.rows_per_mask is not None:
            check_count("rows_per_mask", self.rows_per_mask)
            if not game:
                raise ValueError(
                    "`rows_per_mask` must be left out unless `perturb` is 'background'."
                )
        if game and self.representation != "binary":
            raise ValueError(
                "`representation` must be 'binary' if `perturb` is 'background'; got "
                f"{self.representation!r}."
            )
        if not game and getattr(as_method(self.method), "index", None) == "shapley":
            raise ValueError(
                "`perturb` must be 'background' for Shapley values of a row, which add up from the "
                "mean score of the background to the score of the row; got "
                f"{name_of(describe(self.perturb))}."
            )

    @property
    def description(self) -> dict[str, Any]:
        """How a row is read; bins by their name, without labels."""
        found = {name: getattr(self, name) for name in self.about}
        found["bins"], most = _split_bins(self.bins)[0], self._most_rows
        if most is None:
            del found["rows_per_mask"]
        elif len(self.background) > most:
            found["background"] = f"{most} of {len(self.background)} rows"
        return {name: describe(value) for name, value in found.items()}

    @property
    def _most_rows(self) -> int | None:
        """How many rows of the background a game keeps; None where there is no game."""
        if self.perturb != "background":
            return None
        return max(BACKGROUND_ROWS, self.rows_per_mask or 0)

    def subject(self, x: Any) -> TableSubject:
        """Read and check a row, so that it can be perturbed.

        Parameters
        ----------
        x
            A dictionary, a pandas series, a frame of one row, or values in the order of the
            columns.
        """
        return open_row(
            x,
            self._table,
            self._settings,
            representation=self.representation,
            perturb=self.perturb,
            rows_per_mask=self.rows_per_mask,
        )


def _split_bins(bins: Any) -> tuple[Any, NDArray[Any] | None]:
    """Bins without the labels of entropy bins, and these labels; None if there are none."""
    if isinstance(bins, Mapping):
        parts = {column: _split_bins(one) for column, one in bins.items()}
        labels = [found for _, found in parts.values() if found is not None]
        return {column: one for column, (one, _) in parts.items()}, labels[0] if labels else None
    if isinstance(bins, tuple) and len(bins) == 2 and isinstance(bins[0], str):
        return bins[0], np.array(bins[1])
    return bins, None

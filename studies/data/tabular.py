"""COMPAS and German credit, the tables of the paper's coverage study, and random forests."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eblime._types import IntArray
from studies.data.files import find

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.pipeline import Pipeline

__all__ = [
    "TABLES",
    "TableData",
    "boosted_trees",
    "compas",
    "forest",
    "german",
    "split_rows",
    "table_and_forest",
    "table_file",
]

_FILES = {  # path, URL and checksum
    "compas": (
        "tabular/compas-scores-two-years.csv",
        "https://raw.githubusercontent.com/propublica/compas-analysis/master/compas-scores-two-years.csv",
        "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
    ),
    "german": (
        "tabular/german.data",
        "https://archive.ics.uci.edu/ml/machine-learning-databases/statlog/german/german.data",
        "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
    ),
}
_GERMAN_COLUMNS = (
    ("checking", {"A11": "< 0", "A12": "0 to 200", "A13": ">= 200", "A14": "none"}),
    ("months", None),
    (
        "history",
        {
            "A30": "none",
            "A31": "all paid here",
            "A32": "paid so far",
            "A33": "delays",
            "A34": "critical",
        },
    ),
    (
        "purpose",
        {
            "A40": "new car",
            "A41": "used car",
            "A42": "furniture",
            "A43": "television",
            "A44": "appliances",
            "A45": "repairs",
            "A46": "education",
            "A47": "vacation",
            "A48": "retraining",
            "A49": "business",
            "A410": "other",
        },
    ),
    ("amount", None),
    (
        "savings",
        {
            "A61": "< 100",
            "A62": "100 to 500",
            "A63": "500 to 1000",
            "A64": ">= 1000",
            "A65": "unknown",
        },
    ),
    ("employed", {"A71": "no", "A72": "< 1 year", "A73": "1 to 4", "A74": "4 to 7", "A75": ">= 7"}),
    ("rate", None),
    (
        "status",
        {
            "A91": "man, divorced",
            "A92": "woman",
            "A93": "man, single",
            "A94": "man, married",
            "A95": "woman, single",
        },
    ),
    ("debtors", {"A101": "none", "A102": "co-applicant", "A103": "guarantor"}),
    ("residence", None),
    (
        "property",
        {"A121": "real estate", "A122": "savings plan", "A123": "car or other", "A124": "none"},
    ),
    ("age", None),
    ("plans", {"A141": "bank", "A142": "stores", "A143": "none"}),
    ("housing", {"A151": "rent", "A152": "own", "A153": "free"}),
    ("credits", None),
    (
        "job",
        {"A171": "unskilled, abroad", "A172": "unskilled", "A173": "skilled", "A174": "management"},
    ),
    ("liable", None),
    ("telephone", {"A191": "none", "A192": "yes"}),
    ("foreign", {"A201": "yes", "A202": "no"}),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableData:
    """A table and the classes to predict."""

    name: str
    data: pd.DataFrame
    target: NDArray[np.integer[Any]]  # (n,) 0 or 1
    classes: tuple[str, str]


def compas(extra: Sequence[str] = ()) -> TableData:
    """COMPAS: is the risk score of a defendant high? 6,172 rows after ProPublica's filter.

    Parameters
    ----------
    extra
        Further columns of the file to keep, such as "juv_fel_count".

    Examples
    --------
    >>> from studies.data.tabular import compas
    >>> table = compas()  # doctest: +SKIP
    >>> table.data.shape, table.classes  # doctest: +SKIP
    ((6172, 7), ('not high', 'high'))
    """
    import pandas as pd

    raw = pd.read_csv(table_file("compas"))
    kept = raw[
        raw["days_b_screening_arrest"].abs().le(30)
        & raw["is_recid"].ne(-1)
        & raw["c_charge_degree"].ne("O")
        & raw["score_text"].notna()
    ].reset_index(drop=True)
    stay = pd.to_datetime(kept["c_jail_out"]) - pd.to_datetime(kept["c_jail_in"])
    data = kept[["age", "sex", "race", "priors_count", "c_charge_degree", "two_year_recid"]].copy()
    data["days_in_jail"] = stay.dt.days.astype(float)
    data[list(extra)] = kept[list(extra)]
    target = kept["score_text"].eq("High").astype(int).to_numpy()
    return TableData(name="COMPAS", data=data, target=target, classes=("not high", "high"))


def german() -> TableData:
    """German credit (Statlog): is the risk good? 1,000 rows of 20 columns.

    Examples
    --------
    >>> from studies.data.tabular import german
    >>> table = german()  # doctest: +SKIP
    >>> table.data.shape, table.classes  # doctest: +SKIP
    ((1000, 20), ('bad', 'good'))
    """
    import pandas as pd

    names = [name for name, _ in _GERMAN_COLUMNS]
    text = table_file("german").read_text(encoding="ascii")
    raw = pd.read_csv(io.StringIO(text), sep=r"\s+", header=None, names=[*names, "class"])
    target = raw.pop("class").eq(1).astype(int).to_numpy()
    for name, codes in _GERMAN_COLUMNS:
        if codes is not None:
            raw[name] = raw[name].map(codes)
    return TableData(name="German credit", data=raw, target=target, classes=("bad", "good"))


TABLES = {"compas": compas, "german": german}


def table_file(name: str) -> Path:
    """The file of a table of `TABLES`."""
    return find(*_FILES[name])


@lru_cache(maxsize=2)
def table_and_forest(name: str) -> tuple[TableData, Any, IntArray]:
    """A table, its random forest, and the rows that the forest was not trained on."""
    table = TABLES[name]()
    return table, forest(table), split_rows(table)[1]


def forest(table: TableData, *, trees: int = 100, seed: int = 0) -> Pipeline:
    """A seeded random forest, trained on four fifths of a table."""
    from sklearn.ensemble import RandomForestClassifier

    model = RandomForestClassifier(trees, random_state=seed)
    return _fit(model, table, split_rows(table, seed)[0])


def boosted_trees(table: TableData, rows: IntArray) -> Pipeline:
    """Seeded boosted trees, trained on some rows of a table."""
    from sklearn.ensemble import GradientBoostingClassifier

    return _fit(GradientBoostingClassifier(random_state=0), table, rows)


def _fit(model: Any, table: TableData, rows: IntArray) -> Pipeline:
    """Train a classifier on some rows, with one-hot encoded text."""
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    words = [name for name in table.data if table.data[name].dtype.kind not in "uif"]
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), words), remainder="passthrough"
    )
    return make_pipeline(encode, model).fit(table.data.iloc[rows], table.target[rows])


def split_rows(table: TableData, seed: int = 0) -> tuple[IntArray, IntArray]:
    """Numbers of the rows that `forest` is trained on, four fifths, and of the others."""
    order = np.random.default_rng(seed).permutation(len(table.data))
    cut = len(order) * 4 // 5
    return order[:cut], order[cut:]

"""Array aliases shared by every layer."""

from __future__ import annotations

from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Columns = dict[str, list[Any]]  # of a table
Record = dict[str, object]  # by name
RNGLike = Union[int, np.random.SeedSequence, np.random.Generator, None]  # noqa: UP007

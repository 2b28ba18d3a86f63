"""The mathematics, pure: arrays in, frozen results out; NumPy and SciPy only.

Reading order: `spectrum` (one decomposition), `lam` (what it says about lambda), `student` and
`mixture` (the posterior of beta), `local` (a scale for each feature), `laws` (other laws).
"""

from eblime.core.laws import NoSpreadError

__all__ = ["NoSpreadError"]

"""The mathematics, pure: arrays in, frozen results out; NumPy and SciPy only.

Reading order: `spectrum` (one decomposition), `evidence` (what it says at every lambda), `lam` and
`lambda_quadrature` (the posterior of lambda), `student` and `mixture` (the posterior of beta),
`normal`, `draws` and `point` (other laws), `ranking`.
"""

from eblime.core.point import NoSpreadError

__all__ = ["NoSpreadError"]

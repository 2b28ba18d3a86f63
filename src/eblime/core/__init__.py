"""The mathematics, pure: arrays in, frozen results out; NumPy and SciPy only.

Reading order: `spectrum` (one decomposition), `evidence` (what it says at every lambda), `lam` and
`panels` (the posterior of lambda), `student` and `mixture` (that of beta), `posterior` (what users
hold).
"""

"""The numbers of the paper, for comparison: Zhong, Bhattacharya and Bukkapatnam (2023).

Coverage is Table 2 of the appendix, N = 100, 200 and 400; localisations are Table 1.
"""

from __future__ import annotations

__all__ = ["LOCALISED", "TABLE_2"]

_N = (100, 200, 400)
_ROWS = {
    "french-bulldog": ((84.1, 69.7, 43.5), (98.9, 98.1, 97.4)),
    "broccoli": ((81.0, 66.1, 47.1), (100.0, 100.0, 100.0)),
    "corn": ((85.1, 71.5, 50.1), (100.0, 99.4, 98.7)),
    "scuba-diver": ((87.5, 73.2, 61.2), (99.4, 97.2, 95.6)),
    "digit-1": ((89.9, 81.8, 64.2), (99.2, 97.8, 96.6)),
    "digit-2": ((93.3, 90.0, 83.8), (98.7, 97.5, 95.8)),
    "digit-3": ((90.7, 83.9, 68.5), (98.6, 97.9, 96.7)),
    "digit-4": ((93.2, 92.3, 87.9), (99.0, 97.6, 96.2)),
    "digit-5": ((91.1, 82.3, 70.5), (98.8, 97.2, 96.8)),
    "digit-6": ((93.8, 93.3, 90.9), (97.8, 97.0, 95.8)),
    "digit-7": ((90.6, 85.8, 76.8), (98.8, 97.5, 96.4)),
    "digit-8": ((93.4, 93.2, 90.2), (97.4, 96.8, 95.1)),
    "digit-9": ((94.5, 92.9, 92.8), (98.8, 96.4, 96.8)),
    "compas": ((45.7, 22.7, 9.8), (96.9, 95.8, 95.7)),
    "german": ((90.5, 90.6, 91.5), (99.8, 99.4, 98.1)),
}

TABLE_2: dict[str, dict[str, dict[int, float]]] = {
    dataset: {
        method: {n: value / 100 for n, value in zip(_N, values, strict=True)}
        for method, values in zip(("bayeslime", "eblime-paper"), rows, strict=True)
    }
    for dataset, rows in _ROWS.items()
}

LOCALISED = {"lime": (48, 69), "bayeslime": (48, 69), "eblime-paper": (50, 69)}

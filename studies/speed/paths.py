"""Ten paths through the library, timed in the environment of any version: see `speed-releases`.

Reads names of paths from standard input and prints the processor time of one turn of each. It
imports eblime and NumPy alone, so that it runs beside a version without this folder.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np


def paths() -> dict[str, Callable[[], object]]:
    """What is timed, by name; each is called once to warm up."""
    import eblime

    rng = np.random.default_rng(0)
    photo, table = rng.random((96, 96, 3)), rng.random((500, 12))
    words = " ".join(f"word{k}" for k in range(20))
    numbers = lambda rows: np.asarray(rows)[:, 0] - np.asarray(rows)[:, 1] ** 2  # noqa: E731
    image = eblime.ImageExplainer(
        lambda batch: batch[:, :40, :40].mean(axis=(1, 2, 3)),
        segmentation=("grid", {"rows": 7, "columns": 7}),
        n_masks=1000,
    )
    row = eblime.TabularExplainer(numbers, table, n_masks=256)
    text = eblime.TextExplainer(lambda texts: [t.count("word1") for t in texts], n_masks=1000)
    masks = rng.integers(0, 2, size=(1000, 40)).astype(float)
    scores = masks @ rng.normal(size=40) + rng.normal(size=1000)
    found = image.explain(photo)

    def many() -> object:
        with tempfile.TemporaryDirectory() as folder:
            return eblime.explain_many(row, table[:20], Path(folder) / "run", progress=False)

    def stored() -> object:
        with tempfile.TemporaryDirectory() as folder:
            return eblime.load(found.save(Path(folder) / "image.eblime"))

    return {
        "fit, 1,000 x 40": lambda: eblime.fit(masks, scores).interval(),
        "fit, Quadrature, 300 x 12": lambda: eblime.fit(
            masks[:300, :12], scores[:300], method="quadrature"
        ).interval(),
        "image, 1,000 masks": lambda: image.explain(photo).posterior.interval(),
        "row, 256 masks": lambda: row.explain(table[0]).posterior.interval(),
        "text, 1,000 masks": lambda: text.explain(words).posterior.interval(),
        "until top3": lambda: text.explain(words, until=eblime.TopK(3)),
        "run of 20 rows": many,
        "print": lambda: str(found),
        "page": found.to_html,
        "save and load": stored,
    }


def main() -> None:
    """Answer each line of standard input, the name of a path, with its time as JSON."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        known = paths()
    print(json.dumps([*known]), flush=True)
    for line in sys.stdin:
        job = known[json.loads(line)]
        try:
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                start = time.process_time()
                job()
                seconds = time.process_time() - start
        except Exception as error:
            print(json.dumps(f"{type(error).__name__}: {error}"), flush=True)
        else:
            print(json.dumps(seconds), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()

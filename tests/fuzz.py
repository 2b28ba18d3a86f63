"""Looks for files that crash `load` or `open_run`, guided by the lines of code that they reach.

python tests/fuzz.py [SECONDS]

Needs Linux and the extra [fuzz]. A file that is neither refused with a `ValueError` nor usable ends
the search; it is written as crash-... and `python tests/fuzz.py crash-...` repeats the error.
"""

import json
import sys
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np

SECONDS = 60
TREE, ARCHIVE, MANIFEST = (bytes([k]) for k in range(3))  # the first byte: what the others are


def seeds():
    """Whole files, the JSON of explanations, and the manifest of a run."""
    from mutations import samples, zipped

    import eblime

    for number, (tree, arrays) in enumerate(samples()):
        yield TREE + bytes([number]) + json.dumps(tree).encode()
        yield ARCHIVE + zipped(tree, arrays)
    rows = np.random.default_rng(0).random((20, 3))
    explainer = eblime.TabularExplainer(lambda table: table[:, 0], rows, n_masks=50)
    with tempfile.TemporaryDirectory() as folder:
        eblime.explain_many(explainer, rows[:3], f"{folder}/run", progress=False)
        yield MANIFEST + Path(folder, "run", "manifest.json").read_bytes()


def check(data):
    """Read a file as a user would; an error other than a `ValueError` is a finding."""
    from mutations import loaded, samples, use

    kind, rest = data[:1], data[1:]
    if kind == MANIFEST:
        check_manifest(rest)
        return
    if kind == TREE and rest:
        _, arrays = samples()[rest[0] % len(samples())]
        rest = archive(rest[1:], arrays)
    explanation = loaded(rest)
    if explanation is not None:
        use(explanation)


def archive(text, arrays):
    """An explanation file with any text in the place of its JSON."""
    from mutations import zipped

    return zipped(json.loads(text), arrays) if is_json(text) else text


def is_json(text):
    """Whether bytes are JSON."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def check_manifest(content):
    """Open a run folder with this manifest, with the checksum that it should have."""
    import eblime
    from eblime.batch.folder import with_checksum

    if is_json(content) and isinstance(found := json.loads(content), dict):
        content = json.dumps(with_checksum(found)).encode()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Path(folder, "manifest.json").write_bytes(content)
        with suppress(ValueError):
            repr(eblime.open_run(folder))


def mutate(data, most, seed):
    """Every second time a change of the JSON that keeps it JSON; else any change of bytes."""
    import atheris
    from mutations import change_tree

    rng = np.random.default_rng(seed)
    start = {TREE: 2, MANIFEST: 1}.get(data[:1])
    if start is not None and is_json(data[start:]) and rng.random() < 0.5:
        tree = json.loads(data[start:])
        if isinstance(tree, (dict, list)) and tree:
            change_tree(rng, tree)
            changed = data[:start] + json.dumps(tree).encode()
            if len(changed) <= most:
                return changed
    return atheris.Mutate(data, most)


def main():
    """Search for some seconds, or repeat one file."""
    import atheris

    words = sys.argv[1:]
    with tempfile.TemporaryDirectory() as corpus:
        with atheris.instrument_imports(include=["eblime"]):
            for number, seed in enumerate(seeds()):
                check(seed)
                Path(corpus, str(number)).write_bytes(seed)
        if words and not words[0].isdigit():
            check(Path(words[0]).read_bytes())
            return
        seconds = words[0] if words else SECONDS
        options = [f"-max_total_time={seconds}", "-timeout=30", "-rss_limit_mb=4096"]
        options += ["-max_len=65536", "-verbosity=0", "-print_final_stats=1"]
        atheris.Setup([sys.argv[0], *options, corpus], check, custom_mutator=mutate)
        atheris.Fuzz()


if __name__ == "__main__":
    main()

"""Small saved explanations, random damage that keeps the archive readable, and what must hold."""

import copy
import functools
import io
import json
import warnings
import zipfile

import numpy as np

import eblime
from eblime.results.storage import pack, unpack

SCRIPT = "</script><script>window.hacked = 1</script>"
REFRESH = '<meta http-equiv="refresh" content="0;url=http://example.org/">'
VALUES = (
    None,
    True,
    -1,
    0,
    1,
    2,
    7,
    10**6,
    10**30,
    2**200,
    10**400,
    -0.0,
    0.5,
    1e-320,
    1e-12,
    1e149,
    1e308,
    float("nan"),
    float("inf"),
    float("-inf"),
    "",
    "a",
    "x" * 5000,
    SCRIPT,
    REFRESH,
    "\x1b[2J\u2028\ud800",
    [],
    {},
    {"array": 0},
    {"array": "array-0"},
    {"name": "Path", "settings": {}},
    {"ref": 0},
)
NUMBERS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-320, 1e-12, 1e149, -1e149, 1e308, np.nan, np.inf, -np.inf)


@functools.cache
def samples():
    """One small file for each kind of input and law, as JSON tree and arrays."""
    grid = ("grid", {"rows": 2, "columns": 2})
    pixels = np.random.default_rng(0).integers(1, 256, (6, 8, 3), dtype=np.uint8)
    bright = lambda batch: batch.reshape(len(batch), -1)[:, ::7].mean(axis=1) / 255  # noqa: E731
    image = {"segmentation": grid, "hide": 0, "n_masks": 14, "design": "bernoulli"}
    paper = eblime.EBLIME.paper(n_lambdas=12, draws=15)
    table = np.random.default_rng(1).normal(size=(30, 3))
    explanations = [
        eblime.ImageExplainer(bright, **image).explain(pixels),
        eblime.ImageExplainer(bright, **image, method=paper).explain(pixels / 255),
        eblime.ImageExplainer(bright, **image, method="bayeslime").explain(pixels[..., 0]),
        eblime.TextExplainer(lambda texts: [len(t) / 9 for t in texts], n_masks=12).explain(
            "one two, two four"
        ),
        eblime.TabularExplainer(
            lambda rows: rows[:, 0] - rows[:, 1], table, n_masks=12, method="lime"
        ).explain(table[0]),
        eblime.TabularExplainer(lambda rows: rows[:, 0], table, n_masks=12).explain(table[0]),
        eblime.PromptExplainer(
            lambda prompts: [len(p) / 9 for p in prompts], ["a", "bc", "def"], n_masks=12
        ).explain("why?"),
        eblime.SignalExplainer(
            lambda batch: batch[:, :, :9].mean(axis=(1, 2)),
            segmentation=("windows", {"n": 4}),
            n_masks=12,
        ).explain(table.T),
        eblime.VolumeExplainer(
            lambda batch: batch[:, :2].mean(axis=(1, 2, 3)),
            segmentation=("blocks", {"n": 2}),
            n_masks=12,
        ).explain(np.random.default_rng(2).random((4, 4, 4))),
    ]
    found = [parts(pack(explanation)) for explanation in explanations]
    for tree, _ in found:  # what networks with many classes and stop rules store
        tree["provenance"] |= {"top_classes": [["cat", 0.5], ["dog", 0.25]], "stopped": "sure"}
    return found


def parts(content):
    """The JSON tree and the bytes of each array, by name."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        tree = json.loads(archive.read("explanation.json"))
        names = [name for name in archive.namelist() if name.endswith(".npy")]
        return tree, {name.removesuffix(".npy"): archive.read(name) for name in names}


def zipped(tree, arrays, method=zipfile.ZIP_DEFLATED):
    """A file of a tree and arrays, with checksums that are right."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr("explanation.json", json.dumps(tree))
        for name, data in arrays.items():
            archive.writestr(f"{name}.npy", data)
    return buffer.getvalue()


def npy(array):
    """An array in NumPy's format."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def mutated(rng):
    """The content of a file with one to three changes somewhere."""
    tree, arrays = samples()[rng.integers(len(samples()))]
    tree, arrays = copy.deepcopy(tree), dict(arrays)
    if rng.random() < 0.05:
        content = bytearray(zipped(tree, arrays))
        content[rng.integers(len(content))] ^= int(rng.integers(1, 256))
        return bytes(content)
    for _ in range(rng.integers(1, 4)):
        if rng.random() < 0.6:
            change_tree(rng, tree)
        else:
            name = list(arrays)[rng.integers(len(arrays))]
            arrays[name] = _changed_array(rng, arrays[name])
    return zipped(tree, arrays)


def loaded(content):
    """The explanation, or None where the file is refused with a message that names it."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # changed answers give other importances
        try:
            return unpack(content, "strange.eblime")
        except ValueError as error:
            message = str(error)
    assert "strange.eblime" in message
    assert len(message) < 2000
    return None


def use(explanation):
    """Everything that shows an explanation."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        for words in (str(explanation), repr(explanation)):
            assert "\x1b" not in words
        page = explanation.to_html()
        assert REFRESH not in page
        page.encode("utf8")
        explanation._repr_html_()
        json.loads(explanation.to_json())
        explanation.to_frame()


def places_of(node, found=None):
    """Every (container, key) of a tree."""
    found = [] if found is None else found
    keys = list(node) if isinstance(node, dict) else range(len(node))
    for key in keys:
        found.append((node, key))
        if isinstance(node[key], (dict, list)):
            places_of(node[key], found)
    return found


def change_tree(rng, tree):
    """Replace, remove, repeat or exchange one node."""
    places = places_of(tree)
    node, key = places[rng.integers(len(places))]
    way = rng.random()
    if way < 0.6:
        node[key] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])
    elif way < 0.75:
        del node[key]
    elif way < 0.85 and isinstance(node, list):
        node.insert(key, copy.deepcopy(node[key]))
    else:
        other, place = places[rng.integers(len(places))]
        node[key] = copy.deepcopy(other[place])


def _changed_array(rng, data):
    """Another entry, a flipped byte, another shape, another type, or another array."""
    way = rng.random()
    if way < 0.2:
        changed = bytearray(data)
        changed[rng.integers(len(changed))] ^= int(rng.integers(1, 256))
        return bytes(changed)
    try:
        array = np.load(io.BytesIO(data))
    except Exception:  # a change before this one broke its header
        return data
    if way < 0.7 and array.size:
        value = NUMBERS[rng.integers(len(NUMBERS))]
        with np.errstate(all="ignore"):
            array = array.copy()
            array.flat[rng.integers(array.size)] = np.array(value).astype(array.dtype)
    elif way < 0.8:
        array = array[: len(array) // 2] if rng.random() < 0.5 else np.concatenate([array, array])
    elif way < 0.9:
        with np.errstate(all="ignore"):
            array = array.astype(("f4", ">f8", "i4", "u1", "?", "c16")[rng.integers(6)])
    else:
        array = array.T if rng.random() < 0.5 else array * 0
    return npy(array)

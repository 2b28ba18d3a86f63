"""How an explanation was made: its settings as pairs of a heading and a sentence."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

from eblime.kernels import ExponentialKernel, kernel_of_repr
from eblime.protocols import ScalarLaw
from eblime.results.explanation import Explanation
from eblime.results.notes import stop_sentence

__all__ = ["describe_input", "describe_kernel", "describe_object", "settings"]

_LONGEST = 400  # longer representations are not parsed
_DISTANCES = {
    "euclidean": "the Euclidean distance",
    "cosine": "the cosine distance",
    "hamming": "the share of hidden features",
}
_PHRASES: dict[tuple[str, Any], str] = {
    ("intercept", "flat"): "free intercept",
    ("intercept", "none"): "no intercept",
    ("intercept", "penalised"): "penalised intercept",
    ("standardize", True): "standardised scores",
    ("standardize", False): "scores in their own units",
    ("grid", None): "all ridge parameters integrated",
    ("local", True): "a scale for each feature",
    ("local", False): "a common scale",
}
_NAMES = {
    "a": "noise prior shape",
    "alpha": "ridge parameter",
    "b": "noise prior scale",
    "draws": "number of draws",
    "grid": "ridge parameters from a grid",
    "n_lambdas": "number of ridge parameters",
    "scale": "prior scale",
    "upper": "largest ridge parameter",
}
_INPUT: dict[tuple[str, str], str] = {
    ("segmentation", "slic"): "superpixels by SLIC",
    ("segmentation", "quickshift"): "superpixels by quickshift",
    ("segmentation", "felzenszwalb"): "superpixels by Felzenszwalb's method",
    ("segmentation", "grid"): "superpixels of a grid",
    ("hide", "mean"): "hidden ones show their mean colour",
    ("hide", "blur"): "hidden ones are blurred",
    ("hide", ""): "hidden ones are left out",
    ("representation", "binary"): "whether the value stays in its bin or category",
    ("representation", "continuous"): "numbers by their distance from the mean",
    ("bins", "quartile"): "bins are quartiles",
    ("bins", "decile"): "bins are deciles",
    ("bins", "entropy"): "bins by entropy",
    ("perturb", "bins"): "other values drawn from the background, each feature independently",
    ("perturb", "normal"): "other values drawn from normals inside the bins",
    ("perturb", "rows"): "other values from whole rows of the background",
    ("tokens", "word"): "words",
    ("tokens", "sentence"): "sentences",
    ("tokens", "char"): "characters",
    ("bag", "True"): "all occurrences together",
    ("bag", "False"): "each occurrence separately",
}
_DESIGNS = {
    "bernoulli": "each feature is shown with probability one half",
    "paired": "random, each mask followed by its opposite",
    "stratified": "random pairs of opposites, each size as often as it occurs among all masks",
    "leverage": "random pairs of opposites, all sizes equally often, with weights that correct it",
    "focused": "pairs of opposites, preferably where the prediction is uncertain",
    "information": "pairs of opposites, preferably those that narrow the intervals most",
    "adaptive": "pairs of opposites, chosen in rounds where they narrow the intervals most",
    "exhaustive": "all possible masks",
    "sizes": "first how many features to hide, then which ones, both uniformly",
    "None": "values drawn from the background decide which features stay in their bin",
}


def settings(explanation: Explanation) -> list[tuple[str, str]]:
    """The settings as pairs of a heading and a sentence, in reading order."""
    post, made = explanation.posterior, explanation.provenance
    design = "exhaustive" if explanation.exhaustive else str(made.get("design", "unknown"))
    kernel = describe_kernel(made.get("kernel", "unknown"), post.n_features)
    reading, seed, seconds = (made.get(name) for name in ("input", "seed", "seconds"))
    phrases, versions = describe_input(reading), made.get("versions")
    time = "" if seconds is None else f" in {seconds:.1f} s"
    pairs: list[tuple[str, str | None]] = [
        ("Features", f"{post.n_features}: {phrases}" if phrases else str(post.n_features)),
        ("Masks", f"{post.n_masks}: {_DESIGNS.get(design) or describe_object(design)}"),
        ("Weights", f"{kernel}; effective sample size {post.ess:.1f}"),
        ("Method", f"{post.method}: {describe_object(made.get('method', 'unknown'))}"),
        ("Ridge parameter", _ridge(post.extras.get("lam"))),
        ("Seed", "none: another run draws other masks" if seed is None else str(seed)),
        ("Model calls", f"{made.get('model_calls', 'unknown')} inputs{time}"),
        ("Stopped", stop_sentence(explanation) or None),
    ]
    if isinstance(versions, Mapping):
        pairs.append(("Versions", ", ".join(f"{name} {v}" for name, v in versions.items())))
    return [(heading, sentence) for heading, sentence in pairs if sentence is not None]


def _ridge(lam: ScalarLaw | None) -> str | None:
    """The posterior of lambda in a few words; None for a method without a ridge parameter."""
    if lam is None:
        return None
    low, high = lam.quantile([0.025, 0.975])
    if low == high:
        return f"fixed at {low:.4g}"
    return f"median {lam.median:.3g}, 95 % from {low:.3g} to {high:.3g}"


def describe_kernel(stored: object, n_features: int) -> str:
    """How masks are weighted, from the representation of the kernel."""
    kernel = kernel_of_repr(stored) if len(str(stored)) <= _LONGEST else None
    if not isinstance(kernel, ExponentialKernel):
        name = _function(str(stored))
        return "all masks count the same" if name == "uniform" else name or describe_object(stored)
    size = f"theta {_number(kernel.theta)}"
    if kernel.theta is None:
        size = f"width {_number(kernel.width_for(n_features))}"
    return f"exponential kernel on {_DISTANCES[kernel.distance]}, {size}"


def describe_object(stored: object) -> str:
    """The settings of an object, from its representation; other text is returned unchanged."""
    found = _call(str(stored))
    if found is None:
        return _function(str(stored)) or str(stored)
    phrases = [phrase for pair in found[1].items() if (phrase := _setting(*pair))]
    return ", ".join(phrases) or "no settings"


def describe_input(about: object) -> str:
    """How the input was read, as phrases separated by commas; empty if nothing was stored."""
    if not isinstance(about, Mapping):
        return ""
    return ", ".join(_input(str(name), str(setting)) for name, setting in about.items())


def _input(name: str, setting: str) -> str:
    """One setting of the input as a phrase."""
    known = _INPUT.get((name, setting))
    if known is not None:
        return known
    value = _literal(setting)
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], dict):
        options = ", ".join(f"{_with_spaces(str(key))} {entry}" for key, entry in value[1].items())
        return f"{_INPUT.get((name, str(value[0])), f'{name} {value[0]}')} ({options})"
    if setting.startswith("array("):
        return f"{_with_spaces(name)} as given in an array"
    function = _function(setting)
    return f"{_with_spaces(name)} by {function}" if function else f"{_with_spaces(name)} {setting}"


def _setting(name: str, value: Any) -> str:
    """One setting of an object as a phrase; empty for a setting that is None."""
    if isinstance(value, (str, bool, int, float, type(None))) and (name, value) in _PHRASES:
        return _PHRASES[name, value]
    if value is None:
        return ""
    text = _NAMES.get(name, _with_spaces(name))
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], dict):  # an object
        inner = ", ".join(phrase for pair in value[1].items() if (phrase := _setting(*pair)))
        return f"{text} ({inner})" if inner else text
    if isinstance(value, bool):
        return text if value else f"no {text}"
    return f"{text} {_number(value)}"


def _call(stored: str) -> tuple[str, dict[str, Any]] | None:
    """Name and settings of a representation such as `Kernel(width=2.0)`; None for other text."""
    tree = _expression(stored)
    return _settings(tree) if isinstance(tree, ast.Call) else None


def _settings(node: ast.Call) -> tuple[str, dict[str, Any]]:
    """Name and keyword settings of a call; settings that are calls are nested."""
    values: dict[str, Any] = {}
    for entry in node.keywords:
        if isinstance(entry.value, ast.Call):
            values[str(entry.arg)] = _settings(entry.value)
        else:
            text = ast.unparse(entry.value)
            values[str(entry.arg)] = text if (value := _literal(text)) is None else value
            if text == "None":
                values[str(entry.arg)] = None
    return ast.unparse(node.func), values


def _literal(text: str) -> Any:
    """The value of a Python literal; None for other text."""
    tree = _expression(text)
    try:
        return None if tree is None else ast.literal_eval(tree)
    except (ValueError, TypeError, RecursionError):
        return None


def _expression(text: str) -> ast.expr | None:
    """The text as a Python expression; None if it is not one or is too long."""
    try:
        return ast.parse(text, mode="eval").body if len(text) <= _LONGEST else None
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _function(stored: str) -> str:
    """The name of a function, from its representation; empty for other text."""
    found = re.match(r"<(?:bound method|function) (\S+?)(?: .*)?>$", stored)
    return "" if found is None else found[1]


def _with_spaces(name: str) -> str:
    """The name of a setting with spaces for underscores."""
    return name.replace("_", " ")


def _number(value: Any) -> str:
    """A number in four significant digits; other values unchanged."""
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    return f"{value:.4g}" if plain and abs(value) < 1e300 else str(value)

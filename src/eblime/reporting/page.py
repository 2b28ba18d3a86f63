"""One page for one or several explanations: nothing is fetched, nothing is sent, no string runs."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from eblime._files import write_whole
from eblime._text import printable
from eblime._version import __version__
from eblime.reporting.numbers import LEVELS, MOST, page_numbers, reading_order
from eblime.reporting.views import scene_view, text
from eblime.reporting.words import POOR, TOP_K_NOTE, cautions, fit_sentence, settings, top_classes
from eblime.results.explanation import Explanation

__all__ = ["report", "whole_page"]

_SHOWN = 12  # rows before "show all"
_LEGEND = '<figcaption class="legend">Green speaks for, orange against.</figcaption>'  # until drawn


def report(
    explanations: Explanation | Sequence[Explanation],
    path: str | os.PathLike[str] | None = None,
    *,
    title: str | None = None,
    k: int = 5,
) -> str:
    """One self-contained page about one or several explanations; written to `path` where given.

    Parameters
    ----------
    explanations
        One, or several in the order they are to be read.
    path
        Where to write the page; None only returns it.
    title
        Heading of the page; None is taken from what was explained.
    k
        How many features P(top k) is about.

    Returns
    -------
    str
        The page.
    """
    listed = [explanations] if isinstance(explanations, Explanation) else list(explanations)
    if not listed or not all(isinstance(entry, Explanation) for entry in listed):
        kinds = sorted({type(entry).__name__ for entry in listed})
        raise TypeError(
            "`explanations` must be an Explanation or a list of them, at least one; "
            f"got {', '.join(kinds) or 'an empty list'}."
        )
    heading = printable(_title(listed) if title is None else title)
    most = min(k, max(entry.scene.n_features for entry in listed))
    sections = "".join(_section(entry, place, k) for place, entry in enumerate(listed))
    page = whole_page(heading, _controls(most), f"{_contents(listed)}{sections}", _footer())
    if path is not None:
        write_whole(Path(path).resolve(), page.encode())
    return page


def whole_page(
    heading: str, controls: str, main: str, footer: str = "", *, scripted: bool = True
) -> str:
    """A page around its parts: style and script inside, and a policy that allows nothing else."""
    style, script = _asset("report.css"), _script() if scripted else ""
    allowed = f"script-src 'sha256-{_digest(script)}'" if scripted else "script-src 'none'"
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src 'sha256-{_digest(style)}'; {allowed}"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{text(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="generator" content="eblime {__version__}">\n'
        f"<title>{text(heading)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<header><h1><bdi>{text(heading)}</bdi></h1>{controls}</header>\n<main>\n"
        f"{main}</main>\n{footer}\n{f'<script>{script}</script>' if scripted else ''}\n"
        "</body>\n</html>\n"
    )


def _title(listed: Sequence[Explanation]) -> str:
    """What the page is about, where the user did not say."""
    return f"Why {listed[0].label!r}?" if len(listed) == 1 else f"{len(listed)} explanations"


def _controls(k: int) -> str:
    """Level, measure and theme; they work on every explanation of the page."""
    start = LEVELS.index(0.95)
    measures = "".join(
        f'<label><input type="radio" name="measure" value="{value}"{checked}>{word}</label>'
        for value, word, checked in (
            ("mean", "importance", " checked"),
            ("sd", "uncertainty", ""),
            ("top", f"P(top&nbsp;{k})", ""),
        )
    )
    return (
        '<div class="controls"><label class="level">credible level '
        f'<input id="level" type="range" min="0" max="{len(LEVELS) - 1}" step="1" value="{start}" '
        'aria-valuetext="95 %"><output id="level-shown" for="level">95 %</output></label>'
        f'<fieldset class="measure"><legend>colour by</legend>{measures}</fieldset>'
        '<label class="strength">overlay <input id="strength" type="range" min="0" max="100" '
        'step="5" value="75" aria-valuetext="75 %"></label>'
        '<label class="grey"><input id="grey" type="checkbox" checked>photo in grey</label>'
        '<button id="theme" type="button" aria-label="Light or dark">◐</button></div>'
    )


def _contents(listed: Sequence[Explanation]) -> str:
    """Links to the explanations of a page of several."""
    if len(listed) == 1:
        return ""
    items = "".join(
        f'<li><a href="#explanation-{place}"><bdi>{text(entry.label)}</bdi></a> '
        f"{entry.prediction:.3g}, {text(entry.posterior.method)}{_warning_sign(entry)}</li>"
        for place, entry in enumerate(listed)
    )
    return f'<nav aria-label="Explanations"><ol>{items}</ol></nav>'


def _warning_sign(entry: Explanation) -> str:
    """A sign beside an explanation whose line fits poorly."""
    return "" if entry.posterior.r2 >= POOR else ' <span title="poor linear fit">⚠</span>'


def _section(explanation: Explanation, place: int, k: int) -> str:
    """One explanation: what was explained, the picture, the chosen feature, all features."""
    post = explanation.posterior
    count = min(k, post.n_features)
    data = json.dumps(page_numbers(explanation, count), separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        data = data.replace(sign, f"\\u{ord(sign):04x}")
    notes = "".join(_note(note) for note in cautions(explanation))
    view = scene_view(explanation)
    rows = _rows(explanation)
    return (
        f'<section class="explanation" id="explanation-{place}">'
        f"<h2><bdi>{text(explanation.label)}</bdi>: {explanation.prediction:.4g}</h2>"
        f"{_classes(explanation)}"
        f'<p class="fit">{text(post.method)}, {text(post.n_masks)} masks. '
        f"{text(fit_sentence(explanation))}</p>{notes}"
        f'<div class="look">{f"<figure>{view}{_LEGEND}</figure>" if view else f"<div>{rows}</div>"}'
        '<aside class="detail" aria-live="polite"><p>Point at a feature.</p></aside></div>'
        f"{rows if view else ''}{_settings(explanation)}"
        f'<script type="application/json" class="numbers">{data}</script></section>'
    )


def _classes(explanation: Explanation) -> str:
    """The most likely classes and their probabilities, where they were stored."""
    items = "".join(
        f"<li><bdi>{text(label)}</bdi> <b>{chance:.3g}</b></li>"
        for label, chance in top_classes(explanation)
    )
    return f'<ol class="classes" aria-label="Most likely classes">{items}</ol>' if items else ""


def _note(words: str) -> str:
    """A caution in a box, coloured where the fit is poor."""
    kind = "note warning" if words.startswith("The linear fit is poor") else "note"
    return f'<p class="{kind}">{text(words)}</p>'


def _rows(explanation: Explanation) -> str:
    """The features as a table that stands without any script; the script draws the bars."""
    post, order = explanation.posterior, reading_order(explanation)
    body = "".join(
        f'<tr data-feature="{j}"{" class=more" if place >= _SHOWN else ""}>'
        f'<th scope="row"><bdi>{text(explanation.features[j])}</bdi></th>'
        f'<td class="bar"></td><td class="value">{post.mean[j]:.3g}</td><td class="ends"></td>'
        '<td class="chance"></td></tr>'
        for place, j in enumerate(order[:MOST])
    )
    left = len(order) - min(len(order), MOST)
    rest = f"<p>{left} less important features are left out of this page.</p>" if left else ""
    button = (
        f'<button type="button" class="all" aria-expanded="false">Show all {len(order) - left}'
        "</button>"
        if len(order) > _SHOWN
        else ""
    )
    return (
        '<table><thead><tr><th scope="col">feature</th><th scope="col">interval</th>'
        '<th scope="col">mean</th><th scope="col" class="ends-head">95 %</th>'
        f'<th scope="col">P(&gt;0)</th></tr></thead><tbody>{body}</tbody></table>{button}{rest}'
    )


def _settings(explanation: Explanation) -> str:
    """The settings in plain words, folded away."""
    pairs = "".join(
        f"<dt>{text(head)}</dt><dd>{text(words)}</dd>" for head, words in settings(explanation)
    )
    return f'<details><summary>How this was made</summary><dl class="made">{pairs}</dl></details>'


def _footer() -> str:
    """How to read the page."""
    return (
        "<footer><p>An importance says how much the score moves when the feature is shown rather "
        "than hidden, in the best weighted linear fit. Its interval says how well the masks asked "
        "about pin that number down; R² says how much of the model the fit explains. Green speaks "
        f"for, orange against. {TOP_K_NOTE}</p><p>Made by eblime {__version__}.</p></footer>"
    )


def _script() -> str:
    """The program of the page, from its parts."""
    return "".join(_asset(name) for name in ("zoom.js", "download.js", "report.js"))


def _asset(name: str) -> str:
    """A file that ships with the package."""
    return resources.files("eblime.reporting").joinpath("assets", name).read_text(encoding="utf8")


def _digest(content: str) -> str:
    """What a content-security-policy knows an inline block by."""
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()

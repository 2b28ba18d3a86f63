"""Jinja templates: every value is made printable and escaped, unless it is `Markup` already."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

from eblime._text import printable
from eblime._version import __version__
from eblime.plot.style import STRONGEST, sign_colour

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


def render(template: str, **values: object) -> Markup:
    """A template as HTML that other templates can include."""
    from markupsafe import Markup

    return Markup(_environment().get_template(template).render(values))


def render_page(
    template: str,
    *,
    scripts: Sequence[str] = ("zoom.js", "download.js", "report.js"),
    **values: object,
) -> str:
    """A template that extends `page.html.j2`: style and script are inside the page.

    The content-security policy of the page allows these two by their hashes and nothing else.
    """
    from markupsafe import Markup

    style, script = _asset("report.css"), "".join(map(_asset, scripts))
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src 'sha256-{_digest(style)}'; script-src 'sha256-{_digest(script)}'"
    )
    page = {"policy": policy, "style": Markup(style), "script": Markup(script)}
    return str(render(template, **page, version=__version__, **values))


@lru_cache(maxsize=1)
def _environment() -> Environment:
    """The templates of this package; an undefined name in one is an error."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise ImportError("Pages need jinja2: pip install jinja2.") from error
    environment = Environment(
        loader=PackageLoader("eblime.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_make_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["sign_colour"] = sign_colour
    environment.globals["strongest"] = STRONGEST
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment


def _make_printable(value: object) -> object:
    """A value of a template without control characters; HTML is returned unchanged."""
    from markupsafe import Markup

    return value if isinstance(value, Markup) else printable(value)


def _asset(name: str) -> str:
    return resources.files("eblime.reporting").joinpath("assets", name).read_text(encoding="utf8")


def _digest(content: str) -> str:
    """The hash by which a content-security policy identifies an inline block."""
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()

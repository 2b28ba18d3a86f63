"""`Domain`: everything the library needs to know about one kind of input.

A package adds a kind of input by one such record and an entry point of the group
`eblime.domains`. Functions may be given as objects or as "module:name", which is imported when it
is first needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Command", "Domain", "Option"]

Lazy = str | Callable[..., Any]  # a function, or "module:name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A setting of a domain on the command line."""

    name: str  # of the setting; --its-name on the command line
    help: str
    type: type = str  # str, int, float or bool
    default: Any = None
    many: bool = False  # may be given several times
    minimum: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """How `eblime explain NAME` and `eblime batch NAME` read their inputs.

    Parameters
    ----------
    argument
        Help text of the argument: what it may be.
    example
        One line that works.
    items
        (argument, model, options) -> list of (title, file stem, input), for `eblime explain`.
    inputs
        (argument, model, options) -> inputs of `explain_many`, for `eblime batch`.
    explainer
        (model, shared settings, options, argument) -> explainer. The default passes the options
        to the domain's explainer by name.
    options
        The domain's own options.
    defaults
        Default values of shared options that differ, such as {"design": "sizes", "top": 10}.
    """

    argument: str
    example: str
    items: Lazy
    inputs: Lazy | None = None
    explainer: Lazy | None = None
    options: Sequence[Option] = ()
    defaults: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Domain:
    """One kind of input: how it is read, saved, drawn and given on the command line.

    Parameters
    ----------
    name
        "image", "tabular", ...: the name of the command, and the `domain` of its scenes.
    feature
        What one feature is called: "superpixel".
    scene
        The class of its scenes, a dataclass; files store its fields.
    read
        (input, **settings) -> scene, for `eblime.Explainer`; None where an explainer of its own
        reads the inputs.
    explainer
        The explainer of its own; None is `eblime.Explainer`.
    design, kernel
        Defaults of `eblime.Explainer`.
    check_scene
        Refuses a scene whose fields do not fit together, for scenes that come from files.
    view
        (explanation, *, inline) -> HTML that shows the input with its features. An element with
        `data-feature="j"` is coloured by the page and can be pointed at. A page ignores `style`
        attributes; a notebook has no style sheet and sets `inline=True`.
    picture
        The plot kind that shows the input: "map".
    command
        The command line; None for a domain without one.
    """

    name: str
    feature: str
    scene: type
    read: Callable[..., Any] | None = None
    explainer: Lazy | None = None
    design: Any = "bernoulli"
    kernel: Any = None
    check_scene: Callable[[Any], None] = lambda scene: None
    view: Lazy | None = None
    picture: str = "intervals"
    command: Command | None = None

    def __repr__(self) -> str:
        """Its name."""
        return f"Domain({self.name!r})"

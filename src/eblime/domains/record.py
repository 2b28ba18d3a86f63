"""`Domain`: everything the library needs to know about one kind of input.

A package adds a kind of input by one such record and an entry point of the group
`eblime.domains`. Functions may be given as objects or as "module:name", which is imported when it
is first needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

__all__ = ["Command", "Domain", "Item", "Option"]

Lazy = str | Callable[..., object]  # a function, or "module:name"
Use = Literal["explainer", "model", "inputs", "result", "run"]


class Item(NamedTuple):
    """An input of `eblime explain`; a plain tuple (title, stem, input) works too.

    Parameters
    ----------
    title
        What the terminal and the page call it, such as its file name.
    stem
        Name of its result files, without the ending.
    input
        The input, or a function without arguments that reads it. The function is called when its
        turn comes, so that an input that cannot be read does not stop the others.
    path
        The file that the input comes from, which the results never overwrite.

    Examples
    --------
    >>> from pathlib import Path
    >>> from eblime.domains import Item
    >>> path = Path("notes.txt")
    >>> item = Item(title=path.name, stem=path.stem, input=path.read_text, path=path)
    >>> Item(title="note", stem="note", input="a short text").read()
    'a short text'
    """

    title: str
    stem: str
    input: object
    path: Path | None = None

    def read(self) -> Any:
        """The input."""
        return self.input() if callable(self.input) else self.input


@dataclass(frozen=True, slots=True)
class Option:
    """An option on the command line.

    Parameters
    ----------
    name
        "output_name" is `--output-name` on the command line.
    help
        One line for `--help`.
    short
        A short form, such as "-m".
    type
        `str`, `int`, `float`, `bool`, or `Path` for a file or folder. `eblime batch` stores its
        checksum and refuses to resume when it has changed. `--resume` reads it only if the user
        names it again or trusts the run, so it must not be a `str`.
    default
        None means that the option is not passed on, so that the explainer's default applies.
    required
        Whether the option must be given.
    many
        Whether the option may be repeated; its value is a list.
    minimum
        The smallest number that is allowed.
    choices
        All allowed values; empty if there are others.
    names
        A kind of the registry, such as "methods": `--help` and completion list its names.
    used_by
        "explainer": it is a setting of the explainer. "model": it is a setting of the model's file
        (`normalise`, `activation`, `output`). "inputs": it only says which inputs to read.
        `--help` has a section for each; "result" and "run" are two more.
    setting
        The setting that it sets, where that has another name. Error messages about the setting
        then name the option.
    parse
        From the value to that of the setting, such as `lambda text: text.split(",")`.
    batch
        Whether `eblime batch` has this option too.
    commas
        Whether a comma may be part of a value. If not, `--compare hide=0,blur` has two values.

    Examples
    --------
    >>> from eblime.domains import Option
    >>> option = Option("window_size", "Samples in a window.", type=int, minimum=1)
    >>> option.flag
    '--window-size'
    """

    name: str
    help: str
    _: KW_ONLY
    short: str = ""
    type: type = str
    default: Any = None
    required: bool = False
    many: bool = False
    minimum: float | None = None
    choices: Sequence[str] = ()
    names: str = ""
    used_by: Use = "explainer"
    setting: str | None = None
    parse: Callable[[Any], object] | None = None
    batch: bool = True
    commas: bool = False

    @property
    def flag(self) -> str:
        """The option as it is typed: `--output-name`."""
        return f"--{self.name.replace('_', '-')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """How `eblime explain NAME` and `eblime batch NAME` read their inputs.

    Parameters
    ----------
    argument
        Help text of the argument of `eblime explain`: what it may be.
    example
        An `eblime explain NAME ...` command that works; best one that works with `batch`, too.
    items
        (argument, load_model, options) -> list of `Item`, for `eblime explain`. `load_model()`
        returns the model; `options` maps each of the domain's options to its value.
    inputs
        (argument, load_model, options) -> inputs of `explain_many`, for `eblime batch`; None means
        those of `items`. The argument is a full path, or an address such as s3://bucket/folder.
    explainer
        (model, settings, options, argument) -> explainer. The settings are the shared ones and
        those of the options that are `used_by` the explainer. None passes them to the domain's
        explainer, by name.
    options
        The domain's own options.
    defaults
        Default values of shared options that differ, such as {"design": "bernoulli", "top": 10}.
    metavar
        Name of the argument in the usage line.
    help
        What `--help` says first; empty for a general sentence.
    batch_argument
        As `argument`, for `eblime batch`, if it differs.

    Examples
    --------
    >>> from pathlib import Path
    >>> from eblime.domains import Command, Item, Option
    >>> def items(argument, load_model, options):
    ...     paths = sorted(Path(argument).glob("*.csv"))
    ...     return [Item(title=p.name, stem=p.stem, input=p, path=p) for p in paths]
    >>> command = Command(
    ...     argument="A folder of series, one .csv file each.",
    ...     example="eblime explain series folder/ --model model.py:predict",
    ...     items=items,
    ...     options=[Option("parts", "Number of parts.", type=int, minimum=1)],
    ... )
    >>> [option.flag for option in command.options]
    ['--parts']
    """

    argument: str
    example: str
    items: Lazy
    inputs: Lazy | None = None
    explainer: Lazy | None = None
    options: Sequence[Option] = ()
    defaults: Mapping[str, object] = field(default_factory=dict)
    metavar: str = "INPUT"
    help: str = ""
    batch_argument: str = ""


def _accept_scene(scene: object) -> None:
    """Accept every scene; a domain with a lambda could not be sent to other processes."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Domain:
    """One kind of input: how it is read, saved, drawn and given on the command line.

    The registry names the explainers, views and commands of the built-in domains, which belong to
    other parts of the library.

    Parameters
    ----------
    name
        "image", "tabular", ...: the name of the command, and the `domain` of its scenes.
    feature
        What one feature is called: "superpixel".
    scene
        The class of its scenes, a dataclass; files store its fields.
    read
        `(input, **settings) -> scene`, for `eblime.Explainer`; None where an explainer of its own
        reads the inputs. A domain that draws its perturbed inputs itself returns a
        `protocols.Subject` instead of a scene, and has `design=None`.
    explainer
        The explainer of its own; None is `eblime.Explainer`.
    design, kernel
        Defaults of `eblime.Explainer`.
    check_scene
        Refuses a scene whose fields do not fit together, for scenes that come from files.
    view
        explanation -> HTML that shows the input with its features, for pages and notebooks. An
        element with `data-feature="j"` is coloured and can be pointed at.
    picture
        The plot kind that shows the input: "map".
    command
        A `Command`, or the "module:name" of one; None if the command line does not know the domain.

    Examples
    --------
    A series of numbers, cut into parts of equal length:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import eblime
    >>> from eblime.domains import Domain
    >>> @dataclass(frozen=True)
    ... class Series:
    ...     values: np.ndarray
    ...     parts: int
    ...     domain = "series"
    ...     sizes = (256,)  # batch sizes worth trying
    ...
    ...     @property
    ...     def n_features(self):
    ...         return self.parts
    ...
    ...     @property
    ...     def features(self):
    ...         return [f"part {k}" for k in range(self.parts)]
    ...
    ...     def inputs(self, masks):
    ...         return self.values * masks.repeat(len(self.values) // self.parts, axis=1)
    >>> domain = Domain(name="series", feature="part", scene=Series, read=Series)
    >>> last = lambda batch: batch[:, -1]
    >>> explainer = eblime.Explainer(last, domain, settings={"parts": 3})
    >>> [name for name, _ in explainer.explain(np.ones(6)).as_list(top=1)]
    ['part 2']
    """

    name: str
    feature: str
    scene: type
    read: Callable[..., object] | None = None
    explainer: Lazy | None = None
    design: object = "bernoulli"
    kernel: object = None
    check_scene: Callable[[Any], None] = _accept_scene
    view: Lazy | None = None
    picture: str = "intervals"
    command: Command | str | None = None

    def __repr__(self) -> str:
        return f"Domain({self.name!r})"

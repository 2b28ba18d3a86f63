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

Lazy = str | Callable[..., object]  # a function, or "module:name"
Use = Literal["explainer", "model", "inputs", "result", "run"]


class Item(NamedTuple):
    """An input of `eblime explain`; a plain tuple (title, stem, input) works too.

    The title is what the terminal and the page call it, the stem the name of its result files
    without the ending. The input may be a function that reads it when its turn comes, so that one
    that cannot be read does not stop the others. `path` is its file, which is never overwritten.

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
    name, help, short
        "output_name" is `--output-name`; one line for `--help`; a short form, such as "-m".
    type
        `str`, `int`, `float`, `bool`, or `Path` for a file or folder. `eblime batch --resume` reads
        it only if the user names it again or trusts the run, so it must not be a `str`.
    default, required, many
        None is not passed on, so that the explainer's default applies. An option with `many` may be
        repeated; its value is a list.
    minimum, choices, names
        The smallest number; all values, if there are no others; a kind of the registry, such as
        "methods", whose names `--help` and completion list.
    used_by
        "explainer": it is a setting of the explainer. "model": of the model's file (`normalise`,
        `activation`, `output`). "inputs": it only says which inputs to read. `--help` has a section
        for each; "result" and "run" are two more.
    setting, parse
        The setting that it sets, where that has another name, which errors then translate; and from
        the value to that of the setting, such as `lambda text: text.split(",")`.
    batch, commas
        Whether `eblime batch` has it too, and whether a comma may be part of a value: if not,
        `--compare hide=0,blur` has two values.

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
    argument, batch_argument, metavar, help
        Help text of the argument, and that for `eblime batch` if it differs; its name in the usage
        line; what `--help` says first.
    example
        An `eblime explain NAME ...` command that works, best with `batch` too.
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
    options, defaults
        The domain's own options; default values of shared options that differ, such as
        {"design": "bernoulli", "top": 10}.

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
    name, feature
        "image": the name of the command, and the `domain` of its scenes; "superpixel".
    scene, check_scene
        The class of its scenes, a dataclass whose fields files store; and a function that refuses
        one from a file whose fields do not fit together.
    read
        `(input, **settings) -> scene`, for `eblime.Explainer`; None where an explainer of its own
        reads the inputs. A domain that draws its perturbed inputs itself returns a
        `protocols.Subject` instead of a scene, and has `design=None`.
    explainer, design, kernel
        The explainer of its own, None is `eblime.Explainer`; defaults of that.
    view, picture
        explanation -> HTML that shows the input, for pages and notebooks, where an element with
        `data-feature="j"` is coloured and can be pointed at; the plot kind that shows it: "map".
    command
        A `Command`, or the "module:name" of one; None if the command line does not know the domain.

    Examples
    --------
    A series of numbers, cut in two:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import eblime
    >>> from eblime.domains import Domain
    >>> @dataclass(frozen=True)
    ... class Series:
    ...     values: np.ndarray
    ...     domain = "series"
    ...     sizes = (256,)  # batch sizes worth trying
    ...     n_features, features = 2, ("first half", "second half")
    ...
    ...     def inputs(self, masks):
    ...         return self.values * masks.repeat(len(self.values) // 2, axis=1)
    >>> domain = Domain(name="series", feature="part", scene=Series, read=Series)
    >>> explainer = eblime.Explainer(lambda batch: batch[:, -1], domain)
    >>> [name for name, _ in explainer.explain(np.ones(6)).as_list(top=1)]
    ['second half']
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

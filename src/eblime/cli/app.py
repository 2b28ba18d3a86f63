"""The `eblime` command."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from eblime._text import printable
from eblime._version import __version__
from eblime.cli.batch import batch_app, report
from eblime.cli.explain import explain_app
from eblime.cli.options import error_line
from eblime.cli.output import say
from eblime.cli.show import compare, demo, show

__all__ = ["app", "main"]

_INTERRUPTED = 130  # exit code

_ORDER = ("demo", "explain", "show", "compare", "batch", "report")  # of the commands


class _Ordered(TyperGroup):
    """Lists the commands in the order of their use."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of the commands."""
        return sorted(self.commands, key=_ORDER.index)


app = typer.Typer(
    name="eblime",
    cls=_Ordered,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(explain_app, name="explain")
app.command()(demo)
app.command()(show)
app.command()(compare)
app.add_typer(batch_app, name="batch")
app.command()(report)


def _version(wanted: bool) -> None:
    if wanted:
        say(f"eblime {__version__}")
        raise typer.Exit


@app.callback()
def _eblime(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; may be given anywhere.")
    ] = False,
) -> None:
    """Explain the predictions of any black-box model, with an error bar for every number.

    Try it: eblime demo

    Then: eblime explain image dog.jpg --model net.onnx

    `eblime COMMAND --help` has the options and an example of a command.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; an error is one line and exit code 2, a traceback with --debug."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    if not debug:
        warnings.showwarning = _show_warning
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # characters that the terminal lacks
    try:
        code = app(words, prog_name="eblime", standalone_mode=False)
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except Exception as error:
        if debug:
            raise
        code = _report(error, words)
    if code == _INTERRUPTED:
        say("Stopped.", error=True)
    sys.exit(code if isinstance(code, int) else 0)


def _report(error: Exception, words: Sequence[str]) -> int:
    """Print an error on one line; returns the exit code."""
    kind = type(error).__name__
    if kind == "Abort":  # how the parser reports Ctrl-C
        return _INTERRUPTED
    if kind == "NoArgsIsHelpError":
        say(str(error))
        return 0
    message = error_line(error, words)
    if hasattr(error, "format_message"):  # the parser's message about a wrong option
        message = " ".join(error.format_message().split()).rstrip(".")
        path = getattr(getattr(error, "ctx", None), "command_path", "eblime")
        flags = getattr(getattr(error, "param", None), "opts", ())
        pairs = pairwise(part for word in words for part in word.split("=", 1))
        value = next((after for word, after in pairs if word in flags), None)
        got = f"; got {value!r}" if value is not None and value not in message else ""
        message = f"{message}{got}. See {path} --help."
    say(f"Error: {message}", error=True)
    return getattr(error, "exit_code", 2) or 2


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning on one line, without the position in our code."""
    say(f"Warning: {printable(' '.join(str(message).split()))}", error=True)

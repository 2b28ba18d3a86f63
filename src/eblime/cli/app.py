"""The `eblime` command."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from itertools import pairwise

import click

from eblime import registry
from eblime._text import printable
from eblime._version import __version__
from eblime.cli.options import LazyGroup, error_line
from eblime.cli.output import say

_INTERRUPTED = 130  # exit code
_COMMANDS = {
    "demo": "eblime.cli.show:DEMO",
    "explain": "eblime.cli.explain:EXPLAIN",
    "show": "eblime.cli.show:SHOW",
    "compare": "eblime.cli.show:COMPARE",
    "batch": "eblime.cli.batch:BATCH",
    "report": "eblime.cli.batch:REPORT",
}


def _version(context: click.Context, option: object, wanted: bool) -> None:
    if wanted:
        say(f"eblime {__version__}")
        context.exit()


app = LazyGroup(
    "eblime",
    lambda: _COMMANDS,
    lambda name: registry.resolve(_COMMANDS[name]),
    context_settings={"help_option_names": ["-h", "--help"]},
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_version,
            help="Print the version.",
        ),
        click.Option(
            ["--debug"],
            is_flag=True,
            expose_value=False,
            help="Show the traceback of an error; may be given anywhere.",
        ),
    ],
    help="""Explain the predictions of any black-box model, with an error bar for every number.

    Try it: eblime demo

    Then: eblime explain image dog.jpg --model net.onnx

    `eblime COMMAND --help` has the options and an example of a command.
    """,
)


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
    if isinstance(error, click.Abort):  # how the parser reports Ctrl-C
        return _INTERRUPTED
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        say(str(error))
        return 0
    message = error_line(error, words)
    if isinstance(error, click.UsageError):
        message = " ".join(error.format_message().split()).rstrip(".")
        path = error.ctx.command_path if error.ctx else "eblime"
        flags = getattr(getattr(error, "param", None), "opts", ())
        pairs = pairwise(part for word in words for part in word.split("=", 1))
        value = next((after for word, after in pairs if word in flags), None)
        got = f"; got {value!r}" if value is not None and value not in message else ""
        message = f"{message}{got}. See {path} --help."
    say(f"Error: {message}", error=True)
    return 2


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning on one line, without the position in our code."""
    say(f"Warning: {printable(' '.join(str(message).split()))}", error=True)

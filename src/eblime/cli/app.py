"""The `eblime` command."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence

import click

from eblime import registry
from eblime._version import __version__
from eblime.cli.options import LazyGroup, error_line, option_of
from eblime.cli.show import say
from eblime.domains.record import Option

_INTERRUPTED = 130  # exit code
_COMMANDS = {
    "demo": "eblime.cli.show:DEMO",
    "explain": "eblime.cli.explain:GROUP",
    "show": "eblime.cli.show:SHOW",
    "compare": "eblime.cli.show:COMPARE",
    "batch": "eblime.cli.batch:BATCH",
    "report": "eblime.cli.batch:REPORT",
}


_version = click.version_option(
    __version__, message="%(prog)s %(version)s", help="Print the version."
)
app = LazyGroup(
    "eblime",
    lambda: _COMMANDS,
    lambda name: registry.resolve(_COMMANDS[name]),
    context_settings={"help_option_names": ["-h", "--help"]},
    params=[
        option_of(Option("debug", "Show the traceback of an error; give it anywhere.", type=bool))
    ],
    help="""Explain the predictions of any black-box model, with an error bar for every number.

    Try it: eblime demo

    Then: eblime explain image dog.jpg --model net.onnx

    `eblime COMMAND --help` has the options and an example of a command.
    """,
)
app = _version(app)


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
        sys.exit(app(words, prog_name="eblime", standalone_mode=False) or 0)
    except click.Abort:  # how the parser reports Ctrl-C
        say("Stopped.", error=True)
        sys.exit(_INTERRUPTED)
    except click.exceptions.NoArgsIsHelpError as error:
        say(str(error))
        sys.exit(0)
    except Exception as error:
        if debug:
            raise
        say(f"Error: {error_line(error, words)}", error=True)
        sys.exit(2)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning on one line, without the position in our code."""
    say(f"Warning: {' '.join(str(message).split())}", error=True)

"""Progress: on a terminal without asking, elsewhere on request."""

import io

import pytest

from eblime import _progress
from eblime._progress import telling


class Terminal(io.StringIO):
    """A standard error that somebody looks at."""

    def isatty(self):
        """As terminals say."""
        return True


def shown(monkeypatch, stream, progress, delay):
    """What a finished piece of work writes to a standard error."""
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(_progress, "_DELAY", delay)
    with telling(progress, 3, unit="mask") as tell:
        for done in range(4):
            tell(done)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("stream", "progress", "delay", "drawn"),
    [
        (Terminal, None, 0.0, True),
        (Terminal, None, 3600.0, False),  # quick work
        (Terminal, False, 0.0, False),
        (Terminal, True, 3600.0, True),
        (io.StringIO, None, 0.0, False),  # a file, a pipe, a notebook
        (io.StringIO, True, 0.0, True),
    ],
)
def test_a_bar_appears_on_a_terminal_when_work_takes_long(
    monkeypatch, stream, progress, delay, drawn
):
    """None decides by the terminal and the time; True and False do not look."""
    assert bool(shown(monkeypatch, stream(), progress, delay)) is drawn


def test_a_process_without_standard_error_is_quiet(monkeypatch):
    """Such as a service on Windows."""
    monkeypatch.setattr("sys.stderr", None)
    with telling(None, 1, unit="mask") as tell:
        tell(1)

"""Progress: on a terminal without asking, elsewhere on request."""

import io

import pytest

from eblime import _progress
from eblime._progress import progress_reporter


class Terminal(io.StringIO):
    """A standard error that is a terminal."""

    def isatty(self):
        """Always True."""
        return True


def shown(monkeypatch, stream, progress, delay):
    """What finished work writes to standard error."""
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(_progress, "_DELAY", delay)
    with progress_reporter(progress, 3, unit="mask") as report:
        for done in range(4):
            report(done)
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
def test_bar_appears_on_a_terminal_when_work_takes_long(
    monkeypatch, stream, progress, delay, drawn
):
    """None depends on the terminal and the time; True and False do not."""
    assert bool(shown(monkeypatch, stream(), progress, delay)) is drawn


@pytest.mark.parametrize("progress", [None, True])
@pytest.mark.parametrize("stream", [None, io.StringIO()])
def test_work_goes_on_without_a_standard_error(monkeypatch, stream, progress):
    """As in a service, on Windows for example, that has none or has closed it: there is no bar."""
    if stream is not None:
        stream.close()
    monkeypatch.setattr("sys.stderr", stream)
    with progress_reporter(progress, 3, unit="mask") as report:
        assert report(3) is None

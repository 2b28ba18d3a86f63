"""Files are written whole, by any number of threads, with the usual permissions."""

import os
import stat

import pytest

from eblime._files import write_whole


@pytest.mark.skipif(os.name == "nt", reason="Windows has no umask")
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o000, 0o666)])
def test_permissions_are_those_of_any_new_file(tmp_path, umask, mode):
    """A private umask gives a private file."""
    before = os.umask(umask)
    try:
        write_whole(tmp_path / "a", b"content")
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode
    assert (tmp_path / "a").read_bytes() == b"content"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_the_umask_of_the_process_is_not_changed(tmp_path, monkeypatch):
    """Not even for a moment: another thread may create a file, or read the umask, just then."""
    changes = []
    monkeypatch.setattr(os, "umask", lambda mask: changes.append(mask) or 0o077)
    write_whole(tmp_path / "a", b"content")

    assert changes == []


def test_an_error_while_writing_leaves_the_old_file(tmp_path, monkeypatch):
    """And no temporary file; the error names the path."""
    (tmp_path / "a").write_bytes(b"old")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: .*a'"):
        write_whole(tmp_path / "a", b"new")

    assert (tmp_path / "a").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_path_in_a_missing_folder_is_named(tmp_path):
    """Not the temporary file in it."""
    with pytest.raises(FileNotFoundError, match="nowhere/a'"):
        write_whole(tmp_path / "nowhere" / "a", b"")


def test_a_path_below_a_file_is_named(tmp_path):
    """Not the temporary file either."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError, match="Not a directory") as raised:
        write_whole(tmp_path / "file" / "a", b"")

    assert raised.value.filename == str(tmp_path / "file" / "a")


def test_a_folder_is_not_replaced(tmp_path):
    """The error names it, and not a temporary file."""
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match="folder'"):
        write_whole(tmp_path / "folder", b"content")

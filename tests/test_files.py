"""Files that appear whole or not at all."""

import os
import stat

import pytest

from eblime._files import write_whole


@pytest.mark.skipif(os.name == "nt", reason="Windows has no umask")
@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_new_file_has_the_usual_permissions(tmp_path, monkeypatch, mask):
    """Without a look at the umask: to read it is to change it, for all threads of the process."""
    before = os.umask(mask)
    try:
        with monkeypatch.context() as patch:
            patch.delattr(os, "umask")
            write_whole(tmp_path / "a", b"content")
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o666 & ~mask
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    """And no temporary one; the error names the path."""
    write_whole(tmp_path / "a", b"old")

    def full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match=r"No space left on device: .*a'"):
            write_whole(tmp_path / "a", b"new")
    with pytest.raises(OSError, match=r"There is no such folder.*missing"):
        write_whole(tmp_path / "missing" / "a", b"new")

    assert (tmp_path / "a").read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


def test_a_folder_is_not_replaced(tmp_path):
    """The error names it, and not a temporary file."""
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match=r"It must be a file; there is a folder: .*folder'"):
        write_whole(tmp_path / "folder", b"content")

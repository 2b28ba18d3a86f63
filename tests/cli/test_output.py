"""Folders for results."""

import threading

from eblime.cli.output import make_folder


def test_commands_may_write_to_one_folder_at_once(tmp_path):
    """Each of them checks that it is writable, and leaves nothing there."""
    failures, together = [], threading.Barrier(4)

    def check():
        together.wait(60)
        for _ in range(100):
            try:
                make_folder(tmp_path / "out")
            except OSError as error:
                failures.append(error)

    threads = [threading.Thread(target=check) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert list((tmp_path / "out").iterdir()) == []

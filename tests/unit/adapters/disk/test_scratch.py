"""Folders for what a command needs while it works."""

import os
import signal
import stat
from pathlib import Path

import pytest

from controller.adapters.disk.scratch import scratch_folder
from controller.adapters.process import signals


def test_it_is_this_users_alone_and_goes_with_the_block(tmp_path: Path) -> None:
    def fails() -> None:
        with scratch_folder("made-", tmp_path) as folder:
            (folder / "below").mkdir()
            (folder / "below" / "names").write_text("of a cluster")
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        fails()
    assert list(tmp_path.iterdir()) == []


def test_it_goes_where_a_signal_ends_the_process(tmp_path: Path) -> None:
    child = os.fork()
    if not child:
        try:
            signals.end_at_once(130)
            with scratch_folder("made-", tmp_path) as folder:
                (folder / "names").write_text("of a cluster")
                os.kill(os.getpid(), signal.SIGINT)
        finally:
            os._exit(70)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    assert list(tmp_path.iterdir()) == []

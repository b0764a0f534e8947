"""Folders for what a command needs while it works."""

import os
import signal
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from controller.adapters.disk.scratch import held_folder, scratch_folder
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


@contextmanager
def holding(prefix: str) -> Iterator[None]:
    """While another process holds a folder, with a file in it; it is killed then."""
    ready, told = os.pipe()
    child = os.fork()
    if not child:
        try:
            (held_folder(prefix) / "file").write_text("x")
            os.write(told, b"x")
            signal.pause()
        finally:
            os._exit(70)
    assert os.read(ready, 1) == b"x"
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(ready)
        os.close(told)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's folder for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_held_folder_is_this_users_alone(temporary: Path) -> None:
    folder = held_folder("held-")
    assert (folder.parent, folder.name[:5]) == (temporary, "held-")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_held_folder_stays_while_its_process_lives_and_goes_when_the_next_one_begins(temporary: Path) -> None:
    with holding("held-"):
        [lives] = temporary.iterdir()
        mine = held_folder("held-")
        assert (lives / "file").exists()
        assert sorted(temporary.iterdir()) == sorted([lives, mine])
    assert (lives / "file").exists(), "it was killed"
    other = held_folder("held-")
    assert sorted(temporary.iterdir()) == sorted([mine, other])


def test_folders_that_nobody_held_are_not_deleted(temporary: Path) -> None:
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir()
    for name in ("elsewhere/in-use", "held-file", "other-folder"):
        (temporary / name).touch()
    (temporary / "held-without").mkdir()
    (temporary / "held-link").symlink_to(elsewhere)
    before = sorted(temporary.iterdir())
    folder = held_folder("held-")
    assert sorted(temporary.iterdir()) == sorted([*before, folder])
    assert (elsewhere / "in-use").exists()

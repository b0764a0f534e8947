"""Leadership by a locked file."""

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from shutil import rmtree

import pytest

from controller.adapters.disk import files
from controller.adapters.folder.changes_lock import changes_locked, lock_in
from controller.adapters.folder.controls import FileControls
from controller.adapters.folder.leadership import FileLeadership, leader_in
from controller.model.errors import LeadershipLostError, StateError, TrimtabError
from controller.model.leadership import Leader, Leadership
from tests.contracts.leadership import Contender, LeadershipContract, after


def never() -> bool:
    return False


def at_once() -> bool:
    return True


def leader(folder: Path) -> FileLeadership:
    leadership = FileLeadership(folder)
    assert leadership.acquire(after(1))
    return leadership


class TestFileLeadership(LeadershipContract):
    @pytest.fixture
    def contender(self, tmp_path: Path) -> Contender:
        return lambda: FileLeadership(tmp_path)

    @pytest.fixture
    def leader(self, tmp_path: Path) -> Callable[[], Leader | None]:
        return lambda: leader_in(tmp_path)


def test_asking_who_leads_creates_nothing_and_takes_nothing(tmp_path: Path) -> None:
    assert leader_in(tmp_path / "none") is None
    assert list(tmp_path.iterdir()) == []
    first = leader(tmp_path)
    assert leader_in(tmp_path) == leader_in(tmp_path)
    first.check()


def test_a_leader_that_does_not_say_who_it_is_has_no_host(tmp_path: Path) -> None:
    first = leader(tmp_path)
    (tmp_path / "lock").write_text("?")
    found = leader_in(tmp_path)
    assert found is not None
    assert (found.host, found.process) == ("", 0)
    first.check()


def test_the_processes_of_one_machine_have_nothing_to_agree_on(tmp_path: Path) -> None:
    election: Leadership = leader(tmp_path)
    assert election.agreement("checkpoint") is None
    assert sorted(each.name for each in tmp_path.iterdir()) == ["lock"]


def test_a_process_told_to_stop_does_not_try_to_lead(tmp_path: Path) -> None:
    assert not FileLeadership(tmp_path).acquire(at_once)


def test_after_release_the_waiting_process_leads(tmp_path: Path) -> None:
    first, second = leader(tmp_path), FileLeadership(tmp_path)
    led: list[bool] = []
    waiting = threading.Thread(target=lambda: led.append(second.acquire(never)), daemon=True)
    waiting.start()
    first.release()
    waiting.join(10)
    assert led == [True]
    second.check()
    with pytest.raises(LeadershipLostError):
        first.check()


def test_a_deleted_lock_file_is_a_loss_that_acquire_settles(tmp_path: Path) -> None:
    first = leader(tmp_path)
    (tmp_path / "lock").unlink()
    second = leader(tmp_path)
    with pytest.raises(LeadershipLostError, match="lock"):
        first.check()
    assert first.lost()
    assert not first.session_lost()
    second.release()
    assert first.acquire(after(1))
    first.check()


def test_a_deleted_folder_is_a_loss_that_acquire_settles_and_one_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    first = leader(tmp_path / "election")
    rmtree(tmp_path / "election")
    with pytest.raises(LeadershipLostError, match="lock"):
        first.check()
    assert first.acquire(after(1))
    first.check()
    rmtree(tmp_path / "election")
    (tmp_path / "election").write_bytes(b"")
    with pytest.raises(TrimtabError, match="election/lock cannot be locked: File exists"):
        first.acquire(after(1))


def test_another_epoch_in_the_file_is_a_loss(tmp_path: Path) -> None:
    first = leader(tmp_path)
    first.claim(0)
    (tmp_path / "epoch").write_text("5\n")
    with pytest.raises(LeadershipLostError, match="5"):
        first.check()
    assert first.lost()


@pytest.mark.parametrize("content", [b"many\n", b"\xff\xfe", b"9" * 5000, b"-1", b""])
def test_an_epoch_that_is_no_number_is_refused_until_stop_all_writes_one(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "epoch").write_bytes(content)
    leadership = FileLeadership(tmp_path)
    assert leadership.acquire(lambda: False)
    with pytest.raises(StateError, match=r"epoch does not contain an epoch: `trimtab stop-all` starts a new one"):
        leadership.claim(0)
    controls = FileControls(tmp_path, cluster="demo")
    assert controls.epoch() == 0
    controls.raise_epoch(7)
    assert leadership.claim(0) == 8


LEAD_UNTIL_KILLED = """
import sys
from pathlib import Path
from controller.adapters.folder.controls import FileControls
from controller.adapters.folder.leadership import FileLeadership
leadership = FileLeadership(Path(sys.argv[1]))
assert leadership.acquire(lambda: False)
print(leadership.claim(0), flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_after_a_killed_leader_the_next_one_leads(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", LEAD_UNTIL_KILLED, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "1\n"
        mine = FileLeadership(tmp_path)
        assert not mine.acquire(after(2))
        os.kill(other.pid, signal.SIGKILL)
        other.wait(10)
        assert mine.acquire(after(50))
    assert mine.claim(0) == 2


def test_an_epoch_that_is_raised_while_another_is_claimed_is_not_lowered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`trimtab stop-all`, at the moment in which a leader has read the epoch and has not yet written its own."""
    first, store = leader(tmp_path), FileControls(tmp_path, cluster="standalone")
    raising = threading.Thread(target=store.raise_epoch, args=(9,))
    replace = files.replace

    def replaced(path: Path, content: bytes) -> None:
        if content == b"1\n":
            raising.start()
            raising.join(0.05)
        replace(path, content)

    monkeypatch.setattr(files, "replace", replaced)
    first.claim(0)
    raising.join()
    assert store.epoch() == 9
    with pytest.raises(LeadershipLostError, match="holds 9"):
        first.check()


def test_an_epoch_that_cannot_be_written_is_an_error_that_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = leader(tmp_path)

    def full(path: Path, _: bytes) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(files, "replace", full)
    with pytest.raises(TrimtabError, match=r"epoch cannot be written: No space left on device"):
        first.claim(0)


def test_a_lock_file_that_was_deleted_keeps_nobody_out_and_lets_no_two_in(tmp_path: Path) -> None:
    with changes_locked(tmp_path):
        lock_in(tmp_path).unlink()
        with changes_locked(tmp_path):
            pass
    entered = list[str]()

    def enter() -> None:
        with changes_locked(tmp_path):
            entered.append("second")

    with lock_in(tmp_path).open("w") as deleted:
        fcntl.flock(deleted, fcntl.LOCK_EX)
        second = threading.Thread(target=enter)
        second.start()
        time.sleep(0.03)
        lock_in(tmp_path).unlink()
        with changes_locked(tmp_path):
            deleted.close()
            second.join(0.05)
            assert entered == []
    second.join()
    assert entered == ["second"]

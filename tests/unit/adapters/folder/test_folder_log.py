"""The log in a folder: what executors, collectors and readers meet there and nowhere else."""

import errno
import fcntl
import os
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from controller.adapters.disk import files
from controller.adapters.folder import line_files
from controller.adapters.folder.names import numbered
from controller.log.factory import recording
from controller.log.inbox import AnswerRecord
from controller.model.errors import StateError, TrimtabError
from tests.folders import commands_in, inbox_in, issue, metrics_in
from tests.records import CLUSTER, PERIOD, T


def taken(folder: Path) -> list[bytes]:
    """What an executor gets that begins now."""
    with closing(inbox_in(folder)) as inbox:
        return [each.value for each in inbox.poll(1_000, 0.0)]


@pytest.mark.parametrize("content", [b"x", b"[]", b'{"done":"x"}', b'{"number":-5}', b'{"state":[[]]}'])
def test_a_position_that_is_damaged_is_told_with_what_to_do_and_keeps_no_lock(tmp_path: Path, content: bytes) -> None:
    place = tmp_path / "executor"
    place.mkdir()
    (place / "position.json").write_bytes(content)
    for _ in range(2):
        with (
            closing(inbox_in(tmp_path)) as inbox,
            pytest.raises(StateError, match=r"position.json: .* Delete it, and the executor reads all"),
        ):
            inbox.poll(1, 0.0)
    (place / "position.json").unlink()
    assert taken(tmp_path) == []


def test_a_lock_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    place = tmp_path / "executor" / "lock"
    place.parent.mkdir()
    place.symlink_to(place.name)
    for _ in range(2):
        with pytest.raises(TrimtabError, match="lock: Too many levels of symbolic links"):
            inbox_in(tmp_path)
    place.unlink()
    assert taken(tmp_path) == []


def test_files_that_are_deleted_while_the_log_is_read_are_passed_over(tmp_path: Path) -> None:
    for topic in ("commands", "results"):
        (tmp_path / topic).mkdir()
        # As one is seen that is listed, and gone when it is read.
        (tmp_path / topic / numbered(1)).symlink_to("gone")
        (tmp_path / topic / numbered(2)).write_bytes(b"{}\n")
    assert commands_in(tmp_path).poll() == [b"{}"]
    assert [*recording(tmp_path).backwards("results", (b"",))] == [b"{}"]


@pytest.mark.slow
def test_commands_are_taken_where_all_earlier_ones_were_deleted_and_not_where_older_ones_took_their_place(
    tmp_path: Path,
) -> None:
    issue(tmp_path, [b'{"id":1}'])
    with closing(inbox_in(tmp_path)) as inbox:
        assert len(inbox.poll(1, 0.0)) == 1
        inbox.answer([])
    [first] = (tmp_path / "commands").iterdir()
    first.rename(tmp_path / "first")
    time.sleep(1.1)  # numbers begin at the present second
    issue(tmp_path, [b'{"id":2}'])
    assert taken(tmp_path) == [b'{"id":2}']
    for path in (tmp_path / "commands").iterdir():
        path.unlink()
    (tmp_path / "first").rename(tmp_path / "commands" / numbered(7))
    with (
        closing(inbox_in(tmp_path)) as inbox,
        pytest.raises(StateError, match="commands before its position are missing"),
    ):
        inbox.poll(1, 0.0)


def test_no_result_comes_to_lie_before_a_tick_that_could_be_read_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector = metrics_in(tmp_path, cluster=CLUSTER)
    collector.tick(T, {})
    fsync, seen = os.fsync, list[str]()

    def names() -> list[str]:
        return sorted(path.name for path in (tmp_path / "results").glob("*.jsonl"))

    def tick() -> None:
        collector.tick(T + PERIOD, {})
        seen.extend(names())

    def slow(descriptor: int) -> None:
        # The executor's disk is slow, and meanwhile the interval ends.
        monkeypatch.setattr(os, "fsync", fsync)
        ticks.start()
        ticks.join(0.05)
        fsync(descriptor)

    ticks = threading.Thread(target=tick)
    issue(tmp_path, [b"{}"])
    with closing(inbox_in(tmp_path)) as inbox:
        inbox.poll(1, 0.0)
        replace = files.replace  # the position is stored before the results

        def stored(path: Path, content: bytes) -> None:
            replace(path, content)
            monkeypatch.setattr(os, "fsync", slow)

        monkeypatch.setattr(files, "replace", stored)
        inbox.answer([AnswerRecord(0, "", b'{"id":1}')])
    ticks.join()
    assert seen == [f"{T:015d}-000000.jsonl", f"{T:015d}-000001.jsonl", f"{T + PERIOD:015d}-000000.jsonl"]
    assert names() == seen


def test_a_process_that_hangs_while_it_writes_results_holds_up_no_tick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_files, "_TURN_SECONDS", 0.01)
    collector = metrics_in(tmp_path, cluster=CLUSTER)
    held = os.open(tmp_path / "results" / ".lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(held, fcntl.LOCK_EX)
    collector.tick(T, {})
    os.close(held)
    assert (tmp_path / "results" / f"{T:015d}-000000.jsonl").exists()


def test_what_is_written_at_once_lies_in_several_files_where_it_is_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_files, "_LARGEST", 100)
    collector = metrics_in(tmp_path, cluster=CLUSTER)
    lines = [b"%02d" % number * size for number, size in enumerate((20, 20, 30, 200, 1, 1, 49, 1))]
    collector.publish([("", line) for line in lines])
    found = [path.read_bytes().splitlines() for path in sorted((tmp_path / "metrics").glob("*.jsonl"))]
    assert found == [lines[:2], lines[2:3], lines[3:4], lines[4:6], lines[6:7], lines[7:]]
    collector.tick(T, {})
    assert (tmp_path / "metrics" / f"{T:015d}-000000.jsonl").exists()


def test_a_file_that_may_end_the_query_is_told_of_and_others_are_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    metrics_in(tmp_path, cluster=CLUSTER).tick(T, {})
    for name, size in (("a", 64 << 20), ("b", (64 << 20) + 1), ("c", 2 << 30)):
        with (tmp_path / "results" / f"{name}.jsonl").open("wb") as file:
            file.truncate(size)
        (tmp_path / "results" / f"link-{name}.jsonl").symlink_to("nowhere")
        line_files.warn_of_large_files(tmp_path)
    assert len(caplog.messages) == 2
    assert caplog.messages[0].startswith(f"{tmp_path / 'results' / 'b.jsonl'} is larger than 64 MiB, and Spark needs")
    assert "(spark.driver.memory), and so are 1 more files: if" in caplog.messages[1]


def no_locks(_: int, __: int) -> None:
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))  # as NFS without a lock service


def test_results_and_ticks_are_kept_apart_by_a_lock_that_nfs_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(descriptor: int, operation: int) -> None:
        # NFS asks the server for a lock of the file, which has to be open for writing.
        if not fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_RDWR:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        locked.append(operation)

    locked = list[int]()
    monkeypatch.setattr(fcntl, "flock", flock)
    metrics_in(tmp_path, cluster=CLUSTER).tick(T, {})
    assert set(locked) == {fcntl.LOCK_EX | fcntl.LOCK_NB}


@pytest.mark.parametrize("make", [Path.touch, os.mkfifo])
def test_a_lock_that_another_user_has_made_is_used_and_a_pipe_in_its_place_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None]
) -> None:
    def theirs(path: Path, flags: int, mode: int = 0o777) -> int:
        if Path(path) == tmp_path / "results" / ".lock" and flags & os.O_RDWR:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return opened(path, flags, mode)

    collector, opened = metrics_in(tmp_path, cluster=CLUSTER), os.open
    make(tmp_path / "results" / ".lock")
    monkeypatch.setattr(os, "open", theirs)
    ticks = threading.Thread(target=lambda: collector.tick(T, {}), daemon=True)
    ticks.start()
    ticks.join(10)
    assert not ticks.is_alive()
    assert len([*(tmp_path / "results").glob("*.jsonl")]) == 1


def test_a_file_system_that_locks_nothing_holds_up_nothing_and_is_told_of_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    collector, waits = metrics_in(tmp_path, cluster=CLUSTER), list[float]()
    monkeypatch.setattr(fcntl, "flock", no_locks)
    monkeypatch.setattr(time, "sleep", waits.append)
    for nth in range(3):
        collector.tick(T + nth * PERIOD, {})
    assert (waits, len([*(tmp_path / "results").glob("*.jsonl")])) == ([], 3)
    told = sorted(caplog.messages)
    assert len(told) == 2
    assert told[1].startswith(f"{tmp_path / 'results' / '.lock'} cannot be locked: No locks available: a result that")


def test_an_executor_that_cannot_lock_its_folder_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", no_locks)
    with pytest.raises(TrimtabError, match=r"executor/lock cannot be locked: No locks available$"):
        inbox_in(tmp_path, cluster=CLUSTER)

"""The log in a folder, as writers, readers, executors and collectors see it: their ports' contracts."""

import errno
import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from controller.adapters.folder import log as folder_log
from controller.adapters.folder.collectors import FolderCollectorLog
from controller.adapters.folder.inbox import FolderInbox
from controller.adapters.folder.journal import FolderJournal
from controller.adapters.folder.log import FolderCommandLog, FolderDeadLetterLog, FolderMetricsLog, as_lines
from controller.adapters.folder.tail import FolderTail
from controller.model.errors import StateError, TrimtabError
from controller.ports.inbox import AnswerRecord
from controller.ports.systems import ReadTopic
from tests.contracts.collectors import CollectorLogContract
from tests.contracts.inbox import InboxContract
from tests.contracts.log import CommandLogContract, DeadLetterLogContract, MetricsLogContract
from tests.records import CLUSTER, PERIOD, T


class Place:
    """A log in a folder: each topic is one partition."""

    partitions = 1

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._inbox: FolderInbox | None = None

    def metrics(self) -> FolderMetricsLog:
        return FolderMetricsLog(self._folder, cluster=CLUSTER)

    def commands(self) -> FolderCommandLog:
        return FolderCommandLog(self._folder)

    def dead_letters(self) -> FolderDeadLetterLog:
        return FolderDeadLetterLog(self._folder)

    def log(self) -> FolderCollectorLog:
        return FolderCollectorLog(self._folder, cluster=CLUSTER)

    def inbox(self) -> FolderInbox:
        self._inbox = FolderInbox(self._folder, cluster=CLUSTER)
        return self._inbox

    def issue(self, *events: bytes) -> None:
        commands = self._folder / "commands"
        commands.mkdir(exist_ok=True)
        (commands / f"{len(list(commands.iterdir())):015d}.jsonl").write_bytes(as_lines(events))

    def begin_epoch(self, epoch: int) -> None:
        journal = FolderJournal(self._folder, cluster=CLUSTER)
        journal.open()
        journal.begin_epoch(epoch)

    def records(self, topic: ReadTopic, partition: int) -> list[bytes]:
        assert partition == 0
        return self._lines(topic)

    def results(self) -> list[bytes]:
        return self._lines("results")

    def letters(self) -> list[bytes]:
        return self._lines("dead_letters")

    def _lines(self, topic: str) -> list[bytes]:
        paths = sorted((self._folder / topic).glob("*.jsonl"))
        return [line for path in paths for line in path.read_bytes().splitlines()]

    def close(self) -> None:
        if self._inbox is not None:
            self._inbox.close()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.close()


class TestFolderMetricsLog(MetricsLogContract):
    pass


class TestFolderCommandLog(CommandLogContract):
    pass


class TestFolderDeadLetterLog(DeadLetterLogContract):
    pass


class TestFolderInbox(InboxContract):
    pass


class TestFolderCollectorLog(CollectorLogContract):
    pass


@pytest.mark.parametrize("content", [b"", b"x", b"[]", b'{"file":5}', b'{"line":-5}', b'{"begun":[[]]}'])
def test_a_position_that_is_damaged_is_told_with_what_to_do_and_keeps_no_lock(tmp_path: Path, content: bytes) -> None:
    place = tmp_path / "executor"
    place.mkdir()
    (place / "position.json").write_bytes(content)
    for _ in range(2):
        with pytest.raises(StateError, match=r"position.json: .*: delete it, and the executor goes through"):
            FolderInbox(tmp_path, cluster=CLUSTER)
    (place / "position.json").unlink()
    FolderInbox(tmp_path, cluster=CLUSTER).close()


@pytest.mark.parametrize("wanted", ["results/1.jsonl", "executor/lock"])
def test_what_cannot_be_read_is_told_by_its_file_and_keeps_no_lock(tmp_path: Path, wanted: str) -> None:
    place = tmp_path / wanted
    place.parent.mkdir()
    place.symlink_to(place.name)
    for _ in range(2):
        with pytest.raises(TrimtabError, match=f"{place.name}: Too many levels of symbolic links"):
            FolderInbox(tmp_path, cluster=CLUSTER)
    place.unlink()
    FolderInbox(tmp_path, cluster=CLUSTER).close()


def test_files_that_are_deleted_while_the_log_is_read_are_passed_over(tmp_path: Path) -> None:
    for topic in ("commands", "results"):
        (tmp_path / topic).mkdir()
        # As one is seen that is listed, and gone when it is read.
        (tmp_path / topic / f"{1:015d}.jsonl").symlink_to("gone")
        (tmp_path / topic / f"{2:015d}.jsonl").write_bytes(b"{}\n")
    inbox = FolderInbox(tmp_path, cluster=CLUSTER)
    assert [each.value for each in inbox.take(10, 0)] == [b"{}"]
    inbox.close()
    assert FolderCommandLog(tmp_path).poll() == [b"{}"]
    assert [*FolderTail(tmp_path).backwards("results", (b"",))] == [b"{}"]


def test_no_result_comes_to_lie_before_a_tick_that_could_be_read_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector = FolderMetricsLog(tmp_path, cluster=CLUSTER)
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
    with closing(FolderInbox(tmp_path, cluster=CLUSTER)) as inbox:
        monkeypatch.setattr(os, "fsync", slow)
        inbox.answer([AnswerRecord(0, "", b'{"id":1}')])
    ticks.join()
    assert seen == [f"{T:015d}-000000.jsonl", f"{T:015d}-000001.jsonl", f"{T + PERIOD:015d}-000000.jsonl"]
    assert names() == seen


def test_a_process_that_hangs_while_it_writes_results_holds_up_no_tick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.adapters.folder.log._TURN_SECONDS", 0.01)
    collector = FolderMetricsLog(tmp_path, cluster=CLUSTER)
    held = os.open(tmp_path / "results" / ".lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(held, fcntl.LOCK_EX)
    collector.tick(T, {})
    os.close(held)
    assert (tmp_path / "results" / f"{T:015d}-000000.jsonl").exists()


def test_what_is_written_at_once_lies_in_several_files_where_it_is_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_log, "_LARGEST", 100)
    collector = FolderMetricsLog(tmp_path, cluster=CLUSTER)
    lines = [b"%02d" % number * size for number, size in enumerate((20, 20, 30, 200, 1, 1, 49, 1))]
    collector.publish([("", line) for line in lines])
    found = [path.read_bytes().splitlines() for path in sorted((tmp_path / "metrics").glob("*.jsonl"))]
    assert found == [lines[:2], lines[2:3], lines[3:4], lines[4:6], lines[6:7], lines[7:]]
    collector.tick(T, {})
    assert collector.has_tick(T)


def test_a_file_that_may_end_the_query_is_told_of_and_others_are_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    FolderMetricsLog(tmp_path, cluster=CLUSTER).tick(T, {})
    for name, size in (("a", 64 << 20), ("b", (64 << 20) + 1), ("c", 2 << 30)):
        with (tmp_path / "results" / f"{name}.jsonl").open("wb") as file:
            file.truncate(size)
        (tmp_path / "results" / f"link-{name}.jsonl").symlink_to("nowhere")
        folder_log.tell_large_files(tmp_path)
    assert len(caplog.messages) == 2
    assert caplog.messages[0].startswith(
        f"{tmp_path / 'results' / 'b.jsonl'} has more than 64 MiB, of which Spark needs"
    )
    assert "(spark.driver.memory), and so have 1 more: if" in caplog.messages[1]


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
    FolderMetricsLog(tmp_path, cluster=CLUSTER).tick(T, {})
    assert locked == [fcntl.LOCK_EX | fcntl.LOCK_NB]


@pytest.mark.parametrize("make", [Path.touch, os.mkfifo])
def test_a_lock_that_another_user_has_made_is_used_and_a_pipe_in_its_place_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None]
) -> None:
    def theirs(path: Path, flags: int, mode: int = 0o777) -> int:
        if Path(path).name == ".lock" and flags & os.O_RDWR:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return opened(path, flags, mode)

    collector, opened = FolderMetricsLog(tmp_path, cluster=CLUSTER), os.open
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
    collector, waits = FolderMetricsLog(tmp_path, cluster=CLUSTER), list[float]()
    monkeypatch.setattr(fcntl, "flock", no_locks)
    monkeypatch.setattr(time, "sleep", waits.append)
    for nth in range(3):
        collector.tick(T + nth * PERIOD, {})
    assert (waits, len([*(tmp_path / "results").glob("*.jsonl")])) == ([], 3)
    [told] = caplog.messages
    assert told.startswith(f"{tmp_path / 'results' / '.lock'} cannot be locked: No locks available: a result that")


def test_an_executor_that_cannot_lock_its_folder_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", no_locks)
    with pytest.raises(TrimtabError, match=r"executor/lock cannot be locked: No locks available$"):
        FolderInbox(tmp_path, cluster=CLUSTER)

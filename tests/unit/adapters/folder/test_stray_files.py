"""Files that are not trimtab's, in the folder of a log: they are passed over, and told of once."""

import errno
import json
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Event, Thread
from typing import Literal

import pytest
from typer.testing import CliRunner

from controller.adapters.folder.controls import FileControls
from controller.adapters.folder.leadership import FileLeadership, leader_in
from controller.adapters.folder.line_files import files_of
from controller.adapters.folder.names import numbered
from controller.adapters.recordings.record_log import Extent, StoredRecord
from controller.cli.app import app
from controller.log.factory import recording, records_in
from controller.log.files.log import FolderLog
from controller.model.errors import JournalError, TrimtabError
from controller.simulator.demo.settings import new_run
from tests.folders import collector_in, commands_in, entries_in, inbox_in, issue, journal_in, metrics_in
from tests.modelled_log import played, settings_in
from tests.records import CLUSTER, PERIOD, T

LAST = T + 3 * PERIOD
STRAYS = (
    f"journal/{numbered(9_999_999_999)[:-6]} copy.jsonl",
    "journal/9.jsonl",
    "journal/2024-backup.json",
    f"commands/{numbered(9_999_999_999)[:-6]} copy.jsonl",
    f"commands/{LAST:015d}.jsonl",
    "commands/old.jsonl",
)


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    """A log of four intervals, and a file of commands."""
    path = settings_in(tmp_path)
    played(path, 4)
    issue(tmp_path / "log", [b"{}", b"[]"])
    return path


def issued(log: Path) -> list[bytes]:
    """What executors and others read, but for the beginning of the leadership."""
    return [value for value in commands_in(log).poll() if b"trimtab.epoch" not in value]


def spoilt(log: Path) -> None:
    """Put strays into *log*; each holds what one of trimtab's files holds."""
    contents = {topic: min((log / topic).iterdir()).read_bytes() for topic in ("journal", "commands")}
    for name in STRAYS:
        (log / name).write_bytes(contents[name.partition("/")[0]])


def test_the_journal_and_the_commands_are_those_without_the_strays(
    conf: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = conf.parent / "log"

    def all_of_it() -> list[object]:
        records, end = records_in(log), recording(log)
        last = end.last_entry()
        return [
            end.journal_tail(2, b"").epoch,
            [entry.interval for entry in entries_in(log)],
            None if last is None else last.interval,
            commands_in(log).poll(),
            [*end.journal_backwards()],
            end.journal_tail(2, b""),
            [[*records.read(topic, records.extents(topic))] for topic in ("journal", "commands")],
        ]

    before = all_of_it()
    assert before[:3] == [1, [T + n * PERIOD for n in range(4)], LAST]
    spoilt(log)
    with caplog.at_level(logging.WARNING):
        assert all_of_it() == before
        assert all_of_it() == before
    (log / "journal" / "zzz.txt").write_bytes(b"nobody looks at it")
    assert all_of_it() == before
    told = [message.partition(": ")[0] for message in caplog.messages]
    assert sorted(told) == sorted(str(log / name) for name in STRAYS), "each once"


@pytest.fixture
def pipe() -> Iterator[Callable[[Path], Path]]:
    """Makes named pipes, each of which ends for whoever waits for it."""
    made, ends = list[tuple[Path, Thread]](), Event()

    def write(path: Path) -> None:
        while not ends.is_set():
            path.open("wb").close()

    def make(path: Path) -> Path:
        path.parent.mkdir(exist_ok=True)
        os.mkfifo(path)
        writer = Thread(target=write, args=[path])
        writer.start()
        made.append((path, writer))
        return path

    yield make
    ends.set()
    for path, writer in made:
        reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        writer.join()
        os.close(reading)


def test_a_named_pipe_or_a_device_among_records_is_not_waited_for_but_passed_over_and_told_of(
    conf: Path, caplog: pytest.LogCaptureFixture, pipe: Callable[[Path], Path]
) -> None:
    log = conf.parent / "log"
    # In front of all other files: a collector that leads reads the last ones alone.
    metrics, results = (pipe(log / topic / f"{1:015d}-000000.jsonl") for topic in ("metrics", "results"))
    commands = pipe(log / "commands" / numbered(1))
    last = pipe(log / "metrics" / f"{LAST:015d}-000900.jsonl")
    endless = log / "results" / f"{2:015d}-000000.jsonl"
    endless.symlink_to("/dev/zero")
    assert all(recording(log).backwards("metrics", (b"",)))
    assert all(recording(log).backwards("results", (b"",)))
    assert issued(log) == [b"{}", b"[]"]
    with closing(inbox_in(log, cluster=CLUSTER)) as inbox:
        assert [taken.value for taken in inbox.poll(1000, 0)][-2:] == [b"{}", b"[]"]
    collector = collector_in(log, cluster=CLUSTER)
    collector.lead(0)
    assert [*collector.arrived()]
    told = [message.partition(": is a folder, a named pipe")[0] for message in caplog.messages]
    assert sorted(told) == sorted(map(str, (metrics, results, commands, last, endless))), "each once"


def test_a_named_pipe_in_the_place_of_what_must_be_known_is_refused(conf: Path, pipe: Callable[[Path], Path]) -> None:
    log = conf.parent / "log"
    pipe(log / "executor" / "position.json")
    with (
        closing(inbox_in(log, cluster=CLUSTER)) as inbox,
        pytest.raises(TrimtabError, match=r"position\.json: it is a named pipe"),
    ):
        inbox.poll(1, 0.0)
    entry = pipe(log / "journal" / numbered(9_999_999_999))
    for read in (lambda log: [*entries_in(log)], lambda log: [*recording(log).journal_backwards()]):
        with pytest.raises(JournalError, match=rf"{entry.name}: .*it is a named pipe"):
            read(log)


def test_a_named_pipe_in_the_folder_of_an_election_is_refused(tmp_path: Path, pipe: Callable[[Path], Path]) -> None:
    controls, leadership = FileControls(tmp_path, cluster=CLUSTER), FileLeadership(tmp_path)
    assert leadership.acquire(lambda: False)
    asked: dict[str, list[Callable[[], object]]] = {
        "epoch": [controls.epoch, lambda: leadership.claim(1)],
        "controls.json": [controls.read, controls.version],
        "cluster": [controls.read],
        "lock": [lambda: leader_in(tmp_path)],
    }
    for name, ask in asked.items():
        (tmp_path / name).unlink(missing_ok=True)
        pipe(tmp_path / name)
        for each in ask:
            with pytest.raises(TrimtabError, match=rf"{name}(:| cannot be read:) it is a named pipe"):
                each()


def test_a_controller_goes_on_with_the_journal_and_deletes_no_stray(conf: Path) -> None:
    log = conf.parent / "log"
    spoilt(log)
    journal = journal_in(log, cluster=CLUSTER)
    assert journal.open().epoch == 1
    journal.begin_epoch(2)
    journal.prune(committed=LAST, before=LAST)
    assert all((log / name).exists() for name in STRAYS)


def test_who_writes_metrics_goes_on_behind_its_own_files(conf: Path) -> None:
    log = conf.parent / "log"
    metrics = log / "metrics"
    known = {path.name for path in metrics.glob("*.jsonl")}
    intervals = files_of(log, 1)
    last = max(metrics.glob("*.jsonl"))
    collector = collector_in(log, cluster=CLUSTER)
    collector.lead(0)
    strays = {f"{last.stem} copy.jsonl", "2024-backup.jsonl", "zzz.jsonl"}
    for name in strays:
        (metrics / name).write_bytes(last.read_bytes())
    assert files_of(log, 1) == intervals
    metrics_in(log, cluster=CLUSTER).publish([("", b"{}")])
    (new,) = {path.name for path in metrics.glob("*.jsonl")} - known - strays
    assert new == f"{last.stem[:15]}-{int(last.stem[16:]) + 1:06d}.jsonl"


def test_files_that_are_hidden_from_spark_are_hidden_from_all(conf: Path) -> None:
    log = conf.parent / "log"
    records, tail = records_in(log), recording(log)

    def read(topic: Literal["metrics", "results"]) -> tuple[list[StoredRecord], list[bytes]]:
        return [*records.read(topic, records.extents(topic))], [*tail.backwards(topic, (b"",))]

    before = read("metrics"), read("results")
    for topic in ("metrics", "results"):
        file = min((log / topic).glob("*.jsonl"))
        for hidden in ("_", "."):
            file.with_name(hidden + file.name).write_bytes(file.read_bytes())
    assert (read("metrics"), read("results")) == before
    assert all(before[0])
    assert all(before[1])


def test_a_file_with_a_name_that_spark_cannot_read_is_passed_over_and_told_of_once(
    conf: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = conf.parent / "log"
    tail = recording(log)
    before = [*tail.backwards("metrics", (b"",))]
    file = min((log / "metrics").glob("*.jsonl"))
    # No other test has such names: each is told of once in a process.
    for name in ("*", ":", "caf\u00e9", "\udcff", "\n"):
        file.with_name(f"stray-{name}.jsonl").write_bytes(file.read_bytes())
    assert [*tail.backwards("metrics", (b"",))] == before
    assert [*tail.backwards("metrics", (b"",))] == before
    assert sum("Spark cannot read a file with this name" in message for message in caplog.messages) == 5


def test_a_recording_passes_over_the_pipes_and_folders_that_the_query_passes_over(
    conf: Path, pipe: Callable[[Path], Path]
) -> None:
    log = conf.parent / "log"
    records = records_in(log)
    before = [*records.read("metrics", records.extents("metrics"))]
    pipe(log / "metrics" / f"{LAST:015d}-000900.jsonl")
    (log / "metrics" / f"{LAST:015d}-000901.jsonl").mkdir()
    assert [*records.read("metrics", records.extents("metrics"))] == before
    assert before


def test_a_copy_among_the_metrics_moves_no_time(conf: Path) -> None:
    folder = conf.parent / "log"

    def late() -> list[bytes]:
        records = records_in(folder)
        begin, extent = records.since("metrics", T + 2 * PERIOD)[0], records.extents("metrics")[0]
        return [each.value for each in records.read("metrics", {0: Extent(begin, extent.end)})]

    before = late()
    first = min((folder / "metrics").glob("*.jsonl"))
    first.with_name(f"{first.stem} copy.jsonl").write_bytes(first.read_bytes())
    first.with_name("zzz.jsonl").write_bytes(first.read_bytes())
    assert late() == [*before, *first.read_bytes().splitlines()]


def test_a_run_of_the_demo_has_the_next_number_whatever_lies_beside_the_runs(tmp_path: Path) -> None:
    for name in ("0007", "2024-backup", "3rd", "0007 copy", "99999999999999999999"):
        (tmp_path / name).mkdir()
    assert new_run(tmp_path).name == "0008"


def test_a_folder_of_the_log_that_cannot_be_read_is_not_taken_for_an_empty_one(
    conf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(folder))

    log = FolderLog(conf.parent / "log", cluster=CLUSTER)
    monkeypatch.setattr("os.listdir", refuse)
    for topic in ("journal", "commands", "metrics"):
        with pytest.raises(TrimtabError, match=f"{topic}: Permission denied"):
            log.read_backwards(topic, 0, None, 1)
    result = CliRunner().invoke(app, ["journal", "--conf", str(conf)])
    assert "Permission denied" in f"{result.stderr}{result.exception}"


def test_commands_read_the_log_as_if_they_were_not_there(conf: Path) -> None:
    log = conf.parent / "log"
    before = CliRunner().invoke(app, ["journal", "--conf", str(conf), "--json"]).stdout
    spoilt(log)
    assert before.count("\n") == 4
    assert CliRunner().invoke(app, ["journal", "--conf", str(conf), "--json"]).stdout == before
    answer = CliRunner().invoke(app, ["replay", str(log), "--conf", str(conf), "--fast", "--json"])
    assert json.loads(answer.stdout)["equal"] == 4


def test_an_executor_takes_no_commands_from_a_copy(conf: Path) -> None:
    log = conf.parent / "log"
    inbox = inbox_in(log, cluster=CLUSTER)
    before = inbox.poll(1000, 0)
    inbox.close()
    assert before
    spoilt(log)
    again = inbox_in(log, cluster=CLUSTER)
    assert again.poll(1000, 0) == before
    again.close()

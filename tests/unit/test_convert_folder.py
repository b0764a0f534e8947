"""A log in a folder of the older form: trimtab refuses it, and goes on with what scripts/convert makes of it."""

import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from controller.log.files.log import FolderLog
from controller.log.inbox import Inbox
from controller.log.journal import LogJournal
from controller.log.journal_reading import JournalReader
from controller.model.errors import DamagedJournalError
from controller.wire.commands import command_event, epoch_event, parse_event
from controller.wire.journal import encode_epoch
from controller.wire.journal_records import WHOLE_EVERY_MS, EntryWriter
from tests.convert.folder import convert_folder
from tests.journal_entries import UNLOAD, entry
from tests.records import CLUSTER, PERIOD, T, as_bytes, result, tick

ENTRIES = [
    entry(T + nth * PERIOD, *([replace(UNLOAD, id=f"c{nth}", interval=T + nth * PERIOD)] if nth % 2 else []))
    for nth in range(4)
]


def write(path: Path, *lines: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(line + b"\n" for line in lines))


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Two leaderships, two intervals with commands, of which the first is answered and the second one begun."""
    folder = tmp_path / "old"
    writer = EntryWriter(whole_every_ms=WHOLE_EVERY_MS, base=None)
    for nth, each in enumerate(ENTRIES):
        encoded = writer.encode(each)
        writer.wrote(encoded)
        path = folder / "journal" / f"{each.interval:015d}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded.value)
        if commands := each.decision.commands:
            at_ms = each.interval + 5
            events = [epoch_event(CLUSTER, nth, at_ms), *(command_event(command, nth, at_ms) for command in commands)]
            write(folder / "commands" / f"{each.interval:015d}.jsonl", *events)
    for epoch in (1, 3, 4):
        (folder / "journal" / f"epoch-{epoch:09d}.json").write_bytes(encode_epoch(CLUSTER, epoch))
    write(folder / "metrics" / f"{T:015d}-000000.jsonl", as_bytes(tick(T)))
    write(folder / "results" / f"{T + 2 * PERIOD:015d}-000001.jsonl", as_bytes(result(id="c1")))
    position = b'{"cluster":"%s","file":"%015d.jsonl","line":1,"epoch":3,"begun":["c3"]}'
    write(folder / "executor" / "position.json", position % (CLUSTER.encode(), ENTRIES[3].interval))
    os.utime(folder / "metrics" / f"{T:015d}-000000.jsonl", (1, 1))
    return folder


@pytest.fixture
def log(old: Path, tmp_path: Path) -> FolderLog:
    convert_folder(old, tmp_path / "new")
    return FolderLog(tmp_path / "new", cluster=CLUSTER)


def test_it_is_refused_with_what_to_do(old: Path) -> None:
    with pytest.raises(DamagedJournalError, match=r"journal/.*\.json: an earlier version .* `scripts/convert folder"):
        FolderLog(old, cluster=CLUSTER)


def test_the_next_leader_goes_on_with_its_memory_and_issues_no_command_again(log: FolderLog) -> None:
    assert [*JournalReader(log, CLUSTER).entries()] == ENTRIES
    with closing(log.read("commands")) as reader:
        before = [record.value for record in reader.read_to_end()]
    head = LogJournal(log, cluster=CLUSTER).open()
    assert (head.last, head.epoch) == (ENTRIES[-1], 4)
    with closing(log.read("commands")) as reader:
        assert [record.value for record in reader.read_to_end()] == before
    assert [(event.id, event.epoch) for event in map(parse_event, before)] == [
        ("epoch/1", 1),
        ("c1", 1),
        ("epoch/3", 3),
        ("c3", 3),
        ("epoch/4", 4),
    ]


def test_executors_go_on_where_they_were(log: FolderLog) -> None:
    with closing(Inbox(log, group="", cluster=CLUSTER)) as inbox:
        taken = inbox.poll(10, 0.0)
        memory = inbox.memory(0)
        assert [parse_event(each.value).id for each in taken] == ["c3", "epoch/4"]
        assert (memory.epoch, memory.started, [*memory.answered]) == (3, {"c3"}, ["c1"])
        assert inbox.newest_epoch(0) == 4


def test_metrics_and_results_are_as_they_were_with_their_times(old: Path, log: FolderLog) -> None:
    for path in [*(old / "metrics").iterdir(), *(old / "results").iterdir()]:
        copy = old.parent / "new" / path.relative_to(old)
        assert (copy.read_bytes(), copy.stat().st_mtime_ns) == (path.read_bytes(), path.stat().st_mtime_ns)


def test_what_is_no_log_of_the_older_form_is_not_converted(log: FolderLog, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no log of the older form"):
        convert_folder(tmp_path / "new", tmp_path / "another")
    assert not (tmp_path / "another").exists()

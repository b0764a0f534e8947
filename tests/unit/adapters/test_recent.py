"""The journal read from its end, with the memory behind an entry."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from controller.adapters.folder.names import number_in, numbered
from controller.log.factory import recording
from controller.log.files.log import FolderLog
from controller.log.memory import MemoryLog, MemoryServer
from controller.log.recent import decided_at, entries_backwards
from controller.log.tail import LogTail
from controller.model.errors import JournalError
from controller.wire.journal_records import EntryWriter
from tests.contracts.bytes_log import JOURNAL
from tests.folders import journal_in
from tests.journal_entries import UNLOAD, entry
from tests.records import CLUSTER, PERIOD, T

FIVE = [T + number * PERIOD for number in range(5)]


@pytest.fixture
def tail(tmp_path: Path) -> LogTail:
    """The first and the fourth of five entries hold the memory whole."""
    journal = journal_in(tmp_path, cluster=CLUSTER, whole_every_ms=3 * PERIOD)
    journal.open()
    journal.begin_epoch(1)
    for interval in FIVE:
        journal.append(entry(interval), epoch=1, issued_at_ms=T, before_commit=lambda: None)
    return recording(tmp_path)


class PartedTail(LogTail):
    """A tail of a journal whose entries lie in parts."""

    def __init__(self, records: list[bytes]) -> None:
        super().__init__(lambda: MemoryLog(MemoryServer()), cluster=None, endless=False)
        self._records = records

    def journal_backwards(self) -> Iterator[bytes]:
        return reversed(self._records)


def test_entries_come_newest_first(tail: LogTail) -> None:
    assert [read.record.interval for read in entries_backwards(tail, CLUSTER)] == FIVE[::-1]
    assert list(entries_backwards(tail, "another")) == []


@pytest.mark.parametrize("number", range(1, 5))
def test_a_decision_is_found_with_the_one_before_and_the_memory_of_both(tail: LogTail, number: int) -> None:
    before, at = decided_at(tail, CLUSTER, FIVE[number])
    assert (before, at) == (entry(FIVE[number - 1]), entry(FIVE[number]))


def test_before_the_first_there_is_none_and_of_an_interval_that_was_not_decided_there_is_none(tail: LogTail) -> None:
    assert decided_at(tail, CLUSTER, FIVE[0]) == (None, entry(FIVE[0]))
    assert decided_at(tail, CLUSTER, FIVE[0] - PERIOD) == (None, None)
    assert decided_at(tail, CLUSTER, FIVE[4] + 1) == (entry(FIVE[4]), None)


def test_an_entry_whose_whole_memory_was_pruned_is_not_known(tail: LogTail, tmp_path: Path) -> None:
    with closing(FolderLog(tmp_path, cluster=CLUSTER)) as log, closing(log.fence(JOURNAL)) as fenced:
        fenced.prune_before([*fenced.history()][2].position)
    assert decided_at(tail, CLUSTER, FIVE[2]) == (None, None)


@pytest.mark.slow
def test_entries_in_parts_are_read_whole() -> None:
    writer, records = EntryWriter(whole_every_ms=10 * PERIOD, base=None), list[bytes]()
    long = replace(UNLOAD, why=replace(UNLOAD.why, detail="d" * 10_000))
    entries = [
        entry(interval, *(replace(long, id=f"c-{n}", interval=interval) for n in range(200))) for interval in FIVE[:3]
    ]
    for each in entries:
        encoded = writer.encode(each)
        records += encoded.records
        writer.wrote(encoded)
    assert len(records) > len(entries)
    assert decided_at(PartedTail(records), CLUSTER, FIVE[2]) == (entries[1], entries[2])


def test_an_entry_that_is_damaged_is_an_error_that_names_the_journal(tail: LogTail, tmp_path: Path) -> None:
    last = max((tmp_path / "journal").iterdir())
    last.with_name(numbered(number_in(last.name) + 1)).write_bytes(b"{")
    with pytest.raises(JournalError, match=str(tmp_path)):
        decided_at(tail, CLUSTER, FIVE[4])

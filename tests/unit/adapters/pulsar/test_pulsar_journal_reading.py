"""Records of the journal in Pulsar, read without a server."""

import pytest

from controller.adapters.pulsar.log.journal_reading import read_entry
from controller.adapters.pulsar.log.reader import LogRecord
from controller.model.errors import DamagedJournalError, NewerJournalError
from controller.wire.journal_records import EntryReader


def record(value: bytes) -> LogRecord:
    return LogRecord(partition=0, place=(7, 3, 0), key="", value=value, properties={}, timestamp_ms=0)


def test_an_entry_of_a_later_release_is_refused_by_name_with_an_exit_code_for_a_person() -> None:
    with pytest.raises(NewerJournalError, match="v is 2, known: 1: a later release of trimtab wrote it") as caught:
        read_entry(EntryReader(None), record(b'{"v":2,"type":"decision"}'))
    assert caught.value.exit_code == 2


def test_a_damaged_entry_is_an_error_that_names_its_place() -> None:
    with pytest.raises(DamagedJournalError, match="7:3") as caught:
        read_entry(EntryReader(None), record(b"{"))
    assert caught.value.exit_code == 2

"""The end of a journal in Kafka whose topic several clusters share."""

from collections.abc import Iterator
from typing import Any

import pytest

from controller.adapters.kafka import tail
from controller.adapters.kafka.reader import KafkaRecord
from controller.adapters.kafka.tail import KafkaTail
from controller.adapters.recent import entries_backwards
from controller.settings.log import KafkaLogSettings
from controller.wire.journal import encode_entry
from tests.journal_entries import entry
from tests.records import CLUSTER, T

LATER = b'{"v":99,"cluster":"other","type":"decision","interval":1}'


def test_what_is_wrong_with_entries_of_other_clusters_is_no_matter_to_who_reads_ones_own_backwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = {"cluster": b"other"}
    values = [(encode_entry(entry(T)), {}), (LATER, {}), (b"no JSON", told), (LATER, told)]

    def newest_first(*_: object, **__: object) -> Iterator[KafkaRecord]:
        for offset, (value, headers) in reversed(list(enumerate(values))):
            yield KafkaRecord(0, offset, None, value, T, headers)

    monkeypatch.setattr(tail, "newest_first", newest_first)
    settings: Any = KafkaLogSettings(bootstrap="127.0.0.1:1")
    assert [read.record.interval for read in entries_backwards(KafkaTail(settings), CLUSTER)] == [T]

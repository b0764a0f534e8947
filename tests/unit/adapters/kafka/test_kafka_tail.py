"""The end of a journal in Kafka whose topic several clusters share."""

import logging
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import Mock

import pytest

from controller.adapters.kafka import inspect, journal, tail
from controller.adapters.kafka.inspect import Reach
from controller.adapters.kafka.reader import KafkaRecord
from controller.adapters.kafka.tail import KafkaTail
from controller.adapters.recent import entries_backwards
from controller.ports.records import Extent
from controller.ports.systems import JournalTail
from controller.settings.log import KafkaLogSettings
from controller.wire.journal import encode_entry
from tests.journal_entries import entry
from tests.records import CLUSTER, PERIOD, T

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


#: Makes the value of an entry about an interval, by its cluster's number; the first cluster is the test's.
Shared = Callable[[int, int], bytes]


def shared(
    monkeypatch: pytest.MonkeyPatch, clusters: int, intervals: int, value: Shared, *, ours_until: int | None = None
) -> list[int]:
    """A journal with an entry of each cluster about each interval; the offsets that are read come into the list.

    Every entry is followed by the mark that ends its transaction.  *ours_until*: the test's cluster wrote no later one.
    """
    end, looked = 2 * clusters * intervals, list[int]()

    def read_all(_: str, __: str, partition: int, offset: int, ___: object) -> Iterator[KafkaRecord]:
        for at in range(offset + offset % 2, end, 2):
            looked.append(at)
            interval, cluster = divmod(at // 2, clusters)
            is_ours = cluster == 0 and (ours_until is None or interval < ours_until)
            name = CLUSTER.encode() if is_ours else b"other"
            headers = {"cluster": name, "epoch": b"7", "interval": b"%d" % interval}
            yield KafkaRecord(partition, at, None, value(interval, cluster), T + at, headers)

    topics = {"trimtab-journal": Mock(error=None, partitions=[0])}
    monkeypatch.setattr(
        "confluent_kafka.Consumer", lambda *_, **__: Mock(list_topics=lambda *_, **__: Mock(topics=topics))
    )
    monkeypatch.setattr(inspect, "ends_of", lambda *_: (0, end))
    monkeypatch.setattr(inspect, "read_all", read_all)
    return looked


def encoded(interval: int, cluster: int) -> bytes:
    return encode_entry(entry(T + interval * PERIOD)) if cluster == 0 else b"of another cluster"


def kafka_tail() -> KafkaTail:
    settings: Any = KafkaLogSettings(bootstrap="127.0.0.1:1")
    return KafkaTail(settings)


def test_as_many_decisions_are_found_as_are_asked_for_however_many_clusters_share_the_topic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared(monkeypatch, clusters=40, intervals=30, value=encoded)
    found = kafka_tail().journal_tail(CLUSTER, 10, b"")
    assert [each.interval for each in found.decisions] == [T + number * PERIOD for number in range(29, 19, -1)]
    assert (found.epoch, found.is_cut) == (7, False)
    all_there_are = kafka_tail().journal_tail(CLUSTER, 50, b"")
    assert (len(all_there_are.decisions), all_there_are.is_cut) == (30, False)


def test_decisions_without_the_text_count_among_those_that_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = shared(monkeypatch, clusters=1, intervals=1000, value=encoded)
    newest, earlier = (b'"interval":%d' % (T + number * PERIOD) for number in (999, 980))
    assert [each.interval for each in kafka_tail().journal_tail(CLUSTER, 10, newest).decisions] == [T + 999 * PERIOD]
    assert kafka_tail().journal_tail(CLUSTER, 10, earlier) == JournalTail((), 7)
    assert len(looked) == 20


def test_a_cluster_that_decided_nothing_for_long_is_not_looked_for_without_end_and_that_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    looked = shared(monkeypatch, clusters=2, intervals=200_000, value=lambda *_: b"{}", ours_until=1)
    with caplog.at_level(logging.WARNING):
        found = kafka_tail().journal_tail(CLUSTER, 10, b"")
    assert (found.decisions, found.is_cut) == ((), True)
    assert len(looked) <= 60_000
    (told,) = caplog.messages
    assert f"of the last 10 decisions about cluster '{CLUSTER}' that were looked for, 0 are among" in told


def test_large_records_end_the_search_sooner_and_windows_do_not_grow_over_them(monkeypatch: pytest.MonkeyPatch) -> None:
    megabyte = b"x" * (1 << 20)
    shared(monkeypatch, clusters=2, intervals=1000, value=lambda *_: megabyte)
    reach = Reach(offsets=10_000, bytes=20 << 20)
    found = list(inspect.newest_first("h:1", "trimtab-journal", client={}, windows=(16, 4096), reach=reach))
    assert reach.is_passed
    assert 20 < len(found) <= 60
    assert found[0].offset == 3998


def test_no_more_than_some_of_a_large_window_is_kept_at_a_time_and_nothing_is_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there, most = 0, 0

    class Counted(bytes):
        def __init__(self, *_: object) -> None:
            nonlocal there, most
            there += 1
            most = max(most, there)

        def __del__(self) -> None:
            nonlocal there
            there -= 1

    monkeypatch.setattr(inspect, "_MOST_KEPT", 20_000)
    shared(monkeypatch, clusters=1, intervals=400, value=lambda *_: Counted(b"x" * 1000))
    records = inspect.newest_first("h:1", "trimtab-journal", client={}, windows=(16, 4096))
    assert [record.offset for record in records] == [*range(798, -1, -2)]
    assert most < 30


def long_journal(monkeypatch: pytest.MonkeyPatch, end: int, ours: int) -> list[int]:
    """A journal of *end* offsets with one entry of the test's cluster; where it is read from comes into the list."""
    starts = list[int]()

    def read_all(_: str, __: str, partition: int, offset: int, ___: object) -> Iterator[KafkaRecord]:
        starts.append(end + 2000 + offset if offset < 0 else 0)  # librdkafka's way to count from the end
        if starts[-1] <= ours:
            headers = {"cluster": CLUSTER.encode(), "epoch": b"7"}
            yield KafkaRecord(partition, ours, None, encode_entry(entry(T)), T, headers)

    monkeypatch.setattr(journal, "read_all", read_all)
    monkeypatch.setattr(journal, "KafkaRecords", lambda _: Mock(extents=lambda _: {0: Extent(0, end)}))
    return starts


@pytest.mark.parametrize(("ours", "begun"), [(2_950_000, 2_900_000), (50, 0)])
def test_where_others_wrote_much_meanwhile_the_last_entry_is_found_without_reading_all_there_is(
    monkeypatch: pytest.MonkeyPatch, ours: int, begun: int
) -> None:
    starts = long_journal(monkeypatch, 3_000_000, ours)
    found = kafka_tail().last_entry(CLUSTER)
    assert found is not None
    assert (found.interval, starts[-1]) == (T, begun)


def test_who_only_wants_to_know_what_happened_lately_never_reads_all_of_a_long_journal_and_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    starts = long_journal(monkeypatch, 3_000_000, 50)
    assert kafka_tail().last_entry(CLUSTER, far=False) is None
    assert min(starts) == 2_000_000
    assert f"cluster '{CLUSTER}', or the memory behind it, is not among its newest 1,000,000 offsets" in caplog.text
    long_journal(monkeypatch, 900_000, 50)
    found = kafka_tail().last_entry(CLUSTER, far=False)
    assert found is not None

"""A log is read interval by interval, however many partitions it has, and whatever lies in it besides."""

import json
import zlib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from controller.adapters.recordings.record_log import RecordedTopic, RecordLog, StoredRecord
from controller.aggregate.shard.fold import DetailLimits
from controller.log.factory import records_in
from controller.model.controls import Controls
from controller.offline.counterfactual.reading import RecordedLoadLog
from controller.offline.counterfactual.recorded import RecordedInterval
from controller.offline.counterfactual.replayed_interval import with_near_detail
from controller.settings.trimtab_toml import IntervalSettings
from tests.folds import OPTIONS, A, snapshots, sweep, ticked
from tests.modelled_log import played, settings_in
from tests.recordings import MemoryRecordLog, stored
from tests.records import CLUSTER, PERIOD, T, bundle_stats

pytestmark = pytest.mark.slow

PARTITIONS = {"metrics": 3, "results": 2}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> RecordLog:
    folder = tmp_path_factory.mktemp("controller")
    played(settings_in(folder, broker_conf="loadBalancerLoadSheddingStrategy=UniformLoadShedder\n"), 6)
    return records_in(folder / "log")


def in_partitions(log: RecordLog, topic: RecordedTopic) -> list[StoredRecord]:
    """The records of *topic* in several partitions, each with every tick; and garbage between them."""
    n, found = PARTITIONS[topic], list[StoredRecord]()
    for at, record in enumerate(log.read(topic, log.extents(topic))):
        fields = json.loads(record.value)
        if fields["type"] != "tick":
            found.append(stored(2 * at, record.value, partition=zlib.crc32(record.value) % n, at=record.timestamp_ms))
            found.append(stored(2 * at + 1, b"\xff{", partition=at % n))
            continue
        for partition in range(n):
            kept = {"roster": fields["roster"]} if "roster" in fields and not partition else {}
            tick = {**{k: v for k, v in fields.items() if k != "roster"}, **kept, "partitions": PARTITIONS}
            found.append(stored(2 * at, json.dumps(tick).encode(), partition=partition, at=record.timestamp_ms))
    return found


def read(log: RecordLog) -> list[RecordedInterval]:
    return list(RecordedLoadLog(records=log, cluster=CLUSTER, settings=IntervalSettings()).intervals())


def test_several_partitions_hold_the_same_load_as_one(log: RecordLog) -> None:
    journal = list(log.read("journal", log.extents("journal")))
    topics = {"metrics": in_partitions(log, "metrics"), "results": in_partitions(log, "results"), "journal": journal}
    one, several = read(log), read(MemoryRecordLog(topics))  # type: ignore[arg-type]  # its keys are topics
    assert [each.interval for each in one] == [each.interval for each in several] == [T + i * PERIOD for i in range(6)]
    for first, second in zip(one, several, strict=True):
        assert first.snapshot.names == second.snapshot.names
        assert first.snapshot.to_blob() == replaced(second, first)


def replaced(second: RecordedInterval, first: RecordedInterval) -> bytes:
    """The blob of *second*, but for the partitions that its sweeps lay in, and the order of results."""
    assert {each.id for each in first.snapshot.results} == {each.id for each in second.snapshot.results}
    brokers = tuple(
        replace(each, places=other.places)
        for each, other in zip(second.snapshot.brokers, first.snapshot.brokers, strict=True)
    )
    return replace(second.snapshot, brokers=brokers, results=first.snapshot.results).to_blob()


def test_each_interval_has_its_decision_and_the_memory_that_it_began_with(log: RecordLog) -> None:
    found = read(log)
    assert found[0].memory is None
    assert all(each.entry is not None and each.entry.interval == each.interval for each in found)
    for before, after in pairwise(found):
        assert before.entry is not None
        assert after.memory == before.entry.memory


def with_one_more(log: RecordLog, *, at: int, padding: int = 0) -> RecordLog:
    """*log* with the ticks of one more interval, an hour later, which the log took *at*."""
    both: tuple[RecordedTopic, ...] = ("metrics", "results")
    topics: dict[RecordedTopic, list[StoredRecord]] = {each: [*log.read(each, log.extents(each))] for each in both}
    for records in topics.values():
        last = [each for each in records if json.loads(each.value)["type"] == "tick"][-1]
        later = json.dumps({**json.loads(last.value), "interval": T + 60 * PERIOD}).encode()
        records.append(stored(10**6, later + b" " * padding, at=at))
    return MemoryRecordLog(topics)


def test_what_the_controller_refused_is_left_out(log: RecordLog) -> None:
    """Ticks from far ahead of the time at which the log took them, and records that are too long."""
    assert len(read(with_one_more(log, at=T + 60 * PERIOD))) == 7
    assert len(read(with_one_more(log, at=T + 2 * PERIOD))) == 6
    assert len(read(with_one_more(log, at=-1, padding=1 << 16))) == 7
    short = IntervalSettings(max_record_bytes=1 << 16)
    padded = with_one_more(log, at=-1, padding=1 << 16)
    assert len(list(RecordedLoadLog(records=padded, cluster=CLUSTER, settings=short).intervals())) == 6


def test_a_replay_has_the_topics_that_the_controller_has_whatever_the_load_was_before() -> None:
    batches = list[list[dict[str, Any]]]()
    for n, rate in enumerate((10.0, 4000.0, 4000.0, 10.0, 10.0, 600.0)):
        load: dict[str, Any] = {"msgRateIn": [rate / 2, rate / 2], "msgRateOut": [0.0, 0.0]}
        totals = {**bundle_stats()["totals"], "msgRateIn": rate, "msgRateOut": 0.0}
        batches.append([sweep(A, n, bundleStats=[bundle_stats(**load, totals=totals)]), ticked(n, A)])
    limits = DetailLimits(topics=1e9, sessions=1e9, msg_rate=500.0, throughput=1e18)
    everything = DetailLimits(topics=0, sessions=0, msg_rate=0, throughput=0)
    live, whole = (snapshots(*batches, options=replace(OPTIONS, detail=each)) for each in (limits, everything))
    assert [len(each.detail_position) for each in live] == [0, 2, 2, 0, 0, 2]
    assert [len(each.detail_position) for each in whole] == [2] * 6
    for ours, theirs in zip(whole, live, strict=True):
        assert with_near_detail(ours, limits).to_blob() == theirs.to_blob()


def test_intervals_that_the_journal_leaves_out_for_they_were_too_late_have_the_controls_of_the_next_one(
    tmp_path: Path,
) -> None:
    def late(interval: int) -> Controls:
        return Controls(mode="active", stale=T + PERIOD <= interval <= T + 3 * PERIOD)

    played(settings_in(tmp_path, more="journal.whole_every_intervals = 1"), 6, controls=late)
    whole = records_in(tmp_path / "log")
    journal = list(whole.read("journal", whole.extents("journal")))
    # An engine that gets these three in one batch journals the last one only.
    kept = [each for each in journal if json.loads(each.value).get("interval") not in (T + PERIOD, T + 2 * PERIOD)]
    topics: dict[RecordedTopic, list[StoredRecord]] = {"journal": kept}
    for topic in ("metrics", "results"):
        topics[topic] = list(whole.read(topic, whole.extents(topic)))
    found = read(MemoryRecordLog(topics))
    assert [each.entry is None for each in found] == [False, True, True, False, False, False]
    assert [each.passed for each in found] == [None, late(T + PERIOD), late(T + PERIOD), None, None, None]


def test_an_empty_log_has_no_interval(tmp_path: Path) -> None:
    (tmp_path / "metrics").mkdir()
    assert read(records_in(tmp_path)) == []

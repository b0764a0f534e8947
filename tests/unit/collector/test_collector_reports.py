"""From real answers of brokers to sweeps, read back with controller.wire alone."""

import json
import weakref
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from controller.collector.reports import (
    BrokerReport,
    ReportError,
    SweepName,
    extensible_report,
    listed_topics,
    modular_report,
    swept,
    usage_from_metrics,
)
from controller.collector.states import broker_state, records
from controller.collector.sweeper import Sweeper
from controller.model.load import RESOURCES
from controller.model.names import parse_bundle, topic_hash
from controller.settings.capacity import CapacityOverrides
from controller.wire.chunks import MAX_CHUNK_BYTES, arrow_chunks, glance, json_chunks
from controller.wire.metrics import TickRecord, decode_metric
from controller.wire.sweep import ArrowSweep, BrokerSweep
from tests.fake_pulsar import sample

T = 1_795_233_660_000
NAME = SweepName(cluster="lab", broker="127.0.0.1:18080", interval=T, sweep_id="s")
BUNDLE = "lab/ns/0x20000000_0x40000000"


def read_back(report: BrokerReport, topics: Any, **limits: int) -> list[BrokerSweep]:
    columns, _ = swept(NAME, report, listed_topics(topics))
    chunks = []
    for key, value in json_chunks(columns, **limits):
        assert key == NAME.broker
        chunk = decode_metric(value, cluster="lab", period_ms=60_000)
        assert isinstance(chunk, BrokerSweep)
        chunks.append(chunk)
    return chunks


@pytest.mark.parametrize(("number", "topics", "rate_in"), [(1, 6, 100.011), (2, 13, 185.093)])
def test_a_modular_broker_is_swept_with_its_resources_bundles_and_topics(
    number: int, topics: int, rate_in: float
) -> None:
    report = sample(f"load_report_{number}.json")
    [sweep] = read_back(modular_report(report), sample(f"topics_{number}.json"))
    for name in ("cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut"):
        field = {"directMemory": "direct_memory", "bandwidthIn": "bandwidth_in", "bandwidthOut": "bandwidth_out"}
        usage = getattr(sweep, field.get(name, name))
        assert (usage.usage, usage.limit) == (report[name]["usage"], report[name]["limit"])
    assert (sweep.interval, sweep.last_update) == (T, report["lastUpdate"])
    assert [stats.bundle for stats in sweep.bundle_stats] == sorted(report["bundles"])
    assert sum(len(stats.topic) for stats in sweep.bundle_stats) == sweep.num_topics == topics == report["numTopics"]
    assert (sweep.num_producers, sweep.num_consumers) == (report["numProducers"], report["numConsumers"])
    assert sweep.msg_rate_in == rate_in == pytest.approx(report["msgRateIn"], rel=1e-3)


def test_a_topic_keeps_its_rates_and_sessions() -> None:
    topics = sample("topics_1.json")
    [sweep] = read_back(modular_report(sample("load_report_1.json")), topics)
    stats = next(stats for stats in sweep.bundle_stats if stats.bundle == BUNDLE)
    at = stats.topic.index("persistent://lab/ns/t22")
    assert (stats.msg_rate_in[at], stats.msg_throughput_out[at]) == (24.999, 14149.92)
    assert (stats.producer_count[at], stats.consumer_count[at]) == (1, 1)
    assert stats.totals.msg_rate_in == pytest.approx(24.999 + 15.0)
    assert (stats.totals.topics, stats.totals.consumer_count) == (2, 2)


def test_segments_of_scalable_topics_count_in_the_bundle_that_the_hash_of_their_whole_name_says() -> None:
    report = sample("scalable/load_report.json")
    [sweep] = read_back(modular_report(report), sample("scalable/topics.json"))
    found = {stats.bundle: stats for stats in sweep.bundle_stats}
    assert {bundle: (stats.totals.topics, stats.totals.producer_count) for bundle, stats in found.items()} == {
        bundle: (stats["topics"], stats["producerCount"]) for bundle, stats in report["lastStats"].items()
    }
    for bundle, stats in found.items():
        name = parse_bundle(bundle)
        assert all(name.lower <= topic_hash(topic) < name.upper for topic in stats.topic)
    segments = [topic for stats in found.values() for topic in stats.topic if topic.startswith("segment://")]
    assert len(segments) == 6


def test_json_and_arrow_hold_the_same_topics() -> None:
    columns, _ = swept(NAME, modular_report(sample("load_report_2.json")), listed_topics(sample("topics_2.json")))
    [(_, as_json)], [(_, as_arrow)] = json_chunks(columns), arrow_chunks(columns)
    json_sweep, arrow_sweep = (decode_metric(value, cluster="lab", period_ms=60_000) for value in (as_json, as_arrow))
    assert isinstance(json_sweep, BrokerSweep)
    assert isinstance(arrow_sweep, ArrowSweep)
    rows = arrow_sweep.batch.to_pydict()
    listed = [topic for stats in json_sweep.bundle_stats for topic in stats.topic]
    assert rows["topic"] == listed
    assert rows["msgRateOut"] == [rate for stats in json_sweep.bundle_stats for rate in stats.msg_rate_out]


def test_a_sweep_too_large_for_a_record_comes_in_chunks_that_keep_every_topic() -> None:
    report, topics = modular_report(sample("load_report_2.json")), sample("topics_2.json")
    chunks = read_back(report, topics, max_bytes=2_300)
    assert len(chunks) > 1
    assert [(chunk.chunk, chunk.chunks) for chunk in chunks] == [(i, len(chunks)) for i in range(len(chunks))]
    assert sum(len(stats.topic) for chunk in chunks for stats in chunk.bundle_stats) == 13


@pytest.mark.parametrize(("max_bytes", "chunks"), [(900_000, 1), (22_000, 5), (12_000, 21)])
def test_arrow_chunks_have_room_for_the_names_of_their_bundles(max_bytes: int, chunks: int) -> None:
    columns, _ = swept(NAME, modular_report(sample("load_report_1.json")), listed_topics(sample("topics_1.json")))
    n = 200
    large = replace(
        columns,
        bundles=[f"tenant/{'namespace-' * 20}/0x{i:08x}_0x{i + 1:08x}" for i in range(n)],
        total_load=np.zeros((n, 4)),
        total_counts=np.zeros((n, 3), np.int64),
        starts=np.arange(n + 1),
        topics=["persistent://tenant/ns/t"] * n,
        load=np.zeros((n, 4)),
        counts=np.zeros((n, 2), np.int64),
    )
    values = [value for _, value in arrow_chunks(large, max_bytes=max_bytes)]
    assert max(map(len, values)) <= max_bytes
    assert len(values) == chunks


def test_no_name_that_a_client_gives_its_topic_makes_a_chunk_that_the_log_refuses() -> None:
    report, stats = modular_report(sample("load_report_1.json")), sample("topics_1.json")
    namespace, _, range_ = BUNDLE.rpartition("/")
    [kind] = stats[namespace][range_]
    one = next(iter(stats[namespace][range_][kind].values()))
    odd = ["x" * 9_999, "y" * 10_000, "\ud800", *("漢" * 300 + str(i) for i in range(1_500)), "x" * 2_000_000]
    stats[namespace][range_][kind] = dict.fromkeys(odd, one)
    columns, _ = swept(NAME, report, listed_topics(stats))
    for form in (json_chunks, arrow_chunks):
        assert max(len(value) for _, value in form(columns)) <= MAX_CHUNK_BYTES
    [bundle] = [i for i, name in enumerate(columns.bundles) if name == BUNDLE]
    listed = columns.topics[columns.starts[bundle] : columns.starts[bundle + 1]]
    assert len(listed) == len(odd), "each counts with its load"
    assert "?" in listed, "as Java writes what UTF-8 does not have"
    assert {len(name) for name in listed} >= {9_999, 10_000}
    assert max(map(len, listed)) == 10_000


def test_a_bundle_that_only_the_older_topic_statistics_list_has_been_unloaded_and_is_left_out() -> None:
    report = sample("load_report_1.json")
    del report["lastStats"][BUNDLE]
    [sweep] = read_back(modular_report(report), sample("topics_1.json"))
    assert [stats.bundle for stats in sweep.bundle_stats] == ["lab/ns/0xa0000000_0xc0000000"]


def test_a_bundle_that_the_topic_statistics_do_not_list_yet_counts_with_its_totals() -> None:
    topics = sample("topics_1.json")
    del topics["lab/ns"]["0x20000000_0x40000000"]
    [sweep] = read_back(modular_report(sample("load_report_1.json")), topics)
    stats = next(stats for stats in sweep.bundle_stats if stats.bundle == BUNDLE)
    assert stats.topic == ()
    assert stats.totals.msg_rate_in == pytest.approx(40.0, abs=0.001)
    assert (stats.totals.topics, stats.totals.producer_count) == (2, 2)


@pytest.mark.parametrize("rate", [-1.0, float("nan"), "NaN", float("inf"), None])
def test_an_invalid_rate_is_taken_as_0_and_counted_and_the_rest_is_kept(rate: object) -> None:
    topics = sample("topics_1.json")
    topics["lab/ns"]["0x20000000_0x40000000"]["persistent"]["persistent://lab/ns/t22"]["msgRateIn"] = rate
    report = modular_report(sample("load_report_1.json"))
    columns, flaws = swept(NAME, report, listed_topics(topics))
    assert flaws == 1
    [sweep] = read_back(report, topics)
    stats = next(stats for stats in sweep.bundle_stats if stats.bundle == BUNDLE)
    assert stats.msg_rate_in == (0.0, 15.0)
    assert len(columns.topics) == 6


def test_non_persistent_topics_count_and_have_no_size() -> None:
    topics = sample("topics_1.json")
    topic = {"msgRateIn": 2.0, "msgRateOut": 4.0, "msgThroughputIn": 20.0, "msgThroughputOut": 40.0, "producerCount": 3}
    subscriptions: dict[str, Any] = {"a": {"consumers": [{}, {}]}, "b": {"consumers": [{}]}}
    topics["lab/ns"]["0x20000000_0x40000000"]["non-persistent"] = {
        "non-persistent://lab/ns/fast": topic | {"subscriptions": subscriptions}
    }
    [sweep] = read_back(modular_report(sample("load_report_1.json")), topics)
    stats = next(stats for stats in sweep.bundle_stats if stats.bundle == BUNDLE)
    at = stats.topic.index("non-persistent://lab/ns/fast")
    assert (stats.producer_count[at], stats.consumer_count[at]) == (3, 3)


def test_an_unknown_limit_is_0_and_an_impossible_bundle_is_left_out() -> None:
    report = sample("load_report_1.json")
    report["bandwidthIn"]["limit"] = -1.0
    report["lastStats"]["no bundle"] = report["lastStats"][BUNDLE]
    [sweep] = read_back(modular_report(report), sample("topics_1.json"))
    assert sweep.bandwidth_in.limit == 0
    assert len(sweep.bundle_stats) == 2


def test_a_report_without_a_resource_is_no_report() -> None:
    report = sample("load_report_1.json")
    del report["memory"]
    with pytest.raises(ReportError, match="lacks memory"):
        modular_report(report)


def test_a_broker_without_bundles_still_says_so() -> None:
    report = sample("load_report_1.json") | {"lastStats": {}}
    [sweep] = read_back(modular_report(report), {})
    assert (sweep.num_bundles, sweep.bundle_stats, sweep.chunks) == (0, (), 1)


def test_an_extensible_broker_is_swept_from_its_load_data_its_topics_and_what_it_owns() -> None:
    load = json.loads(sample("broker_load_data.json")["127.0.0.1:18080"])
    report = extensible_report(load, owned={BUNDLE}, broker_version="4.0.8")
    [sweep] = read_back(report, sample("topics_1.json"))
    assert (sweep.cpu.usage, sweep.cpu.limit) == (load["cpu"]["usage"], 200.0)
    assert sweep.last_update == load["updatedAt"]
    assert [stats.bundle for stats in sweep.bundle_stats] == [BUNDLE]
    assert sweep.num_topics == 2


def test_metrics_stand_in_for_load_data_as_percent() -> None:
    load = usage_from_metrics(sample("load_metrics.json"), now_ms=T)
    [sweep] = read_back(extensible_report(load, owned=()), {})
    assert (sweep.cpu.usage, sweep.cpu.limit) == (96.93477, 100.0)
    assert sweep.bandwidth_out.usage == 0.00060408656
    assert sweep.last_update == T
    with pytest.raises(ReportError, match="neither load data nor load metrics"):
        usage_from_metrics([{"metrics": {"brk_ml_count": 1}}], now_ms=T)
    alone = usage_from_metrics([{"metrics": {"brk_lb_cpu_usage": 5.0}}], now_ms=T)
    with pytest.raises(ReportError, match="has usage None of memory, not a number"):
        extensible_report(alone, owned=())


def test_a_quick_look_recognises_chunks_of_both_forms_and_ticks_only() -> None:
    columns, _ = swept(NAME, modular_report(sample("load_report_1.json")), listed_topics(sample("topics_1.json")))
    for form in (json_chunks, arrow_chunks):
        [(_, value)] = form(columns)
        head = glance(value)
        assert head is not None
        assert not isinstance(head, TickRecord)
        assert (head.broker, head.interval, head.sweep_id, head.chunk, head.chunks) == (NAME.broker, T, "s", 0, 1)
    reordered = b'{"bundleStats":[],' + next(json_chunks(columns))[1].partition(b',"bundleStats"')[0][1:] + b"}"
    assert glance(reordered) is not None
    tick = TickRecord.model_validate({"cluster": "lab", "interval": T, "partitions": {"metrics": 1, "results": 1}})
    assert glance(tick.model_dump_json(by_alias=True).encode()) == tick
    for value in (b"", b"{}", b'{"type":"topic_stats"}', b"\xff\xff\xff\xff", b'"x"'):
        assert glance(value) is None


def test_sums_have_no_more_digits_than_the_rates_that_they_are_of() -> None:
    columns, _ = swept(NAME, modular_report(sample("load_report_2.json")), listed_topics(sample("topics_2.json")))
    assert np.array_equal(columns.total_load, np.round(columns.total_load, 3))


ODD: tuple[Any, ...] = (None, 3, "x", [], {}, [{}], {"a": 3}, {"a": {"b": 3}}, {"a/b": {"0x0_0x1": {"persistent": 3}}})


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("where", ["topics", "namespace", "report", "stats", "cpu"])
def test_an_answer_of_any_other_shape_is_the_brokers_failure_and_no_other_error(where: str, odd: Any) -> None:
    good = sample("load_report_1.json")
    reports = {"report": odd, "stats": good | {"lastStats": odd}, "cpu": good | {"cpu": odd}}
    topics = {"topics": odd, "namespace": {"lab/ns": odd}}

    class Odd:
        def reading_at_most(self, _: int) -> "Odd":
            return self

        def within(self, *_: object) -> "Odd":
            return self

        def asked_topic_stats(self, _: str) -> Any:
            return lambda: topics.get(where, sample("topics_1.json"))

        def load_report(self, _: str) -> Any:
            return reports.get(where, good)

    sweeper = Sweeper(Odd(), CapacityOverrides(), None, form=json_chunks, timeout_seconds=1)  # type: ignore[arg-type]
    with suppress(ReportError):
        sweeper.sweep(SweepName(cluster="lab", broker="a:8080", interval=T, sweep_id="s"), T)


class Stats(list[Any]):
    """A list that can be seen to be gone."""


def test_the_error_about_an_answer_does_not_keep_the_answer() -> None:
    """As its cause would, which says what has no such attribute: several waited in memory, of a gigabyte each."""
    stats = Stats(["odd"])
    seen = weakref.ref(stats)
    with pytest.raises(ReportError, match="'Stats' object has no attribute 'items'") as raised:
        swept(NAME, modular_report(sample("load_report_1.json")), listed_topics({"lab/ns": stats}))
    kept = raised.value.with_traceback(None)
    del raised, stats
    assert (str(kept)[:10], seen()) == ("unexpected", None)


def topic(**changed: Any) -> dict[str, Any]:
    """What a broker says of a topic of BUNDLE."""
    usual = {
        "msgRateIn": 1.0, "msgRateOut": 2.0, "msgThroughputIn": 3.0, "msgThroughputOut": 4.0, "producerCount": 5,
        "storageSize": 6, "backlogSize": 7, "subscriptions": {"s": {"consumers": [{}, {}]}, "t": {"consumers": None}},
    }  # fmt: skip
    return {"lab/ns": {"0x20000000_0x40000000": {"persistent": {"persistent://lab/ns/t": usual | changed}}}}


@pytest.mark.parametrize(
    ("field", "said", "taken"),
    [
        ("msg_rate_in", 1e12, 1e12),
        ("msg_rate_in", 1.001e12, 0.0),
        ("msg_throughput_out", 1e12, 1e12),
        ("msg_throughput_out", -0.001, 0.0),
        ("producer_count", 10**12, 10**12),
        ("producer_count", 2 * 10**12, 10**12),
        ("producer_count", -1, 0),
        ("producer_count", None, 0),
    ],
)
def test_numbers_of_a_topic_are_bounded(field: str, said: Any, taken: float) -> None:
    first, *rest = field.split("_")
    name = first + "".join(map(str.title, rest))
    report = sample("load_report_1.json")
    alone = modular_report(report | {"lastStats": {BUNDLE: report["lastStats"][BUNDLE]}})
    columns, flaws = swept(NAME, alone, listed_topics(topic(**{name: said})))
    [chunk] = read_back(alone, topic(**{name: said}))
    stats = next(stats for stats in chunk.bundle_stats if stats.bundle == BUNDLE)
    assert getattr(stats, field) == (taken,)
    assert flaws == (field.startswith("msg") and taken != said)
    assert columns.topics == ["persistent://lab/ns/t"]
    assert (stats.totals.consumer_count, stats.totals.topics) == (2, 1)


def test_sums_of_sessions_end_at_the_most_that_there_can_be() -> None:
    many = topic(producerCount=10**12)
    many["lab/ns"]["0x20000000_0x40000000"]["persistent"]["persistent://lab/ns/u"] = {"producerCount": 10**12}
    [sweep] = read_back(modular_report(sample("load_report_1.json")), many)
    stats = next(stats for stats in sweep.bundle_stats if stats.bundle == BUNDLE)
    assert (stats.totals.producer_count, sweep.num_producers) == (10**12, 10**12)


@pytest.mark.parametrize(
    ("said", "taken"),
    [
        ({"usage": 5.0, "limit": -1.0}, (5.0, 0.0)),
        ({"usage": -5.0, "limit": 100.0}, (0.0, 100.0)),
        ({"usage": 1e15, "limit": 2e15}, (1e15, 1e15)),
        ({"usage": float("nan"), "limit": None}, (0.0, 0.0)),
        ({}, (0.0, 0.0)),
    ],
)
def test_usage_and_limit_are_bounded(said: dict[str, Any], taken: tuple[float, float]) -> None:
    report = modular_report(sample("load_report_1.json") | {"cpu": said})
    assert report.usage[0] == taken


@pytest.mark.parametrize("usage", [float("nan"), None])
def test_a_usage_that_is_no_number_is_no_data(usage: float | None) -> None:
    report = sample("load_report_1.json") | {"cpu": {"usage": usage, "limit": 400.0}}
    with pytest.raises(ReportError, match=f"has usage {usage} of cpu, not a number"):
        modular_report(report)


def test_a_bundle_of_which_no_topics_are_listed_does_not_vanish() -> None:
    load = json.loads(sample("broker_load_data.json")["127.0.0.1:18080"])
    [sweep] = read_back(extensible_report(load, owned={BUNDLE}), {})
    assert [(stats.bundle, stats.totals.topics) for stats in sweep.bundle_stats] == [(BUNDLE, 0)]


def test_a_resource_that_a_report_lacks_is_named() -> None:
    report = sample("load_report_1.json")
    del report["bandwidthIn"]
    with pytest.raises(ReportError, match="lacks bandwidthIn"):
        modular_report(report)


@pytest.mark.parametrize(
    ("said", "taken"),
    [(7, 7), (7.9, 7), (float("nan"), 0), (float("inf"), 0), (-1, 0), (2**70, 0), ("7", 0), (None, 0)],
)
def test_the_time_of_a_report_is_whole_or_0(said: Any, taken: int) -> None:
    assert modular_report(sample("load_report_1.json") | {"lastUpdate": said}).last_update == taken
    resources = {name: {"usage": 1.0, "limit": 2.0} for name in RESOURCES}
    assert extensible_report({"updatedAt": said, **resources}, owned=()).last_update == taken


@pytest.mark.parametrize(("said", "taken"), [(3, 3), (-1, 0), (10**13, 10**12), ("3", 0)])
def test_a_bundles_own_sums_are_bounded(said: Any, taken: int) -> None:
    report = sample("load_report_1.json")
    report["lastStats"] = {BUNDLE: {"msgRateIn": 2e12, "msgRateOut": 7.0, "producerCount": said, "topics": said}}
    assert modular_report(report).bundles[BUNDLE] == ((0.0, 7.0, 0.0, 0.0), (taken, 0, taken))


ODD_FIELDS: dict[str, tuple[Any, ...]] = {
    "lastUpdate": (float("inf"), float("nan"), -5, 2**63, "7", []),
    "brokerVersionString": (4, ["4.0"], {}, "x" * 1025),
    "persistentTopicsEnabled": ("yes", 1, []),
    "nonPersistentTopicsEnabled": ("no", 0, {}),
}


@pytest.mark.parametrize(("field", "said"), [(name, odd) for name, every in ODD_FIELDS.items() for odd in every])
def test_an_odd_field_of_a_report_is_left_out_and_named_and_the_rest_is_published(field: str, said: Any) -> None:
    report = modular_report(sample("load_report_1.json") | {field: said})
    assert report.odd == (field,)
    [sweep] = read_back(report, sample("topics_1.json"))
    assert (sweep.num_topics, sweep.cpu.usage) == (6, sample("load_report_1.json")["cpu"]["usage"])
    state = broker_state("lab", NAME.broker, report, version=T, failure_domain=None, capacity={})
    assert decode_metric(records([state])[0][1], cluster="lab", period_ms=60_000) == state


def test_a_broker_that_has_not_updated_its_report_yet_says_nothing_odd() -> None:
    report = modular_report(sample("load_report_1.json") | {"lastUpdate": 0})
    assert (report.odd, report.last_update) == ((), 0)


def test_a_version_may_have_1024_characters() -> None:
    report = modular_report(sample("load_report_1.json") | {"brokerVersionString": "4" * 1024})
    assert (report.odd, report.broker_version) == ((), "4" * 1024)


def test_fields_that_a_report_lacks_or_that_no_release_has_yet_are_not_odd() -> None:
    report = sample("load_report_1.json")
    for name in ("lastUpdate", "brokerVersionString", "persistentTopicsEnabled", "nonPersistentTopicsEnabled"):
        report.pop(name, None)
    lacking = modular_report(report | {"newInPulsar9": {"deep": [float("nan")]}, "brokerVersionString": None})
    assert (lacking.odd, lacking.last_update, lacking.broker_version) == ((), 0, None)
    [sweep] = read_back(lacking, sample("topics_1.json"))
    assert sweep.num_topics == 6


def test_what_a_broker_does_not_say_of_a_topic_is_0() -> None:
    report = sample("load_report_1.json")
    alone = modular_report(report | {"lastStats": {BUNDLE: report["lastStats"][BUNDLE]}})
    said: dict[str, Any] = {"lab/ns": {"0x20000000_0x40000000": {"persistent": {"persistent://lab/ns/t": {}}}}}
    columns, flaws = swept(NAME, alone, listed_topics(said))
    assert (columns.load.tolist(), columns.counts.tolist(), flaws) == ([[0, 0, 0, 0]], [[0, 0]], 0)

"""From a log to the view, in numbers worked out by hand: what each kind of record adds to what strategies look at."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from controller.aggregate.columns.rows import METRICS
from controller.aggregate.shard.fold import DetailLimits, FoldOptions
from controller.aggregate.summarized import ViewSummary
from controller.aggregate.view import assemble
from controller.model.errors import StateError
from controller.model.load import ClusterView
from controller.model.names import topic_hash
from controller.model.summary import NO_PLACE
from tests.folds import Shard, place, view_of
from tests.records import PERIOD, T, broker_state, bundle_data, load_report, namespace_state, tick

#: Sweeps; writes load reports; has topic stats alone; says nothing; one chunk of its sweep is missing.
SWEPT, REPORTED, BY_TOPIC, SILENT, HALF = (f"broker-{letter}:8080" for letter in "abcde")
FIRST, SECOND, THIRD = (
    f"acme/one/{lo}_{hi}"
    for lo, hi in (("0x00000000", "0x40000000"), ("0x40000000", "0x80000000"), ("0x80000000", "0xffffffff"))
)
WHOLE, UNKNOWN = "acme/two/0x00000000_0xffffffff", "acme/three/0x00000000_0xffffffff"
#: The topics of bundles of three topics and more are kept.
OPTIONS = FoldOptions(
    bundle_ttl_ms=10 * PERIOD, detail=DetailLimits(topics=3, sessions=1e9, msg_rate=1e18, throughput=1e18)
)
RESOURCES = ("cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut")
LOAD = ("msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut")


def said(
    of: str, at: int, usage: tuple[float, ...], load: tuple[float, ...], topics: int, bundles: int
) -> dict[str, Any]:
    """What a broker says of itself, in a sweep or a report; each of its limits is 100 times the usage."""
    resources = {name: {"usage": u, "limit": 100 * u} for name, u in zip(RESOURCES, usage, strict=True)}
    numbers = {"numTopics": topics, "numBundles": bundles, "numProducers": 5, "numConsumers": 6}
    return {"lastUpdate": at, **resources, **dict(zip(LOAD, load, strict=True)), **numbers}


def swept(broker: str, interval: int, chunk: int, chunks: int, *bundles: dict[str, Any]) -> dict[str, Any]:
    own = said(broker, interval - 500, (1.0, 2.0, 3.0, 4.0, 5.0), (10.0, 20.0, 30.0, 40.0), 7, 9)
    where = {
        "broker": broker,
        "interval": interval,
        "sweepId": f"{broker}@{interval}",
        "chunk": chunk,
        "chunks": chunks,
    }
    return {"v": 1, "type": "broker_sweep", "cluster": "demo", **where, **own, "bundleStats": list(bundles)}


def listed(bundle: str, *topics: tuple[str, tuple[float, ...]], sessions: tuple[int, int] = (1, 2)) -> dict[str, Any]:
    """A bundle of three topics, with some of them: (name, its rates), each with *sessions* (producers, consumers)."""
    columns = {name: [load[i] for _, load in topics] for i, name in enumerate(LOAD)}
    counts = {"producerCount": sessions[0], "consumerCount": sessions[1]}
    totals = {name: sum(column) for name, column in columns.items()}
    totals |= {"producerCount": 0, "consumerCount": 0, "topics": 3}
    names = {"topic": [f"persistent://acme/one/{name}" for name, _ in topics]}
    return {"bundle": bundle, "totals": totals, **names, **columns, **{k: [v] * len(topics) for k, v in counts.items()}}


def reported(at: int, **bundles: tuple[float, ...]) -> dict[str, Any]:
    own = said(REPORTED, at, (0.5, 0.25, 0.125, 6.0, 7.0), (1.0, 2.0, 3.0, 4.0), 11, 12)
    stats = {
        name: {
            **dict(zip(LOAD, load, strict=True)),
            "producerCount": 3,
            "consumerCount": 4,
            "topics": 8,
            "cacheSize": 0,
        }
        for name, load in bundles.items()
    }
    report = load_report(**own, webServiceUrl=f"http://{REPORTED}", lastStats=stats, bundles=list(bundles))
    return {"v": 1, "type": "broker_load", "cluster": "demo", "report": report}


def of_topic(broker: str, bundle: str, topic: str, load: tuple[float, ...]) -> dict[str, Any]:
    counts = {"producerCount": 1, "consumerCount": 1}
    what = {"broker": broker, "bundle": bundle, "topic": f"persistent://acme/one/{topic}"}
    return {"v": 1, "type": "topic_stats", "cluster": "demo", **what, **dict(zip(LOAD, load, strict=True)), **counts}


def ended(interval: int) -> dict[str, Any]:
    """The tick of *interval*: of five brokers two have a sweep that counts."""
    ids = {SWEPT: f"{SWEPT}@{interval}", HALF: f"{HALF}@{interval}"}
    roster = [{"broker": name, "sweepId": ids.get(name)} for name in (SWEPT, REPORTED, BY_TOPIC, SILENT, HALF)]
    return tick(interval, partitions={"metrics": 1, "results": 0}, roster=roster)


#: Two intervals; what comes in the second is twice what came in the first, or said once more.
THREE_TOPICS = (("x", (1.0, 2.0, 100.0, 200.0)), ("y", (3.0, 4.0, 300.0, 400.0)))
ONE_MORE = ("z", (0.001, 0.002, 0.5, 0.25))
BEFORE = [
    namespace_state(namespace="acme/one", version=3, boundaries=["0x00000000", "0x80000000", "0xffffffff"]),
    namespace_state(
        namespace="acme/one", version=3, boundaries=["0x00000000", "0x40000000", "0x80000000", "0xffffffff"]
    ),
    namespace_state(namespace="acme/one", version=2, boundaries=["0x00000000", "0xffffffff"]),
    broker_state(broker=SWEPT, version=0, capacity=dict(zip(RESOURCES, (11.0, 22.0, 33.0, 44.0, 55.0), strict=True))),
    broker_state(broker=REPORTED, version=7, capacity={"memory": 66.0}),
    broker_state(broker=REPORTED, version=6, capacity={"memory": 77.0}),
    swept(SWEPT, T, 0, 2, listed(FIRST, *THREE_TOPICS)),
    swept(SWEPT, T, 1, 2, listed(FIRST, ONE_MORE)),
    reported(T - 9, **{SECOND: (5.0, 5.0, 5.0, 5.0)}),
    reported(T - 5, **{SECOND: (6.0, 7.0, 8.0, 9.0), WHOLE: (1000.0, 1000.0, 1000.0, 1000.0)}),
    of_topic(REPORTED, WHOLE, "p", (0.5, 0.25, 2.0, 4.0)),
    of_topic(BY_TOPIC, THIRD, "q", (90.0, 90.0, 90.0, 90.0)),
    of_topic(BY_TOPIC, THIRD, "q", (3.0, 2.0, 1.0, 0.0)),
    of_topic(BY_TOPIC, THIRD, "r", (0.125, 0.0, 0.0, 0.5)),
    of_topic(SWEPT, FIRST, "s", (7.0, 7.0, 7.0, 7.0)),
    swept(HALF, T, 0, 2, listed(UNKNOWN, ("p", (1.0, 1.0, 1.0, 1.0)))),
    ended(T),
]
AFTER = [
    swept(SWEPT, T, 0, 1, listed(FIRST, ONE_MORE)),
    swept(SWEPT, T + PERIOD, 0, 1, listed(FIRST, ("x", (2.0, 4.0, 200.0, 400.0)), sessions=(5, 9))),
    of_topic(BY_TOPIC, THIRD, "q", (6.0, 4.0, 2.0, 0.0)),
    reported(T + PERIOD, **{SECOND: (10.0, 9.0, 8.0, 7.0)}),
    ended(T + PERIOD),
]
BATCHES = {
    "one batch": [[*BEFORE, *AFTER]],
    "two batches": [BEFORE, AFTER],
    "one record each": [[record] for record in (*BEFORE, *AFTER)],
}


@pytest.fixture(params=["one batch", "one record each"])
def first(request: pytest.FixtureRequest) -> ClusterView:
    return view_of(*([BEFORE] if request.param == "one batch" else [[record] for record in BEFORE]), options=OPTIONS)


@pytest.fixture(params=BATCHES)
def second(request: pytest.FixtureRequest) -> ClusterView:
    return view_of(*BATCHES[request.param], options=OPTIONS)


def test_each_bundle_has_the_load_that_counts(first: ClusterView) -> None:
    bundles = first.bundles
    assert first.as_of_ms == T
    assert bundles.names == (FIRST, SECOND, THIRD, WHOLE)
    assert bundles.load.tolist() == [
        [4.001, 6.002, 400.5, 600.25],  # both chunks of the sweep, and not its broker's topic stats
        [6.0, 7.0, 8.0, 9.0],  # the last report
        [3.125, 2.0, 1.0, 0.5],  # of each topic its last stats
        [0.5, 0.25, 2.0, 4.0],  # topic stats, and not the report that has them summed up; nor half a sweep
    ]
    assert [first.brokers.names[row] for row in bundles.broker.tolist()] == [SWEPT, REPORTED, BY_TOPIC, REPORTED]
    assert bundles.topics.tolist() == [3, 8, 2, 1]
    assert bundles.producers.tolist() == [3, 3, 2, 1]
    assert bundles.consumers.tolist() == [6, 4, 2, 1]


def test_a_summary_has_the_places_of_the_hottest_topics_where_they_are_known_one_by_one(first: ClusterView) -> None:
    summary = ViewSummary(first)
    summary.brokers()
    bundles = summary.bundles(set())
    at = bundles.names.index(FIRST)
    assert bundles.hot_place[at].tolist() == [topic_hash(f"persistent://acme/one/{name}") for name in ("y", "x")]
    assert bundles.hot_rate[at].tolist() == [7.0, 3.0]
    assert bundles.hot_throughput[at].tolist() == [700.0, 300.0]
    assert (np.delete(bundles.hot_place, at, axis=0) == NO_PLACE).all()


def test_each_broker_says_its_own_and_what_is_known_better_of_its_limits_replaces_them(first: ClusterView) -> None:
    brokers = first.brokers
    assert brokers.names == (SWEPT, REPORTED, BY_TOPIC)
    assert brokers.usage.tolist() == [[1.0, 2.0, 3.0, 4.0, 5.0], [0.5, 0.25, 0.125, 6.0, 7.0], [0.0] * 5]
    assert brokers.limit.tolist() == [[11.0, 22.0, 33.0, 44.0, 55.0], [50.0, 66.0, 12.5, 600.0, 700.0], [0.0] * 5]
    assert brokers.load.tolist() == [[10.0, 20.0, 30.0, 40.0], [1.0, 2.0, 3.0, 4.0], [0.0] * 4]
    assert brokers.topic_count.tolist() == [7, 11, 0]
    assert brokers.bundle_count.tolist() == [9, 12, 0]


def test_brokers_without_data_are_missing(first: ClusterView) -> None:
    assert first.missing == (SILENT, HALF)


def test_a_namespace_has_as_many_bundles_as_its_newest_state_says(first: ClusterView) -> None:
    assert first.bundles.namespaces == ("acme/one", "acme/two")
    assert first.bundles.namespace.tolist() == [0, 0, 0, 1]
    assert first.namespace_bundle_count.tolist() == [3, -1]


def test_topics_are_kept_of_the_bundles_with_enough_of_them(first: ClusterView) -> None:
    detail = first.bundles.detail
    assert detail.starts.tolist() == [0, 3, 3, 3, 3]
    assert detail.load.tolist() == [[1.0, 2.0, 100.0, 200.0], [3.0, 4.0, 300.0, 400.0], [0.001, 0.002, 0.5, 0.25]]
    assert detail.position.tolist() == [4030702961, 2268632551, 506578013]  # CRC-32 of the topics' names


def test_averages_are_those_of_both_intervals_and_add_up_by_broker(second: ClusterView) -> None:
    bundles = second.bundles
    assert second.as_of_ms == T + PERIOD
    assert bundles.names == (FIRST, SECOND, THIRD)
    assert bundles.load.tolist() == [[2.0, 4.0, 200.0, 400.0], [10.0, 9.0, 8.0, 7.0], [6.0, 4.0, 2.0, 0.0]]
    averages = [[3.0005, 5.001, 300.25, 500.125], [8.0, 8.0, 8.0, 8.0], [4.5625, 3.0, 1.5, 0.25]]
    assert bundles.short_term == pytest.approx(np.array(averages))
    assert bundles.long_term.tolist() == bundles.short_term.tolist()
    assert bundles.short_samples.tolist() == bundles.long_samples.tolist() == [2, 2, 2]
    assert second.brokers.long_term.tolist() == bundles.long_term.tolist()
    assert bundles.producers.tolist() == [5, 3, 1]
    assert bundles.consumers.tolist() == [9, 4, 1]


def test_what_comes_behind_its_tick_is_late_and_counts_for_nothing() -> None:
    shard = Shard(options=OPTIONS)
    (snapshot,) = shard.feed(*BEFORE, *AFTER)[1:]
    assert (snapshot.late, snapshot.unrostered, snapshot.dropped) == (2, 0, 0)


def test_a_bundle_on_its_way_counts_for_the_broker_that_it_was_sent_to() -> None:
    view = view_of(BEFORE, AFTER, options=OPTIONS, sent={FIRST: BY_TOPIC, SECOND: REPORTED, THIRD: SILENT})
    assert view.preallocated.bundle.tolist() == [0]
    assert view.preallocated.broker.tolist() == [2]
    assert view.brokers.preallocated_rate.tolist() == pytest.approx([0.0, 0.0, 3.0005 + 5.001])


def test_bundles_that_were_unloaded_lately_are_marked() -> None:
    snapshot = Shard(options=OPTIONS).feed(*BEFORE)[0]
    assert assemble([snapshot], {SECOND: T}, {}).recently_unloaded.tolist() == [False, True, False, False]


def test_averages_stop_counting_at_10_and_at_1000_samples() -> None:
    stored = bundle_data(bundle=FIRST)
    for term, samples in (("shortTermData", 10), ("longTermData", 999)):
        stored["bundleData"][term] |= {"numSamples": samples, **dict.fromkeys(LOAD, 1000.0)}
    at = [T + n * PERIOD for n in range(2)]
    view = view_of(
        [stored, *(record for t in at for record in (swept(SWEPT, t, 0, 1, listed(FIRST, ONE_MORE)), ended(t)))]
    )
    assert (view.bundles.short_samples.tolist(), view.bundles.long_samples.tolist()) == ([10], [1000])
    assert view.bundles.short_term[0, 0] == pytest.approx(1000 * 0.9**2, rel=1e-6)
    assert view.bundles.long_term[0, 0] == pytest.approx(1000 * 0.999**2, rel=1e-6)


def test_a_bundle_with_a_quota_starts_with_all_samples_of_it() -> None:
    quota = dict(
        zip(("msgRateIn", "msgRateOut", "bandwidthIn", "bandwidthOut"), (100.0, 200.0, 300.0, 400.0), strict=True)
    )
    stored = bundle_data(bundle=FIRST, bundleData=None, resourceQuota={**quota, "memory": 1.0, "dynamic": True})
    view = view_of([stored, swept(SWEPT, T, 0, 1, listed(FIRST, ("x", (0.0, 0.0, 0.0, 0.0)))), ended(T)])
    assert (view.bundles.short_samples.tolist(), view.bundles.long_samples.tolist()) == ([10], [1000])
    assert view.bundles.short_term[0] == pytest.approx(np.array([90.0, 180.0, 270.0, 360.0]))
    assert view.bundles.long_term[0] == pytest.approx(np.array([99.9, 199.8, 299.7, 399.6]))


def test_a_later_file_of_a_folder_lies_behind_an_earlier_one_whatever_its_name() -> None:
    shard = Shard(options=OPTIONS)
    shard.feed_file(
        "z", reported(T - 9, **{SECOND: (1.0, 1.0, 1.0, 1.0)}), reported(T - 8, **{SECOND: (2.0, 2.0, 2.0, 2.0)})
    )
    shard.feed_file("a", reported(T - 7, **{SECOND: (3.0, 3.0, 3.0, 3.0)}))
    (snapshot,) = shard.feed_file("b", ended(T))
    assert snapshot.load.tolist() == [[3.0, 3.0, 3.0, 3.0]]
    assert shard.state.files == 3


@pytest.mark.parametrize(
    ("limit", "value"), [("topics", 2.0), ("sessions", 4.0), ("msg_rate", 5.125), ("throughput", 1.5)]
)
def test_topics_reach_the_view_where_a_bundle_reaches_one_limit(limit: str, value: float) -> None:
    far = {"topics": 1e9, "sessions": 1e9, "msg_rate": 1e18, "throughput": 1e18}
    for at, kept in ((value, 2), (value + 0.0625, 0)):
        options = FoldOptions(bundle_ttl_ms=10 * PERIOD, detail=DetailLimits(**{**far, limit: at}))
        bundles = view_of(BEFORE, options=options).bundles
        row = bundles.names.index(THIRD)
        lo, hi = bundles.detail.starts[row : row + 2].tolist()
        assert hi - lo == kept
        loads = [[3.0, 2.0, 1.0, 0.0], [0.125, 0.0, 0.0, 0.5]] if kept else []
        assert sorted(bundles.detail.load[lo:hi].tolist(), reverse=True) == loads


@pytest.mark.parametrize(("first", "second", "owner"), [(5, 4, 0), (4, 5, 1), (5, 5, 1)])
def test_a_bundle_that_two_brokers_claim_is_the_later_ones_then_that_of_the_later_name(
    first: int, second: int, owner: int
) -> None:
    names = ("a:8080", "b:8080")
    records = [
        swept(name, T, 0, 1, listed(FIRST, ("x", (load, 0.0, 0.0, 0.0)))) | {"lastUpdate": T - 10 + at}
        for name, at, load in zip(names, (first, second), (1.0, 2.0), strict=True)
    ]
    roster = [{"broker": name, "sweepId": f"{name}@{T}"} for name in names]
    end = tick(T, partitions={"metrics": 1, "results": 0}, roster=roster)
    for order in (records, records[::-1]):
        view = view_of([*order, end], options=OPTIONS)
        assert (view.bundles.names, view.bundles.broker.tolist()) == ((FIRST,), [owner])
        assert view.bundles.load[0, 0] == owner + 1.0


@pytest.mark.parametrize(("silent", "known"), [(9, True), (10, True), (11, False)])
def test_a_bundle_is_forgotten_when_its_time_to_live_is_over(silent: int, known: bool) -> None:
    """Ten intervals; after them it begins anew, as the number of its samples shows."""
    shard = Shard(options=OPTIONS)
    roster = {"partitions": {"metrics": 1, "results": 0}}
    shard.feed(swept(SWEPT, T, 0, 1, listed(FIRST, ONE_MORE)), ended(T))
    for n in range(1, silent + 1):
        shard.feed(tick(T + n * PERIOD, roster=[{"broker": SWEPT, "sweepId": None}], **roster))
    at = T + (silent + 1) * PERIOD
    (snapshot,) = shard.feed(swept(SWEPT, at, 0, 1, listed(FIRST, ONE_MORE)), ended(at))
    assert snapshot.long_samples.tolist() == [2 if known else 1]


def test_of_a_topics_stats_in_several_partitions_those_of_the_last_partition_count() -> None:
    first, last = (METRICS, 0), (METRICS, 1)
    end = tick(T, partitions={"metrics": 2, "results": 0}, roster=[{"broker": BY_TOPIC, "sweepId": None}])
    placed = [
        place(first, 8, of_topic(BY_TOPIC, THIRD, "q", (1.0, 0.0, 0.0, 0.0))),
        place(last, 3, of_topic(BY_TOPIC, THIRD, "q", (2.0, 0.0, 0.0, 0.0))),
        place(last, 4, of_topic(BY_TOPIC, THIRD, "r", (8.0, 0.0, 0.0, 0.0))),
        place(first, 9, of_topic(BY_TOPIC, THIRD, "r", (4.0, 0.0, 0.0, 0.0))),
        place(first, 10, end),
        place(last, 10, {**end, "roster": None}),
    ]
    (snapshot,) = Shard(options=OPTIONS).feed_places(*placed)
    assert (snapshot.load[:, 0].tolist(), snapshot.topics.tolist()) == ([10.0], [2])


def test_a_chunk_that_was_delivered_twice_counts_where_it_lies_first() -> None:
    first, last = (METRICS, 0), (METRICS, 1)
    end = tick(T, partitions={"metrics": 2, "results": 0}, roster=[{"broker": SWEPT, "sweepId": f"{SWEPT}@{T}"}])
    placed = [
        place(last, 2, swept(SWEPT, T, 0, 1, listed(FIRST, ("x", (2.0, 0.0, 0.0, 0.0))))),
        place(first, 7, swept(SWEPT, T, 0, 1, listed(FIRST, ("x", (1.0, 0.0, 0.0, 0.0))))),
        place(first, 8, swept(SWEPT, T, 0, 1, listed(FIRST, ("x", (4.0, 0.0, 0.0, 0.0))))),
        place(first, 9, end),
        place(last, 9, {**end, "roster": None}),
    ]
    (snapshot,) = Shard(options=OPTIONS).feed_places(*placed)
    assert snapshot.load[:, 0].tolist() == [1.0]


def test_the_first_interval_of_all_is_closed_like_any_other() -> None:
    swept_at_0 = swept(SWEPT, 0, 0, 1, listed(FIRST, ONE_MORE)) | {"lastUpdate": 0}
    for interval in (0, 1):
        shard = Shard(options=OPTIONS)
        (snapshot,) = shard.feed(swept_at_0 | {"interval": interval}, ended(interval) | {"roster": [
            {"broker": SWEPT, "sweepId": f"{SWEPT}@0"}]})  # fmt: skip
        assert (snapshot.interval, snapshot.names) == (interval, [FIRST])
        assert shard.feed(ended(interval)) == []


def test_facts_and_reports_behind_a_tick_belong_to_the_next_interval() -> None:
    two = namespace_state(namespace="acme/one", version=1, boundaries=["0x00000000", "0x80000000", "0xffffffff"])
    one = namespace_state(namespace="acme/one", version=2, boundaries=["0x00000000", "0xffffffff"])
    now, next_ = reported(T - 9, **{SECOND: (5.0,) * 4}), reported(T - 8, **{SECOND: (6.0,) * 4})
    end, last = ended(T), ended(T + PERIOD)
    for batches in ([[two, now, end, one, next_, last]], [[two, now], [end, one, next_], [last]]):
        shard = Shard(options=OPTIONS)
        first, second = (snapshot for batch in batches for snapshot in shard.feed(*batch))
        assert [len(found.boundaries) for each in (first, second) for found in each.namespaces] == [3, 2]
        assert [each.load[0, 0] for each in (first, second)] == [5.0, 6.0]
        assert [each.brokers[0].last_update for each in (first, second)] == [T - 9, T - 8]


def test_a_view_needs_every_shard_of_its_interval_once() -> None:
    snapshot = Shard(options=OPTIONS).feed(*BEFORE)[0]
    halves = [replace(snapshot, shards=2), replace(snapshot, shards=2, shard=1)]
    assert assemble(halves, {}, {}).as_of_ms == T
    for wrong, got in ((halves[:1], [0]), ([halves[1]], [1]), ([*halves, halves[0]], [0, 0, 1])):
        with pytest.raises(StateError) as caught:
            assemble(wrong, {}, {})
        assert str(caught.value).endswith(f"expected shards 0..1 once each, got {got}")
    with pytest.raises(StateError, match="expected shards"):
        assemble([halves[0], replace(halves[1], interval=T + PERIOD)], {}, {})


def test_what_waits_in_any_partition_is_taken_in_with_a_tick_of_a_later_batch() -> None:
    roster = [{"broker": BY_TOPIC, "sweepId": None}]
    end = tick(T, partitions={"metrics": 3, "results": 0}, roster=roster)
    shard = Shard(options=OPTIONS)
    for partition, load in enumerate((1.0, 2.0, 4.0)):
        stats = of_topic(BY_TOPIC, THIRD, f"q{partition}", (load, 0.0, 0.0, 0.0))
        assert shard.feed_places(place((METRICS, partition), 0, stats)) == []
    ticks = [place((METRICS, n), 1, end if n == 0 else {**end, "roster": None}) for n in range(3)]
    assert shard.feed_places(ticks[0], ticks[1]) == []
    (snapshot,) = shard.feed_places(ticks[2])
    assert (snapshot.load[:, 0].tolist(), snapshot.topics.tolist()) == ([7.0], [3])

"""The store of the page: what it answers is what the log has, however it was filled."""

import json
import os
import sqlite3
import threading
import zlib
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from controller.lab.invented_weeks import InventedWeek
from controller.log.files.log import FolderLog
from controller.log.memory import MemoryLog, MemoryServer
from controller.log.port import NO_HEADERS, OLDEST, Out, Start
from controller.log.summaries import SummaryLog
from controller.model.controls import OperatorControls
from controller.model.errors import TrimtabError
from controller.model.summary import NO_PLACE, IntervalSummary
from controller.web.store.database import Database
from controller.web.store.feed import Feed
from controller.web.store.hot_topics import hot_topics_in
from controller.web.store.store import FILE_NAME, Store
from controller.web.store.values import HIGHLIGHTED, NO_DATA, DecisionQuery, Tile
from controller.wire.summary import decode_summary, encode_summary
from tests.unit.web.weeks import CLUSTER, PERIOD_MS, Day, day

BROKERS = [f"broker-{each:04d}.example:8080" for each in range(3)]
ALL = DecisionQuery()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    filled = day().store(tmp_path_factory.mktemp("store"))
    yield filled
    filled.close()


def copied(only: range | None = None) -> MemoryServer:
    """A log of its own with what the day's has; of the summaries *only* these."""
    server, source = MemoryServer(now_ms=lambda: 0), day().log()
    for topic in ("journal", "results", "summaries"):
        records = [*source.read(topic).read_to_end()]
        chosen = [records[each] for each in only] if only is not None and topic == "summaries" else records
        for record in chosen:
            append(server, topic, record.value, record.timestamp_ms, record.headers)
    return server


def append(
    server: MemoryServer,
    topic: Any,
    value: bytes,
    at_ms: int,
    headers: Mapping[str, bytes] = NO_HEADERS,
    partition: int = 0,
) -> None:
    server.now_ms = lambda: at_ms
    MemoryLog(server).append([Out(topic, value, partition=partition, headers=headers)], within_seconds=1)


def broker_tile(store: Store, metric: Any = "usage", width: int = 2048, height: int = 512) -> Tile:
    return store.broker_tile(metric, day().since_ms, day().until_ms, width=width, height=height, order="name")


def answers(store: Store) -> list[Any]:
    """Much of what a store says, for comparison."""
    d = day()
    tiles = [broker_tile(store), store.keyspace_tile("rate", d.since_ms, d.until_ms, width=100, height=512)]
    page = store.decisions(ALL, limit=500)
    return [
        *((tile.cells.tolist(), tile.rows, tile.column_ms) for tile in tiles),
        page.rows,
        [store.decision(row.interval) for row in page.rows],
        store.latest(),
        store.controls().events,
    ]


def test_all_that_was_there_is_loaded_and_said_so(store: Store) -> None:
    progress = store.progress()
    assert progress.complete
    assert (progress.oldest, progress.newest) == (day().intervals[0], day().intervals[-1])
    assert {each.source: (each.done, each.refused, each.error) for each in progress.sources} == dict.fromkeys(
        ("controls", "journal", "results", "summaries"), (1.0, 0, "")
    )


def test_the_last_interval_is_what_its_summary_says(store: Store) -> None:
    latest = store.latest()
    assert latest is not None
    last = decode_summary([*day().log().read("summaries").read_to_end()][-1].value, cluster=CLUSTER)
    assert last is not None
    assert (latest.interval, latest.epoch, latest.bundles) == (last.interval, last.epoch, last.totals.bundles)
    assert [(each.key, each.used, each.limit) for each in latest.budgets] == [
        (each.key, each.used, each.limit) for each in last.guarding.budgets
    ]


def test_brokers_are_listed_fullest_first(store: Store) -> None:
    states = store.brokers()
    assert states is not None
    usages = [each.fullest_usage for each in states.brokers]
    assert usages == sorted(usages, key=lambda usage: -(usage or 0))
    assert states.limit == pytest.approx(85.0)


def test_a_tile_has_the_usage_of_every_broker_and_interval(store: Store) -> None:
    tile = broker_tile(store)
    assert [row.name for row in tile.rows] == BROKERS
    assert tile.column_ms == PERIOD_MS
    for column, record in enumerate(day().log().read("summaries").read_to_end()):
        summary = decode_summary(record.value, cluster=CLUSTER)
        assert summary is not None
        usage = np.nan_to_num(summary.brokers.usage[:, [0, 2, 3, 4]].max(axis=1))
        assert tile.values[tile.cells[:, column]].tolist() == pytest.approx(usage.tolist(), abs=0.26)


@pytest.mark.parametrize("width", [1, 7, 10, 30, 60])
def test_a_narrower_tile_shows_the_maxima_of_the_wider_one(store: Store, width: int) -> None:
    wide, narrow = broker_tile(store), broker_tile(store, width=width)
    assert narrow.cells.shape[1] <= width
    step = narrow.column_ms // wide.column_ms
    begin = (wide.since_ms - narrow.since_ms) // wide.column_ms
    for column in range(narrow.cells.shape[1]):
        low = max(0, column * step - begin)
        part = wide.cells[:, low : max(low, (column + 1) * step - begin)].astype(np.int64)
        expected = np.where(part == NO_DATA, -1, part).max(axis=1, initial=-1)
        assert np.where(expected < 0, NO_DATA, expected).tolist() == narrow.cells[:, column].tolist()


def test_rows_that_do_not_fit_are_folded_to_their_maximum(store: Store) -> None:
    whole, folded = broker_tile(store), broker_tile(store, height=2)
    assert [(row.first, row.last, row.count) for row in folded.rows] == [
        (BROKERS[0], BROKERS[0], 1),
        (BROKERS[1], BROKERS[2], 2),
    ]
    assert folded.cells[1].tolist() == whole.cells[1:].max(axis=0).tolist()


def test_time_without_data_is_not_zero(store: Store) -> None:
    d = day()
    tile = store.broker_tile("usage", d.until_ms, d.until_ms + 3_600_000, width=10, height=10)
    assert (tile.cells == NO_DATA).all()
    assert not tile.final


def test_a_span_that_is_over_is_final(store: Store) -> None:
    d = day()
    assert store.broker_tile("usage", d.since_ms, d.since_ms + 3_600_000, width=10, height=10).final


def test_the_keyspace_of_a_namespace_is_in_the_order_of_its_ranges(store: Store) -> None:
    d = day()
    tile = store.keyspace_tile(
        "throughput", d.since_ms, d.until_ms, width=100, height=512, namespace="tenant-0/app-0000"
    )
    names = [row.name for row in tile.rows]
    assert names == sorted(names)
    assert len(names) > 30  # splits become rows of their own


def test_where_bundles_do_not_fit_namespaces_are_rows(tmp_path: Path) -> None:
    week = InventedWeek(brokers=3, bundles=40, namespaces=8, days=0.1, period_ms=PERIOD_MS)
    server = MemoryServer(now_ms=week.now_ms)
    week.write(MemoryLog(server))
    store = Store(tmp_path, cluster=CLUSTER)
    Feed(store, lambda: MemoryLog(server), OperatorControls, now_ms=lambda: week.end_ms).catch_up()
    tile = store.keyspace_tile("rate", week.start_ms, week.end_ms, width=100, height=5)
    assert [row.count for row in tile.rows] == [1, 1, 1, 1, 4]
    assert (tile.cells != NO_DATA).all()
    store.close()


def test_owners_show_the_highlighted_broker(store: Store) -> None:
    d = day()
    tile = store.keyspace_tile("owner", d.since_ms, d.until_ms, width=2048, height=512, owner=BROKERS[1])
    latest = [*day().log().read("summaries").read_to_end()][-1]
    summary = decode_summary(latest.value, cluster=CLUSTER)
    assert summary is not None
    owned = int((summary.ranges.owner == 1).sum())
    assert int((tile.cells[:, -1] == HIGHLIGHTED).sum()) == owned


def test_a_command_is_shown_with_its_result_and_what_became_of_it(store: Store) -> None:
    commands = [
        command
        for row in store.decisions(DecisionQuery(with_commands=True), limit=500).rows
        for command in (store.decision(row.interval) or pytest.fail("it is listed")).commands
    ]
    assert {command.status for command in commands} == {"done", "failed"}
    measured = [command.measured for command in commands if command.measured is not None]
    assert {each.outcome for each in measured} == {"arrived", "stayed"}
    sides = [side for each in measured for side in (each.source, each.destination)]
    misses = {round(abs(side.measured - side.promised), 3) for side in sides if side.measured and side.promised}
    assert misses == {0.8, 5.0}


@pytest.mark.parametrize("limit", [1, 7, 500])
def test_pages_of_decisions_hold_each_once_forwards_and_back(store: Store, limit: int) -> None:
    pages, cursor = [], None
    while True:
        page = store.decisions(ALL, cursor=cursor, limit=limit)
        pages.append(page)
        if page.cursor is None:
            break
        cursor = page.cursor
    assert [row.interval for page in pages for row in page.rows] == day().intervals[::-1]
    if len(pages) > 1:
        assert store.decisions(ALL, cursor=pages[1].newer, limit=limit).rows == pages[0].rows
    assert pages[0].newer is None


def test_decisions_are_found_by_broker_namespace_bundle_and_reason(store: Store) -> None:
    command = store.moves(day().since_ms, day().until_ms, limit=500)[0]
    for query in (
        DecisionQuery(broker=command.destination),
        DecisionQuery(namespace=command.namespace),
        DecisionQuery(bundle=command.bundle),
        DecisionQuery(reason="Overloaded"),
        DecisionQuery(bundle=command.bundle, broker=command.source, since_ms=command.interval),
    ):
        assert command.interval in [row.interval for row in store.decisions(query, limit=500).rows]
    for query in (DecisionQuery(broker="nobody"), DecisionQuery(reason="' OR 1=1 --")):
        assert store.decisions(query).rows == ()


@pytest.mark.parametrize("cursor", ["", "x5", "o", "o-1", "o5; DROP TABLE decisions", "o" + "9" * 40, "n²"])
def test_a_cursor_that_nobody_gave_out_is_refused(store: Store, cursor: str) -> None:
    with pytest.raises(ValueError, match="cursor"):
        store.decisions(ALL, cursor=cursor)


@pytest.mark.parametrize(
    ("since", "until", "width", "height"),
    [(5, 5, 10, 10), (10, 5, 10, 10), (-5, 5, 10, 10), (0, 1 << 62, 10, 10), (0, 60_000, 0, 10), (0, 60_000, 10, 0)],
)
def test_a_tile_that_cannot_be_is_refused(store: Store, since: int, until: int, width: int, height: int) -> None:
    with pytest.raises(ValueError, match="expected"):
        store.broker_tile("usage", since, until, width=width, height=height)


def test_a_bundle_shows_its_owners_and_what_was_done_to_it(store: Store) -> None:
    d = day()
    command = store.moves(d.since_ms, d.until_ms, limit=500)[0]
    past = store.bundle(command.bundle, d.since_ms, d.until_ms)
    assert past.known
    assert command in past.commands
    owners = {span.owner for span in past.owners}
    assert {command.source, command.destination} <= owners
    assert np.nanmax(past.load.values["throughput"]) > 0


def test_a_bundle_shows_the_hot_topics_of_the_last_summary(store: Store) -> None:
    d = day()
    past = store.bundle(last_summary().bundles.names[0], d.since_ms, d.until_ms)
    rate = past.figures["rate_in"] + past.figures["rate_out"]
    assert [each.share for each in past.hot_topics] == pytest.approx([0.6, 0.25])
    assert [each.rate for each in past.hot_topics] == pytest.approx([0.6 * rate, 0.25 * rate])


def test_hot_topics_are_known_of_every_interval_and_of_a_span_the_hottest(store: Store) -> None:
    d, records = day(), [*day().log().read("summaries").read_to_end()]
    first = decode_summary(records[0].value, cluster=CLUSTER)
    assert first is not None
    bundle, row = last_summary().bundles.names[0], first.bundles.names.index(last_summary().bundles.names[0])
    at = d.intervals[0]
    moment = store.hot_topics(bundle, at, at + 1)
    assert moment is not None
    assert moment.at_ms == at
    assert [each.place for each in moment.topics] == first.bundles.hot_place[row].tolist()
    assert [each.share for each in moment.topics] == pytest.approx([0.6, 0.25])
    hottest = store.hot_topics(bundle, d.since_ms, d.intervals[8])
    assert hottest is not None
    each_one = [store.hot_topics(bundle, at, at + 1) for at in d.intervals[:8]]
    assert hottest.topics[0].throughput == max(one.topics[0].throughput for one in each_one if one)
    assert store.hot_topics(bundle, d.until_ms, d.until_ms + 86_400_000) is None
    assert store.hot_topics("tenant-0/nowhere/0x00000000_0xffffffff", at, at + 1) is None


@pytest.mark.parametrize("damage", [b"", b"x", zlib.compress(b"x")])
def test_damaged_hot_topics_are_none(damage: bytes) -> None:
    assert hot_topics_in(damage, "a/b/0x00000000_0xffffffff") == ()


def test_a_bundle_without_load_of_its_topics_has_no_hot_ones(tmp_path: Path) -> None:
    d, server, last = day(), copied(only=range(2)), last_summary()
    nowhere = np.full_like(last.bundles.hot_place, NO_PLACE)
    value = encode_summary(replace(last, bundles=replace(last.bundles, hot_place=nowhere)))
    append(server, "summaries", value, last.decided_at_ms)
    with closing(d.store(tmp_path, MemoryLog(server))) as filled:
        past = filled.bundle(last.bundles.names[0], d.since_ms, d.until_ms)
        assert past.figures
        assert past.hot_topics == ()


def last_summary() -> IntervalSummary:
    record = [*day().log().read("summaries").read_to_end()][-1]
    return decode_summary(record.value, cluster=CLUSTER) or pytest.fail("it is of another cluster")


def test_unknown_names_are_known_to_be_unknown(store: Store) -> None:
    d = day()
    assert not store.broker("nobody:8080", d.since_ms, d.until_ms).known
    assert not store.namespace("t/nothing", d.since_ms, d.until_ms).known
    assert not store.bundle("t/nothing/0x00000000_0xffffffff", d.since_ms, d.until_ms).known
    with pytest.raises(ValueError, match="not a bundle name"):
        store.bundle("no bundle", d.since_ms, d.until_ms)


@pytest.mark.parametrize(
    ("text", "kind"), [("broker-0001", "broker"), ("app-0000", "namespace"), ("0x00000000_", "bundle")]
)
def test_names_are_found_by_their_parts(store: Store, text: str, kind: str) -> None:
    assert store.search(text)[0].kind == kind


@pytest.mark.parametrize("text", ["%", "_____", "' OR ''='", "\\"])
def test_a_search_takes_every_character_as_it_is(store: Store, text: str) -> None:
    assert [match for match in store.search(text) if text not in match.name] == []


def test_controls_are_listed_newest_first_and_in_pages(store: Store) -> None:
    first = store.controls(limit=2)
    rest = store.controls(limit=2, cursor=first.cursor)
    assert [each.action for each in (*first.events, *rest.events)] == ["resume", "pause", "mode"]
    assert rest.cursor is None


def test_counts_of_moves_add_up(store: Store) -> None:
    d = day()
    moves = store.moves(d.since_ms, d.until_ms, limit=500)
    assert sum(store.move_counts(d.since_ms, d.until_ms, bins=7)) == len(moves)
    assert store.moves(d.since_ms, d.until_ms, limit=1) == ()


# ---- however it was filled ----


def test_a_store_that_was_stopped_and_started_again_answers_the_same(store: Store, tmp_path: Path) -> None:
    server = copied(range(30))
    first = Store(tmp_path, cluster=CLUSTER)
    feed = Feed(first, lambda: MemoryLog(server), day().week.controls, now_ms=day().now_ms)
    feed.catch_up()
    first.close()
    records = [*day().log().read("summaries").read_to_end()]
    for record in records[30:]:
        append(server, "summaries", record.value, record.timestamp_ms)
    again = Store(tmp_path, cluster=CLUSTER)
    Feed(again, lambda: MemoryLog(server), day().week.controls, now_ms=day().now_ms).catch_up()
    assert answers(again) == answers(store)
    again.close()


def test_what_comes_twice_changes_nothing(store: Store, tmp_path: Path) -> None:
    server = copied()
    for record in [*MemoryLog(server).read("summaries").read_to_end()]:
        append(server, "summaries", record.value, day().until_ms)
    twice = Store(tmp_path, cluster=CLUSTER)
    for _ in range(2):
        Feed(twice, lambda: MemoryLog(server), day().week.controls, now_ms=day().now_ms).catch_up()
    assert answers(twice) == answers(store)
    twice.close()


def test_a_log_in_a_folder_is_read_as_one_in_memory(tmp_path: Path) -> None:
    now_ms = __import__("time").time_ns() // 1_000_000
    week = InventedWeek(brokers=3, bundles=30, days=0.1, period_ms=PERIOD_MS, end_ms=now_ms)
    week.write(FolderLog(tmp_path / "log", cluster=CLUSTER))
    store = Store(tmp_path / "store", cluster=CLUSTER)
    Feed(store, lambda: FolderLog(tmp_path / "log", cluster=CLUSTER), week.controls).catch_up()
    assert store.progress().complete
    assert len(store.decisions(ALL, limit=500).rows) == week.intervals
    tile = store.broker_tile("usage", week.start_ms, week.end_ms, width=100, height=10)
    assert (tile.cells[:, : week.intervals] != NO_DATA).all()
    store.close()


def test_decisions_without_summaries_are_shown_without_pictures(tmp_path: Path) -> None:
    server = copied(range(0, 72, 2))
    store = Store(tmp_path, cluster=CLUSTER)
    Feed(store, lambda: MemoryLog(server), OperatorControls, now_ms=day().now_ms).catch_up()
    rows = store.decisions(ALL, limit=500).rows
    assert [row.reasons is None for row in rows] == [True, False] * 36
    assert store.progress().missing == 35
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{}",
        b"\xff",
        b'{"v":1,"type":"summary"}',
        b"[" * 100_000,
        b'{"v":1,"cluster":"invented","type":"summary"}',
    ],
)
def test_a_record_that_cannot_be_used_is_counted_and_hides_nothing(store: Store, tmp_path: Path, value: bytes) -> None:
    server = copied(range(36))
    for topic in ("summaries", "journal", "results"):
        append(server, topic, value, day().intervals[36])
    for record in [*day().log().read("summaries").read_to_end()][36:]:
        append(server, "summaries", record.value, record.timestamp_ms)
    filled = Store(tmp_path, cluster=CLUSTER)
    Feed(filled, lambda: MemoryLog(server), day().week.controls, now_ms=day().now_ms).catch_up()
    assert answers(filled) == answers(store)
    assert {each.source: each.refused for each in filled.progress().sources}["summaries"] == 1
    filled.close()


def test_a_summary_of_the_future_is_refused(store: Store, tmp_path: Path) -> None:
    server = copied()
    last = decode_summary([*MemoryLog(server).read("summaries").read_to_end()][-1].value, cluster=CLUSTER)
    assert last is not None
    ahead = replace(last, interval=last.interval + 100 * PERIOD_MS)
    append(server, "summaries", encode_summary(ahead), day().until_ms + 1_000 * PERIOD_MS)
    filled = Store(tmp_path, cluster=CLUSTER)
    Feed(filled, lambda: MemoryLog(server), day().week.controls, now_ms=day().now_ms).catch_up()
    assert answers(filled) == answers(store)
    filled.close()


@pytest.mark.slow
@pytest.mark.parametrize("details", [b"", b"no zlib", zlib.compress(b"{"), zlib.compress(b"x" * (9 << 20))])
def test_details_that_cannot_be_used_hide_nothing_else(store: Store, tmp_path: Path, details: bytes) -> None:
    server = copied(range(71))
    last = json.loads([*day().log().read("summaries").read_to_end()][-1].value)
    last["details"] = b64encode(details).decode()
    append(server, "summaries", json.dumps(last).encode(), day().until_ms)
    filled = Store(tmp_path, cluster=CLUSTER)
    Feed(filled, lambda: MemoryLog(server), day().week.controls, now_ms=day().now_ms).catch_up()
    span = day().since_ms, day().until_ms
    assert filled.latest() == replace(store.latest() or pytest.fail("nothing"), budgets=())
    assert filled.broker(BROKERS[0], *span).verdicts == ()
    assert filled.broker(BROKERS[0], *span).now == store.broker(BROKERS[0], *span).now
    bundle = store.search("0x")[0].name
    assert filled.bundle(bundle, *span).owners == store.bundle(bundle, *span).owners
    filled.close()


def test_another_clusters_summaries_are_passed_over(tmp_path: Path) -> None:
    other = Store(tmp_path, cluster="other")
    Feed(other, day().log, OperatorControls, now_ms=day().now_ms).catch_up()
    assert other.latest() is None
    assert other.decisions(ALL).rows == ()
    other.close()


def test_a_file_of_another_cluster_is_built_anew(store: Store, tmp_path: Path) -> None:
    Store(tmp_path, cluster="other").close()
    filled = day().store(tmp_path)
    assert "other" in filled.progress().rebuilt
    assert answers(filled) == answers(store)
    filled.close()


@pytest.mark.slow
@pytest.mark.parametrize("damage", [b"no database", b"SQLite format 3\0" + b"\xff" * 4096, b"\0" * 50_000])
def test_a_damaged_file_is_built_anew_from_the_log(store: Store, tmp_path: Path, damage: bytes) -> None:
    day().store(tmp_path).close()
    (tmp_path / FILE_NAME).write_bytes(damage)
    for suffix in ("-wal", "-shm"):
        (tmp_path / (FILE_NAME + suffix)).unlink(missing_ok=True)
    filled = day().store(tmp_path)
    assert filled.progress().rebuilt
    assert answers(filled) == answers(store)
    filled.close()


@pytest.mark.slow
def test_a_file_that_is_damaged_while_it_is_used_is_built_anew(store: Store, tmp_path: Path) -> None:
    filled = day().store(tmp_path)
    filled.close()
    content = bytearray((tmp_path / FILE_NAME).read_bytes())
    content[8_192:] = os.urandom(len(content) - 8_192)
    (tmp_path / FILE_NAME).write_bytes(content)
    again = Store(tmp_path, cluster=CLUSTER)
    feed = day().feed(again)
    feed.start()
    version = again.version()
    for _ in range(100):
        version = again.wait(version, 0.2)
        if again.progress().complete and again.progress().newest == day().intervals[-1]:
            break
    feed.close()
    assert again.progress().rebuilt
    assert answers(again) == answers(store)
    again.close()


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"", b"damaged", zlib.compress(b"too short")])
def test_a_picture_that_a_query_meets_damaged_has_all_built_anew(store: Store, tmp_path: Path, content: bytes) -> None:
    day().store(tmp_path).close()
    again = Store(tmp_path, cluster=CLUSTER)
    feed = day().feed(again)
    feed.start()
    _wait_for(again, lambda: again.progress().complete)
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection, connection:
        where = "kind = 'brokers' AND layer = 'cpu' AND level = 0"
        oldest = f"SELECT min(number) FROM chunks WHERE {where}"
        connection.execute(f"UPDATE chunks SET content = ? WHERE {where} AND number = ({oldest})", (content,))
    with pytest.raises(TrimtabError, match="damaged"):
        broker_tile(again, "cpu")
    _wait_until_rebuilt(again)
    feed.close()
    assert answers(again) == answers(store)
    again.close()


@pytest.mark.slow
@pytest.mark.parametrize("fails", range(1, 8))
def test_what_could_not_be_stored_is_read_again(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: int
) -> None:
    filled, write, calls = Store(tmp_path, cluster=CLUSTER), Database.write, list[int]()

    @contextmanager
    def full(self: Database) -> Iterator[sqlite3.Connection]:
        calls.append(1)
        with write(self) as connection:
            yield connection
            if len(calls) == fails:
                raise sqlite3.OperationalError("database or disk is full")

    feed = day().feed(filled)
    monkeypatch.setattr(Database, "write", full)
    with pytest.raises(TrimtabError, match="disk is full"):
        feed.catch_up()
    feed.catch_up()
    assert answers(filled) == answers(store)
    filled.close()
    again = Store(tmp_path, cluster=CLUSTER)
    day().feed(again).catch_up()
    assert answers(again) == answers(store)
    again.close()


class HalfLog(MemoryLog):
    """Loses its connection once, when the second partition is read."""

    away = True

    def read(self, topic: Any, start: Start = OLDEST, *, partition: int | None = None) -> Any:
        if partition and HalfLog.away:
            HalfLog.away = False
            lost = Mock()
            lost.read_to_end.side_effect = TrimtabError("the connection is lost")
            return lost
        return super().read(topic, start, partition=partition)


@pytest.mark.slow
def test_a_rebuild_that_fails_is_tried_again(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    day().store(tmp_path).close()
    rebuild, failures = Database.rebuild, list[int]()

    def full(self: Database, why: str) -> None:
        if len(failures) < 4:  # once for each thread that reads
            failures.append(1)
            raise TrimtabError("database or disk is full")
        rebuild(self, why)

    monkeypatch.setattr(Database, "rebuild", full)
    monkeypatch.setattr("controller.web.store.feed._RETRY_SECONDS", 0.01)
    again = Store(tmp_path, cluster=CLUSTER)
    feed = day().feed(again)
    feed.start()
    _wait_for(again, lambda: again.progress().complete)
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection, connection:
        connection.execute("UPDATE chunks SET content = 'damaged' WHERE level = 0")
    with pytest.raises(TrimtabError, match="damaged"):
        broker_tile(again)
    _wait_until_rebuilt(again)
    feed.close()
    assert answers(again) == answers(store)
    again.close()


def test_old_decisions_go_where_nobody_writes_summaries(tmp_path: Path) -> None:
    hours = 3_600_000
    store, server = Store(tmp_path, cluster=CLUSTER, retention_ms=6 * hours), MemoryServer()
    feed = Feed(store, lambda: MemoryLog(server), OperatorControls, now_ms=day().now_ms)
    records = [*day().log().read("journal").read_to_end()]
    for some in (records[:36], records[36:]):
        for record in some:
            append(server, "journal", record.value, record.timestamp_ms, record.headers)
        feed.catch_up()
    rows = store.decisions(ALL, limit=500).rows
    assert rows[0].interval == day().intervals[-1]
    assert rows[-1].interval >= rows[0].interval - 6 * hours
    store.close()


@pytest.mark.slow
def test_results_of_a_partition_whose_reading_broke_off_are_read_later(tmp_path: Path) -> None:
    week = InventedWeek(brokers=3, bundles=30, days=5, period_ms=PERIOD_MS)
    source, server = MemoryServer(now_ms=week.now_ms), MemoryServer(partitions=2)
    week.write(MemoryLog(source))
    for topic in ("journal", "results"):
        for number, record in enumerate(MemoryLog(source).read(topic).read_to_end()):
            partition = number % len(server.topic(topic))
            append(server, topic, record.value, record.timestamp_ms, record.headers, partition)
    for _ in range(2):  # and again, as after a restart
        again = Store(tmp_path, cluster=CLUSTER)
        feed = Feed(again, lambda: HalfLog(server), OperatorControls, now_ms=lambda: week.end_ms)
        with suppress(TrimtabError):
            feed.catch_up()
        feed.close()
        rows = again.decisions(ALL, limit=500).rows
        again.close()
    assert sum(row.statuses.get("", 0) for row in rows) == 0


def test_two_processes_do_not_share_a_file(tmp_path: Path) -> None:
    first = Store(tmp_path, cluster=CLUSTER)
    with pytest.raises(TrimtabError, match="another process uses it"):
        Store(tmp_path, cluster=CLUSTER)
    first.close()
    Store(tmp_path, cluster=CLUSTER).close()


def test_a_topic_that_does_not_exist_yet_is_said_and_read_once_it_does(tmp_path: Path) -> None:
    server = MemoryServer(now_ms=day().now_ms)
    store = Store(tmp_path, cluster=CLUSTER)
    feed = Feed(store, lambda: MemoryLog(server), OperatorControls, now_ms=day().now_ms)
    feed.catch_up()
    assert "does not exist" in {each.source: each.error for each in store.progress().sources}["summaries"]
    summary = decode_summary([*day().log().read("summaries").read_to_end()][-1].value, cluster=CLUSTER)
    assert summary is not None
    SummaryLog(MemoryLog(server)).write(summary)
    feed.catch_up()
    assert (store.latest() or pytest.fail("nothing")).interval == summary.interval
    assert {each.source: each.error for each in store.progress().sources}["summaries"] == ""
    store.close()


@pytest.mark.slow
def test_what_comes_while_it_is_followed_is_shown(tmp_path: Path) -> None:
    server = copied(range(71))
    store = Store(tmp_path, cluster=CLUSTER)
    feed = Feed(store, lambda: MemoryLog(server), day().week.controls, now_ms=day().now_ms)
    feed.start()
    _wait_for(store, lambda: store.progress().complete)
    record = [*day().log().read("summaries").read_to_end()][-1]
    append(server, "summaries", record.value, record.timestamp_ms)
    with server.changed:
        server.changed.notify_all()
    _wait_for(store, lambda: (latest := store.latest()) is not None and latest.interval == day().intervals[-1])
    feed.close()
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("error", [TrimtabError("away"), OSError("no route"), RuntimeError("a fault")])
def test_a_source_is_read_whatever_came_between(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr("controller.web.store.feed._RETRY_SECONDS", 0.01)
    failures = [error] * 3

    def connect() -> MemoryLog:
        if failures:
            raise failures.pop()
        return day().log()

    filled = Store(tmp_path, cluster=CLUSTER)
    feed = Feed(filled, connect, day().week.controls, now_ms=day().now_ms)
    feed.start()
    _wait_for(filled, lambda: filled.progress().complete)
    feed.close()
    assert answers(filled) == answers(store)
    filled.close()


def test_a_store_that_is_emptied_is_not_complete_for_a_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty, seen = Database.rebuild, list[bool]()

    def watched(database: Database, why: str) -> None:
        empty(database, why)
        seen.append(own.progress().complete)

    monkeypatch.setattr(Database, "rebuild", watched)
    with closing(day().store(tmp_path)) as own:
        assert own.progress().complete
        own.rebuild("damaged")
    assert seen == [False]


def _wait_until_rebuilt(store: Store) -> None:
    _wait_for(store, lambda: store.progress().rebuilt != "" and store.progress().complete)
    _wait_for(store, lambda: store.progress().newest == day().intervals[-1])
    _wait_for(store, lambda: len(store.decisions(ALL, limit=500).rows) == len(day().intervals))
    _wait_for(store, lambda: len(store.controls().events) == 3)


def _wait_for(store: Store, holds: Any) -> None:
    for _ in range(200):
        if holds():
            return
        store.wait(store.version(), 0.1)
    pytest.fail("it did not come in time")


def test_many_threads_ask_while_it_is_filled(store: Store, tmp_path: Path) -> None:
    filled = Store(tmp_path, cluster=CLUSTER)
    feed, failures = day().feed(filled), list[Exception]()

    def ask() -> None:
        try:
            for _ in range(20):
                answers_so_far = filled.decisions(ALL, limit=500)
                assert len(answers_so_far.rows) <= 72
                broker_tile(filled)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    feed.catch_up()
    for thread in threads:
        thread.join()
    assert failures == []
    assert answers(filled) == answers(store)
    filled.close()


@pytest.mark.slow
def test_the_file_stays_below_its_limit(tmp_path: Path) -> None:
    week = InventedWeek(brokers=30, bundles=3_000, days=1, period_ms=PERIOD_MS)
    server = MemoryServer(now_ms=week.now_ms)
    week.write(MemoryLog(server))
    store = Store(tmp_path, cluster=CLUSTER, max_bytes=1_000_000)
    Feed(store, lambda: MemoryLog(server), OperatorControls, now_ms=lambda: week.end_ms).catch_up()
    size = sum(path.stat().st_size for path in tmp_path.iterdir() if path.name == FILE_NAME)
    assert store.latest() is not None
    assert size < 6_000_000
    store.close()


def test_the_day_is_the_same_whoever_invents_it() -> None:
    again = Day()
    for topic in ("summaries", "journal", "results"):
        ours, theirs = ([each.value for each in one.log().read(topic).read_to_end()] for one in (again, day()))
        assert ours == theirs


def locks(folder: Path) -> int:
    """Open files of this process that are locks of stores in *folder*."""
    names = [os.readlink(f"/proc/self/fd/{each}") for each in os.listdir("/proc/self/fd") if _is_open(each)]
    return sum(name.startswith(str(folder)) for name in names)


def _is_open(number: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{number}")


def test_a_store_that_cannot_be_opened_leaves_no_file_open_and_no_lock(tmp_path: Path) -> None:
    (tmp_path / "page.sqlite").mkdir()
    for _ in range(3):
        with pytest.raises(TrimtabError, match=FILE_NAME.replace(".", r"\.")):
            Store(tmp_path, cluster="lab")
    assert locks(tmp_path) == 0
    (tmp_path / "page.sqlite").rmdir()
    Store(tmp_path, cluster="lab").close()


def test_a_store_that_another_has_leaves_no_file_open(tmp_path: Path) -> None:
    with closing(Store(tmp_path, cluster="lab")):
        before = locks(tmp_path)
        with pytest.raises(TrimtabError, match="another process uses it"):
            Store(tmp_path, cluster="lab")
        assert locks(tmp_path) == before


def test_a_store_whose_beginning_fails_leaves_no_file_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise TrimtabError("no room")

    monkeypatch.setattr("controller.web.store.store.StoreWriter", fails)
    with pytest.raises(TrimtabError, match="no room"):
        Store(tmp_path, cluster="lab")
    assert locks(tmp_path) == 0


def test_the_commands_of_a_plan_are_those_with_its_hash_the_newest_first(tmp_path: Path) -> None:
    ours, other = "ab" * 32, "ac" * 32
    with closing(Store(tmp_path, cluster=CLUSTER)):
        pass
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as database, database:
        for number, (plan, reason) in enumerate(
            [(ours, "Planned"), (other, "Planned"), (ours, "Planned"), (ours, "Overloaded"), ("%" * 64, "Planned")]
        ):
            detail = f"plan {plan[:12]}, step 1, wave {number + 1} of 9"
            why = json.dumps([None, None, "b:80", reason, "", "plan", detail])
            row = (f"c{number}", number, number, "unload", "a/b/c", "a/b", "b:80", "c:80", "active", reason, why)
            database.execute(f"INSERT INTO commands VALUES ({', '.join('?' * len(row))})", row)
    with closing(Store(tmp_path, cluster=CLUSTER)) as store:
        assert [each.id for each in store.plan_commands(ours)] == ["c2", "c0"]
        assert [each.id for each in store.plan_commands(ours, limit=1)] == ["c2"]
        assert [each.id for each in store.plan_commands("%" * 64)] == ["c4"]
        assert store.plan_commands('"') == ()
        with pytest.raises(ValueError, match="expected 1 to"):
            store.plan_commands(ours, limit=0)


def test_a_range_that_stands_for_several_bundles_is_no_bundle(tmp_path: Path) -> None:
    d, server, last = day(), copied(only=range(2)), last_summary()
    several = np.full_like(last.ranges.bundles, 11)
    value = encode_summary(replace(last, ranges=replace(last.ranges, bundles=several)))
    append(server, "summaries", value, last.decided_at_ms)
    with closing(d.store(tmp_path, MemoryLog(server))) as filled:
        ranges = [each.name for each in filled.search("0x", 500) if each.is_range]
        assert len(ranges) == len(last.ranges.lower)
        assert filled.bundle(ranges[0], d.since_ms, d.until_ms).bundles == 11

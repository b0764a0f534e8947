"""A tick of the future in a log in a folder: it is nobody's append time, so nobody waits for it."""

import logging
import os
import time
from pathlib import Path

import pytest

from controller.collector.ticks import TickWriter
from controller.log.factory import recording, records_in
from tests.folders import collector_in, journal_in, metrics_in
from tests.journal_entries import entry
from tests.records import CLUSTER, PERIOD, T, as_bytes, tick

YEAR = 365 * 86_400_000
NOW = time.time_ns() // 1_000_000 // PERIOD * PERIOD
FUTURE = NOW + YEAR


def dated(path: Path, time_ms: int) -> None:
    os.utime(path, ns=(time_ms * 1_000_000,) * 2)


def contents(log: Path) -> dict[Path, bytes]:
    """Metrics and results."""
    return {path: path.read_bytes() for topic in ("metrics", "results") for path in (log / topic).glob("*.jsonl")}


def of_the_future(log: Path) -> None:
    """What a collector wrote a minute ago, and then one whose clock was a year ahead: names and times say so."""
    writer = metrics_in(log, cluster=CLUSTER)
    writer.tick(NOW - PERIOD, {"broker-1:8080": "s"})
    before = {*log.rglob("*.jsonl")}
    writer.tick(FUTURE, {"broker-1:8080": "s"})
    for path in {*log.rglob("*.jsonl")} - before:
        dated(path, FUTURE)


@pytest.mark.parametrize("part", ["metrics", "results"])
def test_who_writes_behind_it_writes_under_names_and_times_of_today(tmp_path: Path, part: str) -> None:
    of_the_future(tmp_path)
    before = {*tmp_path.rglob("*.jsonl")}
    metrics_in(tmp_path, cluster=CLUSTER).tick(NOW, {"broker-1:8080": "s"})
    (new,) = {*(tmp_path / part).glob("*.jsonl")} - before
    assert new.name == f"{NOW:015d}-000000.jsonl"
    assert new.stat().st_mtime < time.time() + 1


@pytest.mark.parametrize("part", ["metrics", "results"])
def test_a_writer_whose_clock_was_a_year_ahead_goes_on_under_names_and_times_of_today(
    tmp_path: Path, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = metrics_in(tmp_path, cluster=CLUSTER)
    writer.tick(NOW - PERIOD, {})
    with monkeypatch.context() as wrong:
        wrong.setattr(time, "time_ns", lambda: FUTURE * 1_000_000)
        writer.tick(FUTURE, {})
    before = {*tmp_path.rglob("*.jsonl")}
    writer.tick(NOW, {})
    (new,) = {*(tmp_path / part).glob("*.jsonl")} - before
    assert new.name == f"{NOW:015d}-000000.jsonl"
    assert new.stat().st_mtime < time.time() + 1


def test_a_file_under_todays_name_with_a_time_of_the_future_dates_no_other(tmp_path: Path) -> None:
    writer = metrics_in(tmp_path, cluster=CLUSTER)
    writer.tick(NOW - PERIOD, {})
    (first,) = (tmp_path / "metrics").glob("*.jsonl")
    dated(first, FUTURE)
    metrics_in(tmp_path, cluster=CLUSTER).publish([("", b"{}")])
    (new,) = {*(tmp_path / "metrics").glob("*.jsonl")} - {first}
    assert new.stat().st_mtime < time.time() + 1


@pytest.mark.parametrize("dated_ms", [NOW, FUTURE])
def test_a_collector_that_starts_does_not_take_its_interval_for_ended(tmp_path: Path, dated_ms: int) -> None:
    metrics_in(tmp_path, cluster=CLUSTER).tick(NOW - PERIOD, {"broker-1:8080": "s"})
    forged = tmp_path / "metrics" / f"{NOW - PERIOD:015d}-000001.jsonl"
    forged.write_bytes(as_bytes(tick(FUTURE)))
    dated(forged, dated_ms)
    ticks = TickWriter(CLUSTER, PERIOD, collector_in(tmp_path, cluster=CLUSTER))
    ticks.take_over(NOW, ["broker-1:8080"])
    assert ticks.ended(NOW - PERIOD)
    assert not ticks.ended(NOW)


def test_who_asks_for_the_last_records_gets_those_of_today(tmp_path: Path) -> None:
    of_the_future(tmp_path)
    for topic in ("metrics", "results"):
        (found,) = recording(tmp_path).backwards(topic, (b"",))
        assert f'"interval":{NOW - PERIOD}'.encode() in found


def test_a_recording_has_no_record_that_was_appended_in_the_future(tmp_path: Path) -> None:
    of_the_future(tmp_path)
    records = records_in(tmp_path)
    times = [each.timestamp_ms for each in records.read("metrics", records.extents("metrics"))]
    assert len(times) == 2
    assert max(times) < time.time() * 1000 + 1


def test_a_decision_of_the_future_is_warned_of_with_its_file_and_without_it_the_one_before_is_the_last(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for interval in (T, FUTURE):
        journal = journal_in(tmp_path, cluster=CLUSTER)
        journal.open()
        assert not caplog.messages
        journal.append(entry(interval), epoch=1, issued_at_ms=T, before_commit=lambda: None)
    with caplog.at_level(logging.ERROR):
        journal_in(tmp_path, cluster=CLUSTER).open()
    (told,) = caplog.messages
    written = sorted((tmp_path / "journal").iterdir())
    (path,) = (path for path in written if told.startswith(f"{path}: the last decision is of "))
    for behind in written[written.index(path) :]:
        behind.unlink()
    caplog.clear()
    last = journal_in(tmp_path, cluster=CLUSTER).open().last
    assert last is not None
    assert last.interval == T
    assert not caplog.messages


def test_a_collector_that_starts_with_a_clock_that_is_behind_ticks_no_interval_a_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    writer = metrics_in(tmp_path, cluster=CLUSTER)
    for interval in (NOW - 2 * PERIOD, NOW):
        writer.tick(interval, {"broker-1:8080": "first"})
    before = contents(tmp_path)
    monkeypatch.setattr(time, "time_ns", lambda: (NOW - 3 * PERIOD) * 1_000_000)
    ticks = TickWriter(CLUSTER, PERIOD, collector_in(tmp_path, cluster=CLUSTER))
    ticks.take_over(NOW - 3 * PERIOD, ["broker-1:8080"])
    for interval in (NOW - 2 * PERIOD, NOW):
        ticks.end(interval, anybody_asked=True)
    assert contents(tmp_path) == before
    assert "already has a tick: this host's clock is behind, or was ahead earlier" in caplog.text
    ticks.end(NOW - PERIOD, anybody_asked=True)
    assert len(contents(tmp_path)) == len(before) + 2

"""A tick in a log in a folder is seen a moment after it was written."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from controller.log.files import tick_watch
from controller.log.files.tick_watch import FolderTickWatch
from tests.folders import metrics_in
from tests.records import CLUSTER, PERIOD, T, as_bytes, tick

COUNTS = {"metrics": 1, "results": 1}


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FolderTickWatch]:
    """On the log in this folder, in which T is ticked already."""
    monkeypatch.setattr(tick_watch, "_LOOK_SECONDS", 0.002)
    metrics_in(tmp_path, cluster=CLUSTER).tick(T, {})
    with closing(FolderTickWatch(tmp_path, cluster=CLUSTER, period_ms=PERIOD)) as ticks:
        yield ticks


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.002)
    return holds()


def test_a_tick_ends_the_wait_and_what_was_there_before_does_not(tmp_path: Path, watch: FolderTickWatch) -> None:
    log = metrics_in(tmp_path, cluster=CLUSTER)
    assert watch.newest is None
    log.publish([("", b"{}")])
    log.tick(T + PERIOD, {"b:1": None})
    began = time.monotonic()
    watch.wait(30)
    assert time.monotonic() - began < 15
    assert watch.newest == T + PERIOD


def test_also_one_that_somebody_else_writes_and_none_of_another_cluster_or_the_future_or_that_is_hidden(
    tmp_path: Path, watch: FolderTickWatch
) -> None:
    future = (int(time.time() * 1000) // PERIOD + 3_650 * 1_440) * PERIOD
    for name, value in {
        "broken.jsonl": b"not json",
        "another.jsonl": as_bytes(tick(T + 2 * PERIOD, cluster="another", partitions=COUNTS)),
        "future.jsonl": as_bytes(tick(future, cluster=CLUSTER, partitions=COUNTS)),
        "_hidden.jsonl": as_bytes(tick(T + 3 * PERIOD, cluster=CLUSTER, partitions=COUNTS)),
        "theirs.jsonl": b"{}\n" + as_bytes(tick(T + PERIOD, cluster=CLUSTER, partitions=COUNTS)),
    }.items():
        path = tmp_path / "metrics" / name
        written = path.with_name(".written")
        written.write_bytes(value + b"\n")
        if name == "future.jsonl":
            os.utime(written, (future // 1000, future // 1000))
        written.rename(path)  # it has its whole content at once
    assert within(30, lambda: watch.newest is not None)
    watch.wait(0.05)
    assert watch.newest == T + PERIOD


def test_what_cannot_be_read_hides_no_tick_behind_it(tmp_path: Path, watch: FolderTickWatch) -> None:
    metrics = tmp_path / "metrics"
    (metrics / "00-link.jsonl").symlink_to("nowhere")
    (metrics / "01-loop.jsonl").symlink_to("01-loop.jsonl")
    (metrics / "02-folder.jsonl").mkdir()
    (metrics / "03-endless.jsonl").symlink_to("/dev/zero")
    os.mkfifo(metrics / "04-pipe.jsonl")
    metrics_in(tmp_path, cluster=CLUSTER).tick(T + PERIOD, {})
    assert within(1, lambda: watch.newest == T + PERIOD)


def test_a_folder_that_cannot_be_listed_is_waited_for(tmp_path: Path, watch: FolderTickWatch) -> None:
    del watch
    (tmp_path / "other").mkdir()
    metrics = tmp_path / "other" / "metrics"
    metrics.write_text("no folder")
    FolderTickWatch(tmp_path / "other", cluster=CLUSTER, period_ms=PERIOD).close()


def test_a_folder_with_so_many_files_that_listing_it_takes_long_is_listed_more_seldom(
    tmp_path: Path, watch: FolderTickWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = list[float]()

    def slow(_: Path) -> list[str]:
        listed.append(time.monotonic())
        began = time.thread_time()
        while time.thread_time() < began + 0.005:
            pass
        return []

    monkeypatch.setattr(os, "listdir", slow)
    metrics_in(tmp_path, cluster=CLUSTER).tick(T + PERIOD, {})
    assert within(5, lambda: len(listed) >= 3)
    assert listed[2] - listed[1] >= 0.1


def test_a_folder_that_nobody_has_made_yet_is_waited_for(tmp_path: Path, watch: FolderTickWatch) -> None:
    del watch
    with closing(FolderTickWatch(tmp_path / "later", cluster=CLUSTER, period_ms=PERIOD)) as ticks:
        time.sleep(0.01)
        metrics_in(tmp_path / "later", cluster=CLUSTER).tick(T, {})
        assert within(30, lambda: ticks.newest == T)

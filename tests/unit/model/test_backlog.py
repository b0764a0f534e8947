"""How much of a backlog one batch reads: about as many intervals as it may close."""

from pathlib import Path

import pytest

from controller.adapters.folder.line_files import files_of
from controller.model.backlog import Backlog, intervals_since
from tests.folders import metrics_in
from tests.records import CLUSTER, PERIOD, T


@pytest.mark.parametrize("offsets_an_interval", [14, 1_000, 40_000])
def test_a_backlog_batch_holds_fewer_intervals_than_a_batch_may_close(offsets_an_interval: int) -> None:
    backlog = Backlog(intervals=1440, offsets=1440 * offsets_an_interval)
    most = backlog.offsets_a_batch(10, 1_000_000)
    assert most is not None
    assert 7 < most / offsets_an_interval <= 8


def test_a_backlog_batch_never_exceeds_max_offsets() -> None:
    assert Backlog(intervals=1440, offsets=1440 * 40_000).offsets_a_batch(10, 50_000) == 50_000


def test_a_batch_has_at_least_one_offset() -> None:
    assert Backlog(intervals=1440, offsets=1440).offsets_a_batch(1, 50_000) == 1


@pytest.mark.parametrize("intervals", [0, 1, 10])
def test_a_small_backlog_needs_no_limit(intervals: int) -> None:
    assert Backlog(intervals=intervals, offsets=1_000_000).offsets_a_batch(10, 50_000) is None


def test_files_of_a_folder_are_counted_per_interval(tmp_path: Path) -> None:
    assert files_of(tmp_path, 2) is None
    metrics = metrics_in(tmp_path, cluster=CLUSTER)
    for n in range(4):
        metrics.publish([("a:8080", b"{}")])
        metrics.tick(T + n * PERIOD, {"a:8080": "s"})
    # A file of records, and one of ticks in each of the two folders.
    assert files_of(tmp_path, 2) == 2 * 12 // 5
    assert files_of(tmp_path, 10) is None


def test_intervals_are_counted_from_the_first_that_is_known() -> None:
    assert intervals_since(60_000, 300_000, 60_000) == 4
    assert intervals_since(None, 300_000, 60_000) == 0
    assert intervals_since(60_000, None, 60_000) == 0

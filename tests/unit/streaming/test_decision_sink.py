"""The decision sink, called with batches as Spark would."""

import errno
import logging
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from controller.aggregate.places import Span
from controller.model.controls import Controls
from controller.model.errors import JournalError, LeadershipLostError, TrimtabError
from controller.model.memory import Memory
from controller.wire import journal_records
from controller.wire.commands import EpochEvent, parse_event
from controller.wire.readable import utc
from tests.batches import batch, sink, snapshots
from tests.folders import commands_in, entries_in
from tests.logs import Shape, located, log

CLOSED = snapshots([*located(log(Shape(calm=True)))])
INTERVALS = [each.interval for each in CLOSED]


def stale_before(interval: int) -> Callable[[int], Controls]:
    return lambda t: Controls(mode="active", stale=t < interval)


def journalled(folder: Path) -> list[int]:
    return [entry.interval for entry in entries_in(folder)]


def memory(folder: Path) -> Memory:
    return [*entries_in(folder)][-1].memory


def test_verdicts_that_cannot_be_stored_are_logged_once_and_decisions_continue(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    full = Mock()
    full.write.side_effect = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with caplog.at_level(logging.WARNING):
        sink(tmp_path, verdicts=full)(batch(CLOSED), 0)
    assert full.write.call_count == len(CLOSED)
    assert journalled(tmp_path) == INTERVALS
    [told] = [record.getMessage() for record in caplog.records]
    assert "cannot store verdicts; decisions continue" in told
    assert "No space left" in told


def test_without_a_place_for_verdicts_decisions_continue(tmp_path: Path) -> None:
    sink(tmp_path, verdicts=None)(batch(CLOSED), 0)
    assert journalled(tmp_path) == INTERVALS


def test_the_dead_letters_of_a_batch_are_kept_after_its_decisions_once_for_each_partition(tmp_path: Path) -> None:
    found: list[object] = []
    letters = Mock()
    letters.store_suspects.side_effect = lambda spans, batch_id: found.extend((spans, batch_id, journalled(tmp_path)))
    refused = [Span(0, 2, "", 5, 9), Span(0, 1, "", 3, 3), Span(0, 2, "", 7, 1 << 60)]
    sink(tmp_path, letters=letters)(batch(CLOSED, refused), 7)
    assert found == [[Span(0, 1, "", 3, 3), Span(0, 2, "", 5, 1 << 60)], 7, INTERVALS]


def test_a_batch_whose_dead_letters_cannot_be_kept_fails_and_is_decided_once_all_the_same(tmp_path: Path) -> None:
    letters = Mock()
    letters.store_suspects.side_effect = JournalError("no such topic")
    failing = sink(tmp_path, letters=letters)
    for _ in range(2):
        with pytest.raises(JournalError):
            failing(batch(CLOSED, [Span(0, 0, "", 1, 1)]), 0)
        assert str(failing.failure) == "no such topic"
    assert journalled(tmp_path) == INTERVALS


def test_of_intervals_too_old_to_act_on_only_the_last_is_journalled_and_all_move_the_memory(tmp_path: Path) -> None:
    one_by_one, at_once = tmp_path / "one", tmp_path / "all"
    for closed in CLOSED:
        sink(one_by_one, controls=stale_before(INTERVALS[-1] + 1))(batch([closed]), 0)
    assert journalled(one_by_one) == INTERVALS
    sink(at_once, controls=stale_before(INTERVALS[-1] + 1))(batch(CLOSED), 0)
    assert journalled(at_once) == INTERVALS[-1:]
    assert memory(at_once) == memory(one_by_one)


def test_an_interval_to_act_on_follows_from_all_old_ones_before_it(tmp_path: Path) -> None:
    one_by_one, at_once = tmp_path / "one", tmp_path / "all"
    for closed in CLOSED:
        sink(one_by_one, controls=stale_before(INTERVALS[3]))(batch([closed]), 0)
    sink(at_once, controls=stale_before(INTERVALS[3]))(batch(CLOSED), 0)
    assert journalled(at_once) == INTERVALS[2:]
    assert [*entries_in(at_once)] == [*entries_in(one_by_one)][2:]
    assert any(entry.decision.commands for entry in entries_in(at_once))


def test_what_an_operator_changed_among_old_intervals_is_journalled(tmp_path: Path) -> None:
    def controls(interval: int) -> Controls:
        return Controls(mode="active", stale=True, paused=interval >= INTERVALS[2])

    sink(tmp_path, controls=controls)(batch(CLOSED), 0)
    assert journalled(tmp_path) == [INTERVALS[1], INTERVALS[-1]]


def test_a_batch_of_old_intervals_that_comes_again_after_a_crash_is_decided_as_before(tmp_path: Path) -> None:
    crashed, whole = tmp_path / "crashed", tmp_path / "whole"
    controls = stale_before(INTERVALS[3])
    sink(whole, controls=controls)(batch(CLOSED), 0)
    leaves = Mock(check=Mock(side_effect=[None, None, LeadershipLostError("another leads")]))
    with pytest.raises(LeadershipLostError):
        sink(crashed, controls=controls, leadership=leaves)(batch(CLOSED), 0)
    assert journalled(crashed) == INTERVALS[2:3]
    sink(crashed, controls=controls)(batch(CLOSED), 0)
    assert [*entries_in(crashed)] == [*entries_in(whole)]


def test_more_commands_than_an_entry_holds_are_held_back_and_the_interval_is_journalled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(journal_records, "LARGEST_ENTRY", 100)
    sink(tmp_path)(batch(CLOSED), 0)
    assert journalled(tmp_path) == INTERVALS
    entries = [*entries_in(tmp_path)]
    assert not any(entry.decision.commands for entry in entries)
    held = [entry.interval for entry in entries if entry.controls.mode == "observe"]
    assert held
    for interval in held:
        assert f"interval {utc(interval)}: " in caplog.text
    assert "commands are not issued" in caplog.text
    assert all(isinstance(parse_event(event), EpochEvent) for event in commands_in(tmp_path).poll())


class Pruned:
    """A journal that only remembers what it was to prune."""

    def __init__(self, *failures: JournalError) -> None:
        self.calls: list[tuple[int, int]] = []
        self._failures = [*failures]

    def append(self, *_: object, **__: object) -> None:
        """Nothing is kept."""

    def prune(self, *, committed: int, before: int) -> None:
        self.calls.append((committed, before))
        if self._failures:
            raise self._failures.pop()


def test_pruned_is_what_spark_has_committed_once_an_hour(tmp_path: Path) -> None:
    journal, clock = Pruned(), iter(range(10**12, 2 * 10**12, 1_000_000))
    ours = sink(tmp_path, journal=journal, now_ms=lambda: next(clock), retention_ms=5)
    for closed in CLOSED:
        ours(batch([closed]), 0)
    # A batch may run again until the next one begins, so nothing of the first is committed while it runs.
    assert [committed for committed, _ in journal.calls] == INTERVALS[0::2][: len(journal.calls)]
    assert len(journal.calls) == 2
    assert [before for _, before in journal.calls] == [committed - 5 for committed, _ in journal.calls]


def test_a_clock_that_is_a_year_ahead_for_a_while_has_no_entry_pruned_too_early_nor_too_late(tmp_path: Path) -> None:
    journal, day, now = Pruned(), 86_400_000, 0
    ours = sink(tmp_path, journal=journal, now_ms=lambda: now, retention_ms=day)
    for closed, ahead in zip(CLOSED, (0, 0, 365 * day, 0, 0), strict=True):
        now = closed.interval + ahead
        ours(batch([closed]), 0)
    assert [before for _, before in journal.calls] == [interval - day for interval in INTERVALS[:3]]


def test_a_journal_that_cannot_be_pruned_is_logged_once_and_decisions_continue(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal, clock = Pruned(*[JournalError("not authorised")] * 9), iter(range(10**12, 2 * 10**12, 10_000_000))
    ours = sink(tmp_path, journal=journal, now_ms=lambda: next(clock))
    for closed in CLOSED:
        ours(batch([closed]), 0)
    assert len(journal.calls) == len(CLOSED) - 1
    assert caplog.text.count("not authorised") == 1


def test_records_go_up_to_the_last_interval_that_the_query_closed_before_this_batch(tmp_path: Path) -> None:
    sink(tmp_path)(batch(CLOSED), 0)
    # A new checkpoint: the query begins again, and the journal knows all of it.
    retention = Mock()
    ours = sink(tmp_path, retention=retention)
    for closed in CLOSED[:3]:
        ours(batch([closed]), 0)
    ours(batch([]), 0)
    assert [call.kwargs["read"] for call in retention.prune.call_args_list] == [*INTERVALS[:3]]


def test_old_records_that_cannot_be_deleted_are_logged_once_and_decisions_continue(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    retention = Mock()
    retention.prune.side_effect = TrimtabError("metrics/1.jsonl cannot be deleted: Permission denied")
    ours = sink(tmp_path, retention=retention)
    for closed in CLOSED:
        ours(batch([closed]), 0)
    assert retention.prune.call_count == len(CLOSED) - 1
    assert journalled(tmp_path) == INTERVALS
    assert caplog.text.count("Permission denied; the log grows until") == 1


def test_dropped_rows_are_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first, second, *_ = CLOSED
    deciding = sink(tmp_path)
    with caplog.at_level(logging.WARNING):
        deciding(batch([replace(first, dropped=7)]), 0)
        deciding(batch([replace(second, dropped=7)]), 1)
    [told] = [record.getMessage() for record in caplog.records]
    assert f"interval {utc(first.interval)}: 7 rows dropped" in told


def test_dropped_states_are_logged_when_there_are_more_with_the_cluster_and_the_bound(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    deciding = sink(tmp_path)
    with caplog.at_level(logging.WARNING):
        for number, closed in zip((0, 7, 7, 9), CLOSED, strict=False):
            deciding(batch([replace(closed, dropped_states=number)]), 0)
    told = [record.getMessage() for record in caplog.records]
    assert [utc(CLOSED[turn].interval) in line for turn, line in zip((1, 3), told, strict=True)] == [True, True]
    assert ": 7 states of namespaces or brokers of cluster demo dropped since" in told[0]
    assert "longer than 67108864 characters" in told[0]

"""After an absence several intervals are decided at once: together they act as one interval would."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any
from unittest.mock import Mock

import pytest

from controller.adapters.controls_in_force import ControlsInForce
from controller.cycle.guardrails.catching_up import within_window
from controller.cycle.limits import Budget, Limits
from controller.engine import decide_interval, take_over
from controller.model.controls import OperatorControls, OrderedMove, Orders
from controller.model.decision import Reason
from controller.model.journal import JournalEntry, JournalHead
from controller.model.memory import Issued
from controller.settings.maintenance import Maintenance
from controller.settings.standing_controls import StandingControls
from controller.wire.journal import encode_entry
from tests.batches import snapshots
from tests.journal_entries import parse_entry
from tests.logs import PERIOD, Shape, located, log
from tests.pure_controller import POLICY

#: The first one warms up; each of the others has something to move.
CLOSED = snapshots([*located(log(Shape(calm=True)))])
INTERVALS = [each.interval for each in CLOSED]
LAST = INTERVALS[-1]
SECOND = 1_000
DAY = 86_400_000
ONE_UNLOAD = replace(POLICY, limits=Limits(interval=Budget(unloads=1, splits=1)))


@dataclass
class Site:
    """A controller whose clock the test sets; it acts on data of any age."""

    policy: Any = POLICY
    stale_after_ms: int = 3650 * DAY
    operators: OperatorControls = field(default_factory=OperatorControls)
    now_ms: int = 0
    entries: list[JournalEntry] = field(default_factory=list)
    #: Called before each entry is written.
    writing: Callable[[], object] = lambda: None

    def __post_init__(self) -> None:
        self.take_over()

    def take_over(self) -> None:
        standing = StandingControls(
            mode="active", paused=False, stale_after_ms=self.stale_after_ms, maintenance=Maintenance()
        )
        store = Mock(read=lambda: (self.operators, 0))
        self._engine = take_over(
            policy=self.policy,
            seed=1,
            journal=self,
            leadership=Mock(claim=lambda epoch: epoch + 1),
            controls=ControlsInForce(standing, store, lambda: self.now_ms).at,
            now_ms=lambda: self.now_ms,
        )

    def open(self) -> JournalHead:
        return JournalHead(last=self.entries[-1] if self.entries else None, epoch=len(self.entries))

    def begin_epoch(self, epoch: int) -> None:
        pass

    def append(self, entry: JournalEntry, *, before_commit: Callable[[], None], **_: Any) -> None:
        self.writing()
        before_commit()
        self.entries.append(entry)

    def prune(self, **_: int) -> None:
        pass

    def decide(self, *at: tuple[int, int]) -> None:
        """Decide each interval of *at*, in a batch of its own, so many ms after the last interval."""
        for number, after in at:
            self.now_ms = LAST + after
            self._engine.decide([CLOSED[number]])

    def at_once(self, numbers: Sequence[int], after: int) -> None:
        self.now_ms = LAST + after
        self._engine.decide([CLOSED[number] for number in numbers])

    @property
    def issued(self) -> list[int]:
        """How many commands each interval issued."""
        return [len(entry.decision.commands) for entry in self.entries]

    @property
    def unloads(self) -> int:
        return sum(c.action == "unload" for entry in self.entries for c in entry.decision.commands)

    def reasons(self, number: int) -> set[Reason]:
        return {verdict.reason for verdict in self.entries[number].decision.verdicts}


def in_time(number: int, lag: int = 5 * SECOND) -> tuple[int, int]:
    """Interval *number*, decided *lag* ms after its T."""
    return number, INTERVALS[number] + lag - LAST


def test_intervals_that_are_decided_in_their_own_time_share_nothing() -> None:
    site = Site(ONE_UNLOAD)
    # Sweeps take now a moment, now half a period.
    site.decide(*(in_time(number, (29 if number % 2 else 2) * SECOND) for number in range(5)))
    assert site.issued[0] == 0
    assert all(site.issued[1:])
    assert not any(Reason.CATCHING_UP in site.reasons(number) for number in range(5))


@pytest.mark.parametrize("stale_after_ms", [300 * SECOND, DAY, 3650 * DAY])
@pytest.mark.parametrize("batches", [[[1, 2, 3, 4]], [[1], [2], [3], [4]], [[1, 2], [3, 4]], [[1], [2, 3], [4]]])
def test_after_an_absence_only_the_newest_acts_however_batches_are_cut(
    batches: list[list[int]], stale_after_ms: int
) -> None:
    site = Site(stale_after_ms=stale_after_ms)
    site.decide(in_time(0))
    for number, batch in enumerate(batches):
        site.at_once(batch, 5 * SECOND + 27 * number)
    assert site.issued[:-1] == [0] * 4
    assert site.issued[-1] > 0
    assert all(Reason.CATCHING_UP in site.reasons(number) for number in (1, 2, 3))


def test_another_leader_that_takes_over_catches_up_likewise() -> None:
    site = Site()
    site.decide(in_time(0), in_time(1))
    site.take_over()
    site.at_once([2, 3, 4], 5 * SECOND)
    assert site.issued[1] > 0
    assert site.issued[2:4] == [0, 0]
    assert site.issued[4] > 0


def test_a_process_that_stands_still_while_it_decides_does_not_act_on_what_it_began_with() -> None:
    site = Site()
    site.decide(in_time(0))

    def stand_still() -> None:
        site.now_ms = LAST + 5 * SECOND
        site.writing = lambda: None

    site.writing = stand_still
    site.now_ms = INTERVALS[1] + SECOND
    site._engine.decide([CLOSED[1], CLOSED[2]])
    assert site.issued[2] == 0
    assert Reason.CATCHING_UP in site.reasons(2)


def test_a_process_that_stands_still_before_it_commits_decides_again() -> None:
    site = Site()
    site.decide(in_time(0))

    def stand_still() -> None:
        site.now_ms = LAST + 5 * SECOND
        site.writing = lambda: None

    site.writing = stand_still
    site.now_ms = INTERVALS[1] + SECOND
    site._engine.decide([CLOSED[1]])
    assert site.issued == [0, 0]
    assert Reason.CATCHING_UP in site.reasons(1)
    assert site.entries[1].controls.decided_at_ms == LAST + 5 * SECOND


def test_splits_and_the_moves_of_a_plan_wait_for_the_newest_as_well() -> None:
    free = Site()
    free.decide(*map(in_time, range(2)))
    [split] = [c for c in free.entries[1].decision.commands if c.action == "split"]
    unload = next(c for c in free.entries[1].decision.commands if c.action == "unload")
    move = OrderedMove(bundle=unload.bundle, source=unload.source, destination=unload.destination)
    orders = Orders(
        plan="0" * 64, step=1, wave=1, waves=1, moves=(move,), checked_at=INTERVALS[0],
        expires_at_ms=LAST + DAY, holder="h", by="ada",
    )  # fmt: skip
    site = Site(operators=OperatorControls(orders=orders))
    site.decide(in_time(0))
    site.at_once([1], 5 * SECOND)
    assert site.issued == [0, 0]
    assert split.bundle


def test_late_intervals_share_a_budget_with_what_was_issued_just_before() -> None:
    site = Site(ONE_UNLOAD)
    # 50 s after T, then two quick ones: the second one is late, and the third is not.
    site.decide(in_time(0), in_time(1, 59 * SECOND), (2, INTERVALS[2] + 61 * SECOND - LAST), in_time(3, 2 * SECOND))
    for one, other in pairwise(site.entries):
        if other.controls.decided_at_ms - one.controls.decided_at_ms < PERIOD - 10 * SECOND:
            unloads = [c for each in (one, other) for c in each.decision.commands if c.action == "unload"]
            assert len(unloads) <= 1


def test_a_controller_that_is_always_late_by_the_same_time_acts() -> None:
    site = Site()
    site.decide(*(in_time(number, 75 * SECOND + number * SECOND) for number in range(5)))
    assert all(site.issued[1:])


@pytest.mark.parametrize("ahead", [3 * PERIOD, 365 * DAY])
def test_a_clock_that_is_far_ahead_issues_nothing_and_one_that_is_right_again_goes_on(ahead: int) -> None:
    site = Site(stale_after_ms=3000 * DAY)
    site.decide(in_time(0), in_time(1, ahead), in_time(2, ahead), in_time(3), in_time(4))
    assert site.issued[:3] == [0, 0, 0]
    assert all(site.issued[3:])


def test_a_clock_that_is_behind_lets_quick_intervals_share_a_budget() -> None:
    site = Site(ONE_UNLOAD)
    site.decide(*((number, -3_600_000 + 30 * number) for number in range(5)))
    assert site.unloads == 1


def test_a_clock_that_is_set_back_frees_no_budget() -> None:
    window = Limits(window=Budget(unloads=1))
    site = Site(replace(POLICY, limits=window))
    site.decide(in_time(0), in_time(1), in_time(2, 50 * SECOND), in_time(3, -20 * SECOND), in_time(4))
    assert site.unloads == 1


def test_the_rolling_window_counts_by_interval_and_by_time() -> None:
    late = Issued(action="unload", namespace="", source="", destination="", connections=0, interval=0, at_ms=50)
    assert within_window(late, interval=120, decided_at_ms=140, window_ms=100)
    assert within_window(late, interval=90, decided_at_ms=900, window_ms=100)
    assert not within_window(late, interval=120, decided_at_ms=150, window_ms=100)


def test_the_journal_has_the_time_and_decides_the_same_again() -> None:
    site = Site(ONE_UNLOAD)
    site.decide(in_time(0), in_time(1, 70 * SECOND), in_time(2, 20 * SECOND), (3, 4 * SECOND), (4, 5 * SECOND))
    memory = ONE_UNLOAD.initial_memory(1)
    for snapshot, written in zip(CLOSED, site.entries, strict=True):
        read = parse_entry(encode_entry(written))
        assert isinstance(read, JournalEntry)
        assert read.controls.decided_at_ms == written.controls.decided_at_ms > 0
        again = decide_interval([snapshot], memory, read.controls, ONE_UNLOAD)
        assert encode_entry(again) == encode_entry(written)
        memory = read.memory


def test_a_recorded_log_runs_by_no_clock() -> None:
    site = Site()
    site.at_once(range(5), 2 * DAY)
    assert all(site.issued[1:])
    assert all(entry.controls.decided_at_ms == 0 for entry in site.entries)

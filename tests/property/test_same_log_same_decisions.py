"""Decisions follow from the log alone: however it is cut, interleaved, shuffled, sharded, interrupted and resumed.

Compared are journals, byte by byte; tests.pure_controller sees to it that they hold all that the strategies saw.
"""

from dataclasses import replace
from functools import cache
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.aggregate.waiting.limits import WaitLimits
from controller.model.decision import Decision, Reason
from controller.wire.metrics import TickRecord
from controller.wire.rows import Located
from tests.effort import tries
from tests.logs import PERIOD, Entry, Shape, answer, located, log
from tests.pure_controller import Controller, cut, interleaved, journal

#: Every example folds a whole log.
_FEW = settings(max_examples=max(2, settings().max_examples // 4))


@cache
def answered(shape: Shape) -> list[Entry]:
    """The log of *shape*, with results for the first commands that it leads to by itself."""
    if not shape.results_partitions:
        return log(shape)
    # Only what was issued before the first answer is sure to be issued again: so one interval is answered.
    first = first_with_commands([*located(log(shape))])
    if first is None:
        return log(shape)
    statuses = Random(shape.seed).choices(("done", "failed", "unknown"), k=len(first.commands))
    results = [answer(command.id, status) for command, status in zip(first.commands, statuses, strict=True)]
    return log(shape, {first.interval + PERIOD: results[::2], first.interval + 2 * PERIOD: results[1::2]})


def first_with_commands(records: list[Located]) -> Decision | None:
    """Without what comes later in the log."""
    controller = Controller()
    for batch in cut(records, [20] * (len(records) // 20)):
        controller.feed(batch)
        if found := next((each for each in controller.decisions if each.commands), None):
            return found
    return None


@cache
def records_of(shape: Shape) -> list[Located]:
    return [*located(answered(shape))]


@cache
def expected(shape: Shape) -> list[bytes]:
    """The journal of the log in one batch."""
    return journal(records_of(shape))


#: A few logs, which differ in all that a shape says, and many ways to cut each: so each is folded whole only once.
SHAPES = st.sampled_from(
    [
        Shape(
            seed=seed,
            metrics_partitions=1 + seed % 4,
            results_partitions=seed % 3,
            silent=frozenset({1 + seed % 3} if seed % 2 else ()),
        )
        for seed in range(tries(plain=6, thorough=24))
    ]
)
#: Of batches; a log has about 110 records.
SIZES = st.lists(st.integers(0, 30), min_size=4, max_size=16) | st.just([1] * 150)
SEEDS = st.integers(0, 1 << 32)


@pytest.mark.slow
@_FEW
@given(SHAPES, SIZES)
def test_cut_into_other_batches(shape: Shape, sizes: list[int]) -> None:
    records = records_of(shape)
    assert journal(records, *sizes) == expected(shape)


@pytest.mark.slow
@_FEW
@given(SHAPES, SIZES, SEEDS)
def test_with_partitions_interleaved_otherwise(shape: Shape, sizes: list[int], seed: int) -> None:
    records = records_of(shape)
    assert journal(interleaved(records, Random(seed)), *sizes) == expected(shape)


@_FEW
@given(SHAPES, SIZES, SEEDS)
def test_with_the_rows_of_each_batch_shuffled(shape: Shape, sizes: list[int], seed: int) -> None:
    records = records_of(shape)
    assert journal(records, *sizes, shuffle=Random(seed)) == expected(shape)


@pytest.mark.slow
@_FEW
@given(SHAPES, SIZES, st.integers(2, 7))
def test_in_another_number_of_shards(shape: Shape, sizes: list[int], shards: int) -> None:
    records = records_of(shape)
    assert journal(records, *sizes, shards=shards) == expected(shape)


@_FEW
@given(SHAPES, SIZES, st.integers(1, 3), SEEDS)
def test_killed_and_restarted_from_the_checkpoint(shape: Shape, sizes: list[int], shards: int, seed: int) -> None:
    """Before a batch was folded, or after it was decided but not committed: then it comes again."""
    records, rng = interleaved(records_of(shape), Random(seed)), Random(seed)
    controller = Controller(shards=shards)
    for batch in cut(records, sizes):
        checkpoint = controller.checkpoint()
        if rng.random() < 0.5:
            controller.feed(batch)
        controller.restart(checkpoint)
        controller.feed(batch)
    assert controller.journal == expected(shape)


@pytest.mark.slow
@_FEW
@given(SHAPES, SIZES, st.integers(1, 3), st.integers(1, 4), SEEDS)
def test_with_so_many_intervals_a_batch_at_most(
    shape: Shape, sizes: list[int], at_most: int, shards: int, seed: int
) -> None:
    """What a batch leaves open is closed by later ones; ticks that say nothing new are enough for that."""
    records, rng = interleaved(records_of(shape), Random(seed)), Random(seed)
    controller = Controller(shards=shards, close_at_most=at_most)
    for batch in cut(records, sizes):
        checkpoint = controller.checkpoint()
        assert len(controller.feed(batch)) <= at_most
        if rng.random() < 0.3:  # killed before the commit
            controller.restart(checkpoint)
            controller.feed(batch)
    again = next(at for at in reversed(records) if isinstance(at.record, TickRecord))
    while controller.feed([replace(again, offset=again.offset + 1_000)]):
        pass
    assert controller.journal == expected(shape)


LIMITS = st.builds(WaitLimits, intervals=st.integers(1, 2), size=st.sampled_from((500, 2_000, 4_000, 1 << 30)))


@pytest.mark.slow
@_FEW
@given(SHAPES, SIZES, SEEDS, LIMITS, st.integers(1, 3))
def test_with_more_waiting_for_ticks_than_may_wait(
    shape: Shape, sizes: list[int], seed: int, limits: WaitLimits, shards: int
) -> None:
    """What is dropped follows from each partition's own log."""
    records, rng = interleaved(records_of(shape), Random(seed)), Random(seed)
    controller = Controller(shards=shards, waiting=limits, shuffle=rng)
    for batch in cut(records, sizes):
        controller.feed(batch)
        controller.restart(controller.checkpoint())
    assert controller.journal == journal(records_of(shape), shards=shards, waiting=limits)


@pytest.mark.slow
def test_the_limits_above_drop_something() -> None:
    for limits in (WaitLimits(intervals=1), WaitLimits(size=4_000)):
        assert any(drops_and_decides_otherwise(limits, seed) for seed in range(8)), limits


def drops_and_decides_otherwise(limits: WaitLimits, seed: int) -> bool:
    controller = Controller(waiting=limits)
    controller.feed([*located(log(Shape(seed=seed)))])
    return bool(controller.states[0].dropped) and controller.journal != journal([*located(log(Shape(seed=seed)))])


@_FEW
@given(SHAPES, st.integers(1, 12), st.lists(st.integers(0, 5), max_size=10), st.integers(1, 3))
def test_as_files_of_a_folder(shape: Shape, lines: int, sizes: list[int], shards: int) -> None:
    """A folder is one partition, ordered by the names of its files, then by line; a batch holds whole files."""
    shape = replace(shape, metrics_partitions=1, results_partitions=1)
    records = records_of(shape)
    filed = [replace(at, file=f"{i // lines:06d}.jsonl", offset=i % lines) for i, at in enumerate(records)]
    assert journal(filed, *(n * lines for n in sizes), files=True, shards=shards) == expected(shape)


@_FEW
@given(SHAPES)
def test_without_records_that_do_not_count(shape: Shape) -> None:
    """Late ones, ones delivered twice, sweeps that are not on the roster, and ticks written again."""
    telling = [entry for entry in answered(shape) if not entry.noise]
    assert journal([*located(telling)]) == expected(shape)


@pytest.mark.slow
def test_the_logs_above_are_worth_comparing() -> None:
    """They lead to commands of both kinds, and to every turn that a cycle can take on them."""
    controllers = []
    for seed in range(8):
        controller = Controller()
        controller.feed([*located(answered(Shape(seed=seed, silent=frozenset({2} if seed % 3 == 0 else ()))))])
        controllers.append(controller)
    decisions = [decision for controller in controllers for decision in controller.decisions]
    actions = [command.action for decision in decisions for command in decision.commands]
    assert min(actions.count("unload"), actions.count("split")) >= 8
    assert {
        Reason.WARMING_UP, Reason.GAP, Reason.FROZEN, Reason.OUTDATED_DATA, Reason.SETTLED, Reason.FAILED,
        Reason.IN_FLIGHT, Reason.RECENTLY_UNLOADED,
    } <= {verdict.reason for decision in decisions for verdict in decision.verdicts}  # fmt: skip
    states = [controller.states[0] for controller in controllers]
    assert min(sum(state.late for state in states), sum(state.unrostered for state in states)) > 0

"""What an audit tells of moves, worked out by hand."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

import pytest

from controller.aggregate.snapshot import Snapshot
from controller.audit.auditor import MAX_FOLLOWED
from controller.audit.moves import AuditedMove, MoveSums
from controller.audit.seen_load import BrokerFigures, weights_of
from controller.model.decision import Command, Decision
from controller.model.load import BANDWIDTH_IN, DIRECT_MEMORY
from controller.model.memory import Memory
from controller.model.resource_usage import ResourceWeights
from controller.strategies.shedding.peak_shedder.memory import MovePromise, PeakHistory
from controller.strategies.shedding.threshold_shedder import ThresholdShedder
from controller.strategies.shedding.uniform_load_shedder import UniformLoadShedder
from tests.audits import (
    HOUR,
    LEFT,
    MINUTE,
    RIGHT,
    SPACE,
    at,
    auditor,
    decided,
    interval,
    move,
    remembering,
    step_through,
)

#: 0.08 % of CPU for a msg/s, and 2 % for nothing: b-1 has 82 %, b-2 18 %, b-3 2 %.
Listed: TypeAlias = Mapping[str, tuple[str, float]]
BEFORE = {"b-1": 82.0, "b-2": 18.0, "b-3": 2.0}
BUNDLES = {LEFT: ("b-1", 600.0), RIGHT: ("b-1", 400.0), "acme/bills/0x00000000_0xffffffff": ("b-2", 200.0)}


def moved(
    owners: Mapping[str, str], bundles: Mapping[str, tuple[str, float]] = BUNDLES
) -> dict[str, tuple[str, float]]:
    """*bundles*, of which some have other *owners*."""
    return {name: (owners.get(name, owner), rate) for name, (owner, rate) in bundles.items()}


def audited(
    later: Mapping[int, Snapshot | Mapping[str, str]],
    *commands: Command,
    memory: Memory | None = None,
    before: Listed = BUNDLES,
) -> AuditedMove:
    """The first of *commands*, decided in minute 0, when all is known; *later*: minute -> its load, or other owners."""
    audits = auditor()
    audits.take([interval(0, BEFORE, before)], decided(0, *(commands or (move(0, LEFT, "b-1", "b-3"),))), memory)
    for minute in sorted(later):
        each = later[minute]
        audits.take([each if isinstance(each, Snapshot) else interval(minute, BEFORE, moved(each, before))])
    return audits.ended()[0]


def usages(figures: BrokerFigures | None) -> float | None:
    return None if figures is None or figures.usage is None else round(100 * figures.usage, 3)


def test_a_move_tells_what_it_promised_and_what_came_of_it() -> None:
    later = moved({LEFT: "b-3"}, {name: (owner, 1.1 * rate) for name, (owner, rate) in BUNDLES.items()})
    after = interval(2, {"b-1": 35.0, "b-2": 18.0, "b-3": 52.0}, later, {f"0 {LEFT}": "done"})
    found = audited({1: {LEFT: "b-3"}, 2: after})
    source, destination = found.source, found.destination
    assert [usages(each) for each in (source.before, source.predicted, source.actual)] == [82, 34, 35]
    assert [usages(each) for each in (destination.before, destination.predicted, destination.actual)] == [2, 50, 52]
    assert (source.predicted_by, destination.predicted_by) == ("computed", "computed")
    assert source.predicted is not None
    assert (source.predicted.rate, source.predicted.throughput) == (400, 40_000)
    assert [source.error, destination.error] == pytest.approx([0.01, 0.02])
    assert found.drift == pytest.approx(1.1)
    assert destination.error_without(found.drift) == pytest.approx(0.02 - 0.05)
    assert (found.outcome, found.result, found.came_to, found.came_at) == ("arrived", "done", "b-3", at(1))
    assert found.helped is True
    assert found.carried is not None
    assert (found.carried.rate, found.carried.topics, found.carried.clients, found.clients) == (600, 1, 62, 62)
    assert (found.strategy, found.reason, found.namespace) == ("ThresholdShedder", "Overloaded", SPACE)


def test_a_prediction_counts_all_that_was_decided_by_then_and_nothing_later() -> None:
    commands = move(0, LEFT, "b-1", "b-3"), move(0, RIGHT, "b-1", "b-2")
    under_way = move(-1, "acme/bills/0x00000000_0xffffffff", "b-2", "b-3")
    found = audited({2: {}}, *commands, memory=remembering(under_way, *commands))
    assert usages(found.source.predicted) == 2
    assert usages(found.destination.predicted) == 66  # 600 msg/s, and the 200 that were on their way
    audits = auditor()
    first = decided(0, commands[0])
    audits.take([interval(0, BEFORE, BUNDLES)], first)
    audits.take([interval(1, BEFORE, BUNDLES)], decided(1, move(1, RIGHT, "b-1", "b-3")))
    (alone,) = audits.take([interval(2, BEFORE, BUNDLES)]).looked_at
    assert (usages(alone.destination.predicted), alone.later) == (50, 2)


def test_a_prediction_leaves_out_what_moves_nothing_and_what_is_there_already() -> None:
    command = move(0, LEFT, "b-1", "b-3")
    dry = move(-1, RIGHT, "b-1", "b-3", mode="dry_run")
    arrived = move(-1, "acme/bills/0x00000000_0xffffffff", "b-1", "b-3")  # b-2 has it: it went there before
    found = audited({2: {}}, command, memory=remembering(dry, arrived, command))
    assert (usages(found.source.predicted), usages(found.destination.predicted)) == (34, 50)


def test_a_move_that_was_done_and_is_not_seen_there_yet_counts_as_done() -> None:
    audits = auditor()
    audits.take([interval(0, BEFORE, BUNDLES)], decided(0, move(0, LEFT, "b-1", "b-3")))
    result = {f"0 {LEFT}": "done"}
    audits.take([interval(1, BEFORE, BUNDLES, result)], decided(1, move(1, RIGHT, "b-1", "b-2")))
    (later,) = [each for each in audits.ended() if each.bundle == RIGHT]
    assert (usages(later.source.predicted), usages(later.destination.predicted)) == (2, 50)


def test_of_two_results_the_first_one_counts() -> None:
    after = interval(2, BEFORE, moved({}), {f"0 {LEFT}": "obsolete"})
    assert audited({1: interval(1, BEFORE, moved({}), {f"0 {LEFT}": "failed"}), 2: after}).result == "failed"


def test_a_promise_of_the_decision_counts_and_no_later_one() -> None:
    def memory(**changed: object) -> Memory:
        promise = MovePromise(source="b-1", destination="b-3", promised=0.42, mean=0.34)
        return Memory(shedder=PeakHistory(promises={LEFT: replace(promise, **changed)}))  # type: ignore[arg-type]

    promised = audited({2: {LEFT: "b-3"}}, memory=memory())
    assert (usages(promised.destination.predicted), promised.destination.predicted_by) == (42, "promise")
    assert (usages(promised.source.predicted), promised.source.predicted_by) == (34, "computed")
    for other in (memory(rounds=1), memory(destination="b-2"), Memory()):
        found = audited({2: {LEFT: "b-3"}}, memory=other)
        assert (usages(found.destination.predicted), found.destination.predicted_by) == (50, "computed")


def test_nothing_is_predicted_where_a_broker_is_at_its_limit_and_the_others_do_not_say_why() -> None:
    # b-2 and b-3 are idle, so they say nothing about what messages take; b-1 may be asked for any more.
    idle = {**BUNDLES, "acme/bills/0x00000000_0xffffffff": ("b-2", 0.0)}
    sums = MoveSums()
    for full in (True, False):
        usage = {"b-1": 100.0 if full else 82.0, "b-2": 2.0, "b-3": 2.0}
        audits = auditor()
        audits.take([interval(0, usage, idle)], decided(0, move(0, LEFT, "b-1", "b-3")))
        audits.take([interval(2, {**usage, "b-3": 52.0}, moved({LEFT: "b-3"}, idle))])
        (found,) = audits.ended()
        sides = found.source, found.destination
        assert [each.predicted_by for each in sides] == (["", ""] if full else ["computed", "computed"])
        assert [each.unpredictable for each in sides] == [full, full]
        assert [usages(each.predicted) for each in sides] == ([None, None] if full else [34, 50])
        assert found.source.predicted is not None
        assert found.source.predicted.rate == 400, "messages are known"
        sums.add(found)
    assert (sums.predictions, sums.unpredicted) == (2, 2)


@pytest.mark.parametrize(
    ("resource", "usage", "limit", "predicted"),
    [
        (DIRECT_MEMORY, 100.0, 100.0, True),  # it has no weight
        (BANDWIDTH_IN, 100.0, 100.0, False),
        (BANDWIDTH_IN, 1.0, 1.0, False),
        (BANDWIDTH_IN, 5.0, 0.0, True),  # the limit is not known
        (BANDWIDTH_IN, 5.0, -1.0, True),
    ],
)
def test_a_broker_at_the_limit_of_a_resource_that_counts_keeps_usage_from_being_predicted(
    resource: int, usage: float, limit: float, predicted: bool
) -> None:
    before, at = interval(0, BEFORE, BUNDLES), 2 * resource
    full = [
        replace(row, numbers=(*row.numbers[:at], usage, limit, *row.numbers[at + 2 :])) for row in before.brokers[:1]
    ]
    audits = auditor()
    audits.take([replace(before, brokers=(*full, *before.brokers[1:]))], decided(0, move(0, LEFT, "b-1", "b-3")))
    audits.take([interval(2, BEFORE, moved({LEFT: "b-3"}))])
    (found,) = audits.ended()
    assert usages(found.destination.predicted) == (50 if predicted else None)


def test_resources_weigh_as_the_shedder_has_it() -> None:
    shedder = ThresholdShedder(cpu_weight=0.5)
    assert weights_of(shedder) is shedder
    assert weights_of(UniformLoadShedder()) == ResourceWeights()


def test_moves_are_counted_by_where_their_bundles_came_to() -> None:
    sums = MoveSums()
    for broker in ("b-2", "b-2", "b-3"):
        sums.add(audited({2: {LEFT: broker}}))
    assert (sums.moves, sums.elsewhere, sums.arrived, sums.stayed) == (3, 2, 1, 0)


def test_a_full_broker_is_predicted_where_the_others_show_what_its_load_takes() -> None:
    full = {"b-1": 100.0, "b-2": 18.0, "b-3": 2.0}  # by what b-2 takes for a message, b-1 is asked for 112.5 %
    audits = auditor()
    audits.take([interval(0, full, {**BUNDLES, RIGHT: ("b-1", 650.0)})], decided(0, move(0, LEFT, "b-1", "b-3")))
    audits.take([interval(2, full, moved({LEFT: "b-3"}))])
    (found,) = audits.ended()
    assert [usages(each.predicted) for each in (found.source, found.destination)] == [58.5, 56]


def test_where_half_of_the_brokers_are_full_nothing_is_predicted() -> None:
    full = {"b-1": 100.0, "b-2": 100.0, "b-3": 2.0}
    audits = auditor()
    audits.take([interval(0, full, BUNDLES)], decided(0, move(0, LEFT, "b-1", "b-3")))
    audits.take([interval(2, full, moved({LEFT: "b-3"}))])
    (found,) = audits.ended()
    assert (found.source.unpredictable, found.source.error) == (True, None)


def with_producers(minute: int, owner: str, producers: int) -> Snapshot:
    """The load of *minute*, in which LEFT has so many *producers* (60 when it was decided)."""
    made = interval(minute, BEFORE, moved({LEFT: owner}))
    counts = made.producers.copy()
    counts[made.names.index(LEFT)] = producers
    return replace(made, producers=counts)


@pytest.mark.parametrize(
    ("later", "back"),
    [
        ({1: ("b-3", 60), 2: ("b-3", 60)}, at(1)),
        ({1: ("b-3", 0), 2: ("b-3", 59), 3: ("b-3", 61), 4: ("b-3", 60)}, at(3)),
        # On its source it has them all along.
        ({1: ("b-1", 60), 2: ("b-3", 12), 3: ("b-1", 60)}, None),
        # Moved on: what another broker has is not what the destination had.
        ({1: ("b-3", 12), 2: ("b-2", 60)}, None),
        ({1: ("b-3", 12), 60: ("b-3", 60)}, at(60)),
        ({1: ("b-3", 12), 61: ("b-3", 60)}, None),
    ],
)
def test_producers_are_back_when_the_new_broker_lists_as_many_as_before(
    later: dict[int, tuple[str, int]], back: int | None
) -> None:
    found = audited({minute: with_producers(minute, *seen) for minute, seen in later.items()})
    assert found.producers_back_at == back


@pytest.mark.parametrize(
    ("owners", "result", "outcome", "clients"),
    [
        ({LEFT: "b-3"}, "done", "arrived", 62),
        ({LEFT: "b-2"}, "failed", "elsewhere", 62),
        ({}, "done", "stayed", 62),
        ({}, "failed", "stayed", None),
        ({}, "", "stayed", None),
        ({}, "already_done", "stayed", 0),
        ({}, "obsolete", "stayed", 0),
        ({LEFT: "b-3"}, "expired", "arrived", 0),
    ],
)
def test_clients_reconnect_where_a_bundle_was_unloaded(
    owners: dict[str, str], result: str, outcome: str, clients: int | None
) -> None:
    results = {f"0 {LEFT}": result} if result else {}
    found = audited({2: interval(2, BEFORE, moved(owners), results)})
    assert (found.outcome, found.result, found.clients) == (outcome, result, clients)


def test_a_bundle_that_is_not_there_any_more_is_told_by_what_is() -> None:
    rest = {name: each for name, each in BUNDLES.items() if name != LEFT}
    halves = {f"{SPACE}/0x00000000_0x40000000": ("b-3", 300.0), f"{SPACE}/0x40000000_0x80000000": ("b-1", 300.0)}
    assert audited({2: interval(2, BEFORE, rest | halves)}).outcome == "split"
    for half in halves:
        assert audited({2: interval(2, BEFORE, rest | {half: halves[half]})}).outcome == "split", "one is enough"
    assert audited({2: interval(2, BEFORE, {f"{SPACE}/0x00000000_0xffffffff": ("b-1", 1000.0)})}).outcome == "merged"
    upper = audited(
        {2: interval(2, BEFORE, {f"{SPACE}/0x00000000_0xffffffff": ("b-1", 1.0)})}, move(0, RIGHT, "b-1", "")
    )
    assert upper.outcome == "merged"
    unlisted = audited({2: interval(2, BEFORE, rest, {f"0 {LEFT}": "done"})})
    assert (unlisted.outcome, unlisted.clients, unlisted.came_to) == ("unlisted", 62, "")
    others = {f"{space}/0x00000000_0xffffffff": ("b-1", 300.0) for space in (SPACE[:-1], f"{SPACE}x")}
    assert audited({2: interval(2, BEFORE, rest | others)}).outcome == "unlisted", "another namespace has none of it"
    # Its namespace has three parts, the last of which looks like a range.
    three_parts = {f"{SPACE}/0x1/0x00000000_0x40000000": ("b-1", 300.0)}
    assert audited({2: interval(2, BEFORE, rest | three_parts)}).outcome == "unlisted"


def test_brokers_without_data_and_brokers_that_left_have_no_figures() -> None:
    no_data = audited({2: interval(2, {**BEFORE, "b-3": None}, moved({LEFT: "b-3"}))})
    assert (no_data.destination.presence, no_data.destination.actual, no_data.helped) == ("no_data", None, None)
    left = audited({2: interval(2, BEFORE, moved({LEFT: "b-3"}), gone=("b-1",))})
    assert (left.source.presence, left.source.error, left.outcome) == ("left", None, "arrived")
    chosen_by_brokers = audited({2: {LEFT: "b-2"}}, move(0, LEFT, "b-1", ""))
    assert (chosen_by_brokers.outcome, chosen_by_brokers.came_to) == ("arrived", "b-2")
    assert (chosen_by_brokers.destination.predicted, chosen_by_brokers.destination.presence) == (None, "")
    assert usages(chosen_by_brokers.source.predicted) == 34


def test_what_cannot_be_known_is_said() -> None:
    not_yet = audited({1: {LEFT: "b-3"}})
    assert (not_yet.outcome, not_yet.undone, not_yet.shorter, not_yet.came_to) == ("not_yet", None, None, "b-3")
    missing = audited({1: {LEFT: "b-3"}, 3: {LEFT: "b-3"}})
    assert (missing.outcome, missing.source.actual, missing.drift) == ("not_recorded", None, None)
    not_listed = audited({2: {}}, move(0, f"{SPACE}/0x00000000_0x00000001", "b-1", "b-3"))
    assert (not_listed.carried, not_listed.clients, not_listed.outcome) == (None, None, "merged")
    audits = auditor()
    audits.take([interval(0, BEFORE, BUNDLES)])
    audits.decided_unseen(decided(1, move(1, LEFT, "b-1", "b-3")))
    (unseen,) = audits.take([interval(3, BEFORE, moved({LEFT: "b-3"}))]).looked_at
    assert (unseen.carried, unseen.source.predicted, unseen.source.predicted_by) == (None, None, "")
    assert (unseen.outcome, usages(unseen.source.actual), unseen.drift) == ("arrived", 82, None)


def test_a_dry_run_moves_nothing_and_other_actions_are_no_moves() -> None:
    split = replace(move(0, RIGHT, "b-1", ""), action="split")
    audits = auditor()
    audits.take([interval(0, BEFORE, BUNDLES)], decided(0, move(0, LEFT, "b-1", "b-3", mode="dry_run"), split))
    assert audits.ended() == ()


def test_a_move_did_not_help_where_the_fuller_broker_is_as_full_as_before() -> None:
    worse = audited({2: interval(2, {"b-1": 34.0, "b-2": 18.0, "b-3": 90.0}, moved({LEFT: "b-3"}))})
    assert worse.helped is False
    # The whole cluster has twice the load: 82 % would be 164 %.
    twice = moved({LEFT: "b-3"}, {name: (owner, 2 * rate) for name, (owner, rate) in BUNDLES.items()})
    grown = audited({2: interval(2, {"b-1": 68.0, "b-2": 36.0, "b-3": 100.0}, twice)})
    assert grown.helped is True
    assert audited({2: {}}).helped is None


# ---- an hour ----


def through_an_hour(
    owners: Mapping[int, str],
    decisions: Mapping[int, Decision],
    minutes: int = 130,
    gone: Mapping[int, str] | None = None,
    results: Mapping[int, Mapping[str, str]] | None = None,
) -> list[AuditedMove]:
    """All moves; *owners*: minute -> who has LEFT from then on, *gone*: minute -> a broker that leaves then.

    *results*: minute -> command -> the status that comes then.
    """
    audits, owner, left, found = auditor(), "b-1", list[str](), list[AuditedMove]()
    for minute in range(minutes):
        owner = owners.get(minute, owner)
        left += [gone[minute]] if gone and minute in gone else []
        snapshot = interval(minute, BEFORE, moved({LEFT: owner}), (results or {}).get(minute), gone=left)
        found += audits.take([snapshot], decisions.get(minute)).settled
    return [*found, *audits.ended()]


def sent(*moves: tuple[int, str, str]) -> dict[int, Decision]:
    return {minute: decided(minute, move(minute, LEFT, source, to)) for minute, source, to in moves}


@pytest.mark.parametrize(
    ("back", "by", "undone"),
    [(40, "trimtab", True), (60, "trimtab", True), (61, "trimtab", False), (40, "others", True)],
)
def test_a_move_is_undone_if_the_bundle_is_back_within_an_hour(back: int, by: str, undone: bool) -> None:
    moves = [(0, "b-1", "b-3"), *([(back - 2, "b-3", "b-1")] if by == "trimtab" else [])]
    first, *_ = through_an_hour({1: "b-3", back: "b-1"}, sent(*moves))
    assert first.undone is undone
    assert (first.undone_at, first.undone_by) == ((at(back), by) if undone else (None, ""))


def test_a_bundle_whose_new_broker_left_is_undone_by_that() -> None:
    first, *_ = through_an_hour({1: "b-3", 30: "b-1"}, sent((0, "b-1", "b-3")), gone={30: "b-3"})
    assert (first.undone, first.undone_by) == (True, "broker_left")


@pytest.mark.parametrize(
    ("comes", "result", "stayed", "late"),
    [({}, "failed", 1, 0), ({4: "b-3"}, "done", 1, 1), ({4: "b-3"}, "failed", 1, 0), ({1: "b-3"}, "done", 0, 0)],
)
def test_sums_tell_moves_that_were_done_later_from_those_that_never_were(
    comes: dict[int, str], result: str, stayed: int, late: int
) -> None:
    sums, minute = MoveSums(), min(comes, default=4)
    for each in through_an_hour(comes, sent((0, "b-1", "b-3")), results={minute: {f"0 {LEFT}": result}}):
        sums.add(each)
    assert (sums.stayed, sums.late) == (stayed, late)


@pytest.mark.parametrize(("result", "shorter"), [("done", [True, True]), ("failed", [False, False])])
def test_a_move_that_was_done_late_counts_in_a_circle(result: str, shorter: list[bool]) -> None:
    commands = sent((0, "b-1", "b-3"), (28, "b-3", "b-1"))
    found = through_an_hour({4: "b-3", 30: "b-1"}, commands, results={4: {f"0 {LEFT}": result}})
    assert [each.outcome for each in found] == ["stayed", "arrived"]
    assert [each.shorter for each in found] == shorter


@pytest.mark.parametrize(
    ("owners", "shorter"),
    [
        ({1: "b-3"}, [False]),
        ({1: "b-3", 31: "b-2"}, [True, False]),
        ({1: "b-3", 31: "b-1"}, [True, True]),
        ({1: "b-3", 21: "b-2", 41: "b-1"}, [True, True, True]),
        ({1: "b-3", 21: "b-1", 41: "b-3"}, [True, True, False]),
        ({1: "b-3", 61: "b-1"}, [True, True]),
        ({1: "b-3", 62: "b-1"}, [False, False]),
    ],
)
def test_moves_that_a_shorter_sequence_would_not_need(owners: dict[int, str], shorter: list[bool]) -> None:
    """Of n moves within an hour n - 1 are not needed, or all where the bundle ends where it began."""
    places = ["b-1", *owners.values()]
    moves = [(minute - 1, places[number], to) for number, (minute, to) in enumerate(owners.items())]
    assert [each.shorter for each in through_an_hour(owners, sent(*moves), 200)] == shorter


def test_a_move_that_did_not_happen_is_part_of_no_sequence() -> None:
    decisions = sent((0, "b-1", "b-3"), (20, "b-3", "b-2"))
    assert [each.shorter for each in through_an_hour({1: "b-3"}, decisions)] == [False, False]


def test_moves_are_settled_in_order_after_an_hour_and_two_intervals() -> None:
    audits = auditor()
    steps = step_through(
        audits, [interval(minute, BEFORE, BUNDLES) for minute in range(70)], sent((0, "b-1", "b-3"), (5, "b-1", "b-2"))
    )
    assert [minute for minute, step in enumerate(steps) if step.looked_at] == [2, 7]
    assert [minute for minute, step in enumerate(steps) if step.settled] == [62, 67]
    assert audits.ended() == ()


def test_without_traffic_there_is_no_drift_and_errors_count_as_they_are() -> None:
    idle = {name: (owner, 0.0) for name, (owner, _) in BUNDLES.items()}
    after = interval(2, {"b-1": 80.0, "b-2": 18.0, "b-3": 2.0}, moved({LEFT: "b-3"}, idle))
    found = audited({2: after}, before=idle)
    assert found.drift is None
    assert [found.source.error, found.source.error_without(None)] == pytest.approx([-0.02, -0.02])


def test_what_a_command_says_of_its_interval_does_not_count() -> None:
    """A damaged journal can say anything: moves are those of the decision's interval."""
    odd = replace(move(0, LEFT, "b-1", "b-3"), interval=at(9_999))
    audits = auditor()
    audits.take([interval(0, BEFORE, BUNDLES)], decided(0, odd, odd, move(0, RIGHT, "b-1", "b-2")))
    found = [*audits.take([interval(70, BEFORE, BUNDLES)]).settled, *audits.ended()]
    assert [(each.bundle, each.interval, each.outcome) for each in found] == [
        (LEFT, at(0), "not_recorded"),
        (LEFT, at(0), "not_recorded"),
        (RIGHT, at(0), "not_recorded"),
    ]


# ---- bounds ----


def test_more_moves_than_can_be_followed_are_counted_and_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controller.audit.auditor.MAX_FOLLOWED", 1)
    audits = auditor()
    audits.take([interval(0, BEFORE, BUNDLES)], decided(0, move(0, LEFT, "b-1", "b-3"), move(0, RIGHT, "b-1", "b-2")))
    assert [each.outcome for each in audits.ended()] == ["too_many", "not_yet"]
    assert MAX_FOLLOWED > 1


def test_nothing_is_kept_of_moves_of_long_ago() -> None:
    """Memory does not grow: of moves, those of two hours and a few minutes are held."""
    audits, held = auditor(), list[int]()
    for minute in range(0, 6 * HOUR // MINUTE, 10):
        audits.decided_unseen(decided(minute - 1, move(minute - 1, LEFT, "b-1", "b-3")))
        audits.take([interval(minute, BEFORE, BUNDLES)])
        held.append(audits.moves_in_memory)
    assert held[:3] == [1, 2, 3]
    assert max(held) == held[-1] <= 2 * 6 + 2


@pytest.mark.parametrize(
    ("owner", "result", "shorter"),
    [("nobody", "done", [True, False]), ("nobody", "failed", [False, False]), ("b-1", "done", [False, False])],
)
def test_a_bundle_that_was_unloaded_and_that_no_broker_lists_has_left(
    owner: str, result: str, shorter: list[bool]
) -> None:
    results = {1: {f"0 {LEFT}": result}, 31: {f"30 {LEFT}": "done"}}
    commands = sent((0, "b-1", "b-3"), (30, "b-1", "b-2"))
    found = through_an_hour({1: owner, 31: "nobody"}, commands, results=results)
    assert [each.outcome for each in found] == ["unlisted" if owner == "nobody" else "stayed", "unlisted"]
    assert [each.shorter for each in found] == shorter


def test_a_broker_that_all_bundles_leave_is_predicted_to_be_empty_and_one_without_load_to_get_them() -> None:
    nothing_idle = {"b-1": 80.0, "b-2": 16.0, "b-3": 0.0}
    audits = auditor()
    commands = move(0, LEFT, "b-1", "b-3"), move(0, RIGHT, "b-1", "b-3")
    audits.take([interval(0, nothing_idle, BUNDLES)], decided(0, *commands))
    first, _ = audits.ended()
    assert [usages(each.predicted) for each in (first.source, first.destination)] == [0, 80]
    assert first.source.predicted is not None
    assert (first.source.predicted.rate, first.source.predicted.throughput) == (0, 0)

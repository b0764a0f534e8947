"""What holds of every audit, whatever happens to the bundles."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from controller.aggregate.snapshot import Snapshot
from controller.audit.moves import AuditedMove, MoveSums, StraightPlan
from controller.model.decision import Command, Decision
from tests.audits import LEFT, RIGHT, at, auditor, decided, interval, move

BROKERS = ("b-1", "b-2", "b-3")
_STATUSES = ("done", "failed", "unknown", "expired", "obsolete", "already_done", "skipped", "fenced")
# Made once: to make them takes longer than to draw from them.
_OWNERS = st.dictionaries(st.sampled_from((LEFT, RIGHT)), st.sampled_from(BROKERS))
_BUNDLES = st.sets(st.sampled_from((LEFT, RIGHT)))
_USAGE = st.fixed_dictionaries(dict.fromkeys(BROKERS, st.sampled_from((None, 0.0, 50.0, 100.0))))
_GONE = st.sets(st.sampled_from(BROKERS), max_size=1)
_STATUS = st.sampled_from(_STATUSES)
_ORDER = st.permutations(BROKERS)
_YES_OR_NO = st.booleans()


@dataclass(frozen=True)
class History:
    """What happened: the load of some minutes, and the decisions of some."""

    snapshots: tuple[Snapshot, ...]
    decisions: dict[int, Decision]

    @property
    def commanded(self) -> list[str]:
        return [each.id for _, one in sorted(self.decisions.items()) for each in one.commands]


@st.composite
def histories(draw: st.DrawFn, minutes: int = 12, step: int = 1) -> History:
    """Bundles that go anywhere at any time, and commands that have nothing to do with it; *step*: minutes apart."""
    snapshots, decisions, owners, open_ = (
        list[Snapshot](),
        dict[int, Decision](),
        {LEFT: "b-1", RIGHT: "b-2"},
        set[str](),
    )
    for minute in range(0, minutes * step, step):
        owners |= draw(_OWNERS)
        listed = draw(_BUNDLES)
        if draw(_YES_OR_NO):
            usage = draw(_USAGE)
            gone = draw(_GONE)
            bundles = {name: (owners[name], 100.0) for name in listed}
            results = {each: draw(_STATUS) for each in sorted(open_) if draw(_YES_OR_NO)}
            snapshots.append(interval(minute, usage, bundles, results, gone=tuple(gone)))
        commands = list[Command]()
        for bundle in draw(_BUNDLES):
            source, destination = draw(_ORDER)[:2]
            commands.append(move(minute, bundle, source, destination if draw(_YES_OR_NO) else ""))
        if commands:
            decisions[at(minute)] = decided(minute, *commands)
            open_ |= {each.id for each in commands}
    return History(tuple(snapshots), decisions)


def audited(history: History, snapshots: Sequence[Sequence[Snapshot]]) -> list[AuditedMove]:
    """*snapshots*: those of each interval."""
    audits, found, waiting = auditor(), list[AuditedMove](), sorted(history.decisions.items())
    for parts in snapshots:
        now = parts[0].interval
        while waiting and waiting[0][0] < now:
            audits.decided_unseen(waiting.pop(0)[1])
        decision = waiting.pop(0)[1] if waiting and waiting[0][0] == now else None
        found += audits.take(parts, decision).settled
    for _, decision in waiting:
        audits.decided_unseen(decision)
    return [*found, *audits.ended()]


@given(histories())
def test_every_move_that_was_commanded_is_audited_once_and_in_order(history: History) -> None:
    found = audited(history, [[each] for each in history.snapshots])
    assert [each.id for each in found] == history.commanded
    for each in found:
        assert (each.undone_at is not None) is (each.undone is True) is bool(each.undone_by)
        assert each.came_to != each.source.broker
        assert (each.came_at is not None) is bool(each.came_to)
        assert each.clients is None or each.carried is None or 0 <= each.clients <= each.carried.clients


@given(histories())
def test_sums_count_every_move_in_one_outcome(history: History) -> None:
    sums, found = MoveSums(), audited(history, [[each] for each in history.snapshots])
    for each in found:
        sums.add(each)
    assert sums.arrived + sums.elsewhere + sums.stayed + sums.gone + sums.unknown == sums.moves == len(found)
    assert sums.helped <= sums.judged <= sums.arrived
    assert sums.undone + sums.undone_unknown <= sums.moves
    assert sums.promises <= sums.predictions <= 2 * sums.arrived


@given(histories())
def test_shards_change_nothing(history: History) -> None:
    def shards(whole: Snapshot) -> list[Snapshot]:
        parts = []
        for number, bundle in enumerate((LEFT, RIGHT)):
            kept = [row for row, name in enumerate(whole.names) if name == bundle]
            columns = {
                name: getattr(whole, name)[kept]
                for name in ("owner", "load", "topics", "producers", "consumers", "detail_size")
            }
            of_zero = {} if number == 0 else {"brokers": (), "results": ()}
            names = [whole.names[row] for row in kept]
            parts.append(replace(whole, shard=number, shards=2, names=names, **columns, **of_zero))  # type: ignore[arg-type]
        return parts[::-1]

    whole = audited(history, [[each] for each in history.snapshots])
    assert audited(history, [shards(each) for each in history.snapshots]) == whole


@given(st.lists(st.sampled_from(BROKERS), min_size=1, max_size=8))
def test_of_moves_within_an_hour_as_many_are_not_needed_as_of_a_straight_plan(places: list[str]) -> None:
    owners = [place for place, before in zip(places, [None, *places], strict=False) if place != before]
    audits, straight, found = auditor(), StraightPlan(), list[AuditedMove]()
    for minute in range(140):
        number = min(minute // 5, len(owners) - 1)
        decision = None
        if minute % 5 == 4 and minute // 5 + 1 < len(owners):
            source, destination = owners[minute // 5 : minute // 5 + 2]
            decision = decided(minute, move(minute, LEFT, source, destination))
            straight.add(LEFT, source, destination)
        snapshot = interval(minute, dict.fromkeys(BROKERS, 10.0), {LEFT: (owners[number], 100.0)})
        found += audits.take([snapshot], decision).settled
    assert sum(each.shorter is True for each in found) == straight.not_needed

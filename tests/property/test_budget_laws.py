"""Budgets are never exceeded, whatever is decided, and keep the order of the strategies."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from controller.cycle.guardrails.budgets import Ledger, Rejection
from controller.cycle.limits import Budget, Limits
from controller.model.memory import Issued

_WINDOW = 3
_LIMIT = st.one_of(st.none(), st.integers(1, 6))
_BUDGETS = st.builds(Budget, **dict.fromkeys(Budget.__slots__, _LIMIT))
_LIMITS = st.builds(Limits, interval=_BUDGETS, window=_BUDGETS, window_ms=st.just(_WINDOW))
_SCOPES = {"": "cluster", "_per_source": "source", "_per_destination": "destination", "_per_namespace": "namespace"}


@st.composite
def _command(draw: st.DrawFn) -> Issued:
    action = draw(st.sampled_from(["unload", "split"]))
    source, destination = draw(st.permutations(["a", "b", "c"]))[:2]
    return Issued(
        action=action,
        namespace=draw(st.sampled_from(["m", "n"])),
        source=source,
        destination=destination if action == "unload" else "",
        connections=draw(st.integers(0, 8)),
        interval=0,
    )


def amounts(command: Issued) -> Iterable[tuple[str, str, int]]:
    """(budget, whose, amount) of everything that *command* counts against."""
    for kind, amount in ((f"{command.action}s", 1), ("connections", command.connections)):
        for ending, scope in _SCOPES.items():
            whose = "cluster" if scope == "cluster" else getattr(command, scope)
            if whose and hasattr(Budget(), kind + ending):
                yield kind + ending, whose, amount


def used(commands: Iterable[Issued]) -> Counter[tuple[str, str]]:
    sums = Counter[tuple[str, str]]()
    for command in commands:
        for budget, whose, amount in amounts(command):
            sums[budget, whose] += amount
    return sums


def within(commands: Iterable[Issued], budget: Budget) -> bool:
    limits = ((used_up, getattr(budget, name)) for (name, _), used_up in used(commands).items())
    return all(limit is None or used_up <= limit for used_up, limit in limits)


@given(_LIMITS, st.lists(st.lists(_command(), max_size=12), min_size=1, max_size=6))
def test_no_budget_is_ever_exceeded_and_nothing_is_held_back_without_need(
    limits: Limits, intervals: list[list[Issued]]
) -> None:
    taken: defaultdict[int, list[Issued]] = defaultdict(list)
    for number, commands in enumerate(intervals):
        earlier = [one for t in range(number - _WINDOW + 1, number) for one in taken.get(t, [])]
        ledger = Ledger(limits, earlier, ())
        for turn, command in enumerate(commands):
            held = ledger.try_charge(str(turn), command)
            now = [*taken[number], command]
            fits = within(now, limits.interval) and within([*earlier, *now], limits.window)
            assert held is not None or fits
            if held is Rejection.PERMANENT:
                assert not (within([command], limits.interval) and within([command], limits.window))
            if held is None:
                taken[number].append(command)
        assert ledger.held_back == len(commands) - len(taken[number])
        assert bool(ledger.verdicts()) == bool(ledger.held_back)


@given(_LIMITS, st.lists(_command(), max_size=20))
def test_a_held_back_command_is_not_overtaken_in_its_budget(limits: Limits, commands: list[Issued]) -> None:
    ledger = Ledger(limits, (), ())
    for turn, command in enumerate(commands):
        if ledger.try_charge(str(turn), command) is not None:
            continue
        closed = {(v.by.rpartition(".")[2], v.subject) for v in ledger.verdicts() if "never issued" not in v.detail}
        counts = {(b, whose) for b, whose, amount in amounts(command) if amount or command.action == "unload"}
        assert not closed & counts


@given(_LIMITS, st.lists(_command(), max_size=20))
def test_the_same_commands_in_the_same_order_give_the_same_result(limits: Limits, commands: list[Issued]) -> None:
    def outcome() -> object:
        ledger = Ledger(limits, (), ())
        return [ledger.try_charge(str(turn), command) for turn, command in enumerate(commands)], ledger.verdicts()

    assert outcome() == outcome()

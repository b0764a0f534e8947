"""Budgets: how much may be issued in an interval, how much in a rolling window, and how much may be in flight.

Commands are checked in the order of the strategies: splits, moves of the membership rebalancer, unloads of the shedder.
A command must fit every budget that it counts against.  If it does not fit, it is held back and that budget is closed
for the rest of the interval: a smaller command that comes later does not overtake, so that a large bundle moves too.  A
command that alone exceeds a budget can never be issued; it is held back and closes no budget.

Each budget that held commands back gives one verdict with their number.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import lru_cache
from typing import Final, NamedTuple

from controller.cycle.guardrails.breaker import BreakerLimits
from controller.cycle.guardrails.listing import Rooms
from controller.cycle.guardrails.setting import limit
from controller.model.decision import CLUSTER, Reason, Verdict
from controller.model.memory import InFlight, Issued
from controller.model.reasons import THROTTLED, Meaning

MEANINGS: Final = {
    Reason.BUDGET: Meaning(THROTTLED, "a budget of [guardrails] is used up; it is free again with time"),
}
#: What each scope adds to the name of a budget.
_SCOPES: Final = {
    "cluster": "",
    "source": "_per_source",
    "destination": "_per_destination",
    "namespace": "_per_namespace",
}
#: The budget of bundles that a broker does not list yet; it gives a reason of its own.
UNPROVEN: Final = "unproven_bundles"
#: The reasons of budgets.
BUDGET_REASONS: Final = frozenset({Reason.BUDGET, Reason.UNPROVEN})
#: After this many unloads were placed and then held back, the rest is not placed: placing is slow.
PLACED_IN_VAIN: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How many commands and connections may be issued in a span of time; None: no limit.

    Connections: producers plus consumers of bundles that are unloaded, also those unloaded after a split.
    """

    unloads: int | None = None
    unloads_per_source: int | None = None
    unloads_per_destination: int | None = None
    unloads_per_namespace: int | None = None
    splits: int | None = None
    splits_per_source: int | None = None
    splits_per_namespace: int | None = None
    connections: int | None = None
    connections_per_source: int | None = None
    connections_per_destination: int | None = None
    connections_per_namespace: int | None = None


@dataclass(frozen=True, kw_only=True)
class BudgetLimits(BreakerLimits):
    """See the module docstring; None: no limit."""

    #: In one interval, and in the rolling window that ends with it.
    interval: Budget = field(default_factory=Budget)
    window: Budget = field(default_factory=Budget)
    in_flight: int | None = limit(
        200, "Commands without a result in the cluster at most; no more are issued until results come back."
    )
    in_flight_per_broker: int | None = limit(
        40, "Commands without a result at most that have one broker as source or destination."
    )


class Rejection(Enum):
    """How a command is held back."""

    #: It may fit in a later interval.
    RETRY = auto()
    #: It alone exceeds a budget.
    PERMANENT = auto()


_WHY: Final = {
    Rejection.RETRY: "",
    Rejection.PERMANENT: ": alone more than this limit, so never issued while it stands",
}


class Line(NamedTuple):
    """One budget of the cluster, of one broker, or of one namespace."""

    #: The setting in trimtab.toml, below [guardrails].
    key: str
    #: cluster, source, destination, namespace, or broker (as source or as destination).
    scope: str
    whose: str
    limit: int
    unit: str


@dataclass(slots=True)
class _HeldBack:
    first: str
    count: int = 0


class Ledger:
    """Counts the commands of one interval against the budgets while they are chosen."""

    def __init__(
        self,
        limits: BudgetLimits,
        issued: Iterable[Issued],
        in_flight: Iterable[InFlight],
        shared: Iterable[Issued] = (),
        rooms: Rooms | None = None,
    ) -> None:
        """*issued*: commands in the rolling window that ends with this interval; *in_flight*: without a result yet.

        *shared*: those of *issued* that count against the interval's own budgets as well.  *rooms*: what brokers may
        get that they do not list yet; None: as much as comes.
        """
        self._limits, self._rooms = limits, rooms
        self._used: defaultdict[Line, int] = defaultdict(int)
        self._closed: set[Line] = set()
        #: (scope, whose) of closed budgets that every unload counts against.
        self._no_unload: dict[tuple[str, str], Line] = {}
        self._rejections: dict[tuple[Line, Rejection], _HeldBack] = {}
        self._in_vain = 0
        for each in issued:
            for line, amount in self._budgets(each, ("window",)):
                self._used[line] += amount
        for each in shared:
            for line, amount in self._budgets(each, ("interval",)):
                self._used[line] += amount
        for flight in in_flight:
            for line in self._in_flight(flight.source, flight.destination):
                self._used[line] += 1

    def of_next_interval(self, expired: Iterable[Issued], rooms: Rooms | None = None) -> "Ledger":
        """The budgets of the next interval, if nothing is in flight then; *expired*: of the window."""
        following = Ledger(self._limits, (), (), rooms=rooms)
        following._used.update((line, used) for line, used in self._used.items() if line.key.startswith("window."))
        for each in expired:
            for line, amount in self._budgets(each, ("window",)):
                following._used[line] -= amount
        return following

    def copy(self) -> "Ledger":
        """The same, to try commands on that are not issued."""
        twin = Ledger(self._limits, (), (), rooms=self._rooms)
        twin._used.update(self._used)
        twin._closed.update(self._closed)
        twin._no_unload.update(self._no_unload)
        twin._rejections.update({key: replace(rejected) for key, rejected in self._rejections.items()})
        twin._in_vain = self._in_vain
        return twin

    def try_charge(self, bundle: str, command: Issued) -> Rejection | None:
        """Count *command* about *bundle* against its budgets (None), or hold it back if one of them has no room."""
        rejection = self._refuses(bundle, command)
        if rejection is not None:
            self._in_vain += command.action == "unload"
            return rejection
        for line, amount in self._lines(command):
            self._used[line] += amount
        return None

    def rejects_any_destination(self, bundle: str, command: Issued) -> Rejection | None:
        """How the unload *command*, which has no destination yet, is held back with any destination; else None."""
        whose = (("cluster", CLUSTER), ("source", command.source), ("broker", command.source))
        for scope in (*whose, ("namespace", command.namespace)):
            if scope in self._no_unload:
                self._count(self._no_unload[scope], Rejection.RETRY, bundle)
                return Rejection.RETRY
        return self._refuses(bundle, command)

    @property
    def exhausted(self) -> bool:
        """Whether no more unloads are tried: the cluster's budget is closed, or PLACED_IN_VAIN is reached."""
        return ("cluster", CLUSTER) in self._no_unload or self._in_vain >= PLACED_IN_VAIN

    def hold_back(self, bundles: Sequence[str]) -> None:
        """Count the unloads of *bundles*, which are not tried because :attr:`exhausted`, as held back."""
        if not bundles:
            return
        line = self._no_unload.get(("cluster", CLUSTER))
        if line is None:
            unit = "unloads to brokers that may get no more"
            line = Line("unloads_per_destination", "cluster", CLUSTER, PLACED_IN_VAIN, unit)
            self._used[line] = self._in_vain
        self._count(line, Rejection.RETRY, bundles[0], len(bundles))

    @property
    def held_back(self) -> int:
        """The number of commands held back."""
        return sum(rejected.count for rejected in self._rejections.values())

    def verdicts(self) -> list[Verdict]:
        """One verdict for each budget that held commands back, in the order of its first such command."""
        return [
            Verdict(
                subject=line.whose,
                reason=Reason.UNPROVEN if line.key == UNPROVEN else Reason.BUDGET,
                observed=float(self._used[line]),
                limit=float(line.limit),
                unit=line.unit,
                by=f"guardrails.{line.key}",
                detail=f"{rejected.count} held back, the first is {rejected.first}{_WHY[how]}",
            )
            for (line, how), rejected in self._rejections.items()
        ]

    def usage(self) -> list[tuple[Line, int]]:
        """What is used of every budget of the cluster, and of the fullest budget of each other kind."""
        none = Issued(action="", namespace="", source="", destination="", connections=0, interval=0)
        lines: dict[str, tuple[Line, int]] = {}
        for action in ("unload", "split"):
            for line, _ in self._lines(replace(none, action=action, connections=1)):
                lines[line.key] = line, self._used[line]
        for line, used in sorted(self._used.items(), key=lambda item: (item[0].key, -item[1], item[0].whose)):
            lines.setdefault(line.key, (line, used))
        return list(lines.values())

    def _refuses(self, bundle: str, command: Issued) -> Rejection | None:
        """How *command* is held back, and count that; None if it fits."""
        over = None
        for line, amount in self._lines(command):
            if amount > line.limit:
                self._count(line, Rejection.PERMANENT, bundle)
                return Rejection.PERMANENT
            if over is None and (line in self._closed or self._used[line] + amount > line.limit):
                over = line
        if over is None:
            return None
        self._closed.add(over)
        if ".splits" not in over.key:
            self._no_unload[over.scope, over.whose] = over
        self._count(over, Rejection.RETRY, bundle)
        return Rejection.RETRY

    def _count(self, line: Line, how: Rejection, bundle: str, count: int = 1) -> None:
        self._rejections.setdefault((line, how), _HeldBack(first=bundle)).count += count

    def _lines(self, command: Issued) -> Iterator[tuple[Line, int]]:
        """Every budget that *command* counts against, with the amount."""
        yield from self._budgets(command, ("interval", "window"))
        for line in self._in_flight(command.source, command.destination):
            yield line, 1
        room = self._rooms.of(command.destination) if self._rooms is not None and command.destination else None
        if room is not None:
            line = Line(UNPROVEN, "destination", command.destination, room.limit, "moved bundles not listed yet")
            self._used.setdefault(line, room.used)
            yield line, 1

    def _budgets(self, command: Issued, spans: Iterable[str]) -> Iterator[tuple[Line, int]]:
        whose = (CLUSTER, command.source, command.destination, command.namespace)
        amounts = [(f"{command.action}s", 1)]
        if command.connections or command.action == "unload":
            amounts.append(("connections", command.connections))
        for span in spans:
            budget: Budget = getattr(self._limits, span)
            for kind, amount in amounts:
                for nth, key, scope, maximum, unit in _limited(budget, span, self._limits.window_ms, kind):
                    if name := whose[nth]:
                        yield Line(key, scope, name, maximum, unit), amount

    def _in_flight(self, source: str, destination: str) -> Iterator[Line]:
        unit = "commands in flight"
        if self._limits.in_flight is not None:
            yield Line("in_flight", "cluster", CLUSTER, self._limits.in_flight, unit)
        if self._limits.in_flight_per_broker is not None:
            for broker in filter(None, (source, destination)):
                yield Line("in_flight_per_broker", "broker", broker, self._limits.in_flight_per_broker, unit)


@lru_cache(maxsize=1024)
def _limited(budget: Budget, span: str, window_ms: int, kind: str) -> tuple[tuple[int, str, str, int, str], ...]:
    """What *budget* limits of *kind*: the number of the scope in _SCOPES, setting, scope, limit and unit.

    Kept: every command of the rolling window asks for it, in every interval.
    """
    unit = f"{kind} an interval" if span == "interval" else f"{kind} in {window_ms // 1000} s"
    limits = ((scope, ending, getattr(budget, kind + ending, None)) for scope, ending in _SCOPES.items())
    return tuple(
        (nth, f"{span}.{kind}{ending}", scope, limit, unit)
        for nth, (scope, ending, limit) in enumerate(limits)
        if limit is not None
    )

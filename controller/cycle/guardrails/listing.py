"""Follows answered moves until their destination lists the bundle, and limits what may go to a broker before that.

A broker that lists no bundles looks idle, whatever it has, so strategies would send it the whole cluster.  Two rules
prevent that, with every strategy.  What is on its way to a broker and what it has not listed yet is limited: a slow
start.  And a broker that does not list a bundle some intervals after the move is *blocked*: it gets nothing more, and
strategies see it as a broker without data.  After a rest, which doubles each time, it gets one bundle; once it lists
that, it takes part again.

Not every bundle that is not listed is the broker's fault.  Pulsar's brokers list a bundle only while topics of it are
loaded, so one without clients may be listed nowhere.  Another broker may have taken it over, it may have been split or
deleted with its namespace, or no executor saw who owns it.  Such bundles lapse: they count, and block nobody.  So does
one that is listed without the clients and the traffic that it had: it proves nothing.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final, NamedTuple

from controller.cycle.guardrails.setting import limit
from controller.cycle.outcomes import Patience
from controller.model.decision import Reason, Verdict
from controller.model.errors import TrimtabError
from controller.model.load import UNOWNED, ClusterView
from controller.model.memory import Destination, Failed, InFlight, Memory, UnlistedBundle
from controller.model.names import namespace_of, parse_bundle
from controller.model.reasons import THROTTLED, Meaning
from controller.model.records import CommandResult
from controller.model.some_of import some_of

MEANINGS: Final = {
    Reason.UNPROVEN: Meaning(THROTTLED, "the broker has to list what was moved to it before it gets more"),
    Reason.UNCONFIRMED: Meaning(
        THROTTLED, "the broker does not list what was moved to it, so it gets nothing: see its log, or resume"
    ),
}
#: Brokers renew what they list of their bundles once a minute.  Pulsar: statsUpdateFrequencyInSecs.
_RENEWED_MS: Final = 60_000
#: Where ``confirm_intervals`` is off, unlisted bundles lapse after so many intervals.
_DUE: Final = 3
#: An unlisted bundle is forgotten after a day.
FORGOTTEN_MS: Final = 86_400_000
#: A broker that has proven itself may have so many times ``unproven_bundles`` unlisted, or this share of its bundles.
_PROVEN_TIMES, _PROVEN_SHARE = 2, 10
#: In the key of an unconfirmed move among the failures, behind the bundle; ids of commands do not have it.
UNCONFIRMED: Final = "@"
#: Maximum number of bundles, and of brokers, that a text names.
_NAMED: Final = 3


@dataclass(frozen=True, kw_only=True)
class ListingLimits:
    """See the module docstring."""

    unproven_bundles: int | None = limit(
        5,
        "Bundles that may go to a broker before it has listed one that was moved to it.  From then on twice as many may"
        " be on their way to it and not listed yet, or a tenth of those that it has listed, if that is more.",
    )
    confirm_intervals: int | None = limit(
        3,
        "A move is unconfirmed if its destination does not list the bundle for so many intervals (of a minute at"
        " least). Such a broker gets nothing more, and counts as one without data.",
    )
    unconfirmed_brokers: int | None = limit(
        3, "While so many brokers have unconfirmed moves, nothing is issued until `trimtab resume`."
    )


class Room(NamedTuple):
    """How many bundles a broker may have that are on their way to it or that it has not listed."""

    used: int
    limit: int
    #: It gets nothing, and waiting for results or sweeps does not change that.
    blocked: bool = False


class Rooms:
    """What every broker may still get in an interval."""

    def __init__(
        self,
        destinations: Mapping[str, Destination],
        in_flight: Iterable[InFlight],
        limits: ListingLimits,
        interval: int,
    ) -> None:
        """*destinations* and *in_flight* are those of the memory, with the results of *interval* (T, epoch ms)."""
        self._destinations, self._limits, self._interval = destinations, limits, interval
        self._rooms: dict[str, Room | None] = {}
        self._coming = Counter(each.destination for each in in_flight if each.action == "unload" and each.destination)

    def of(self, broker: str) -> Room | None:
        """The room of *broker*; None: it is not limited."""
        if broker not in self._rooms:
            self._rooms[broker] = self._room(broker)
        return self._rooms[broker]

    def _room(self, broker: str) -> Room | None:
        destination, coming = self._destinations.get(broker, Destination()), self._coming[broker]
        unproven = self._limits.unproven_bundles
        late = len(overdue(destination, self._limits))
        if unproven is None and not late:
            return None
        waiting = coming + sum(not each.lapsed for each in destination.unlisted.values()) - late
        used = coming + len(destination.unlisted)
        maximum = inf if unproven is None else max(_PROVEN_TIMES * unproven, destination.listed // _PROVEN_SHARE)
        free = maximum - used
        if late:
            free = min(free, 1 - waiting) if self._interval >= destination.rests_until else 0
        elif unproven is not None and not destination.listed:
            free = min(free, unproven - waiting)
        return Room(used=used, limit=used + max(0, int(free)), blocked=free <= 0 and (late > 0 or not waiting))

    def blocked(self) -> list[str]:
        """The brokers that are blocked, sorted."""
        return [
            broker for broker in sorted(self._destinations) if (room := self.of(broker)) is not None and room.blocked
        ]


def overdue(destination: Destination, limits: ListingLimits) -> list[str]:
    """The bundles that a broker should have listed by now, sorted."""
    return sorted(bundle for bundle, each in destination.unlisted.items() if _is_overdue(each, limits))


def unconfirmed_brokers(memory: Memory, limits: ListingLimits) -> dict[str, list[str]]:
    """Broker -> the bundles that it should have listed by now; only brokers with such bundles, sorted."""
    overdue_of = {broker: overdue(memory.destinations[broker], limits) for broker in sorted(memory.destinations)}
    return {broker: bundles for broker, bundles in overdue_of.items() if bundles}


def followed(
    memory: Memory,
    results: Iterable[CommandResult],
    view: ClusterView,
    *,
    resumed_ms: int,
    limits: ListingLimits,
    patience: Patience,
) -> Memory:
    """*memory* with the moves that *results* answer, and without those whose destinations list the bundle in *view*.

    Moves that are found to be unconfirmed now count among its failures.  *memory* still has the answered commands in
    flight.  A later *resumed_ms*, the time of the last `trimtab resume`, clears what is not listed.
    """
    if limits.unproven_bundles is None and limits.confirm_intervals is None:
        return replace(memory, destinations={}) if memory.destinations else memory
    came = _answered(memory.in_flight, results, view.as_of_ms)
    listing = _Listing(view, limits, patience)
    destinations, failures = {}, dict(memory.failures)
    for broker in sorted({*memory.destinations, *came}):
        before = memory.destinations.get(broker, Destination(resumed_ms=resumed_ms))
        if resumed_ms > before.resumed_ms:
            before = Destination(listed=before.listed, resumed_ms=resumed_ms)
        after = listing.after(broker, before, came.get(broker, {}))
        if after.listed or after.unlisted:
            destinations[broker] = after
        known = overdue(before, limits)
        unconfirmed = [bundle for bundle in overdue(after, limits) if bundle not in known]
        failures |= {f"{bundle}{UNCONFIRMED}{view.as_of_ms}": view.as_of_ms for bundle in unconfirmed}
    return replace(memory, destinations=destinations, failures=failures)


def about_unconfirmed(memory: Memory, blocked: Iterable[str], limits: ListingLimits) -> list[Verdict]:
    """A verdict on each broker with unconfirmed moves, and on each other one that is *blocked*."""
    unconfirmed = unconfirmed_brokers(memory, limits)
    return [
        Verdict(
            subject=broker,
            reason=Reason.UNCONFIRMED,
            observed=float(len(unconfirmed.get(broker, memory.destinations[broker].unlisted))),
            limit=0.0,
            unit="moved bundles that it does not list",
            by="guardrails.confirm_intervals",
            detail=_detail(memory.destinations[broker], unconfirmed.get(broker, [])),
        )
        for broker in sorted({*unconfirmed, *blocked})
    ]


def summary_of(verdicts: Sequence[Verdict]) -> str:
    """One sentence on the brokers of *verdicts*, for the summary of a decision; "" where there are none."""
    names = [verdict.subject for verdict in verdicts]
    if not names:
        return ""
    return f"{Reason.UNCONFIRMED}: {_list_of(names)} did not list what was moved there"


def _detail(destination: Destination, bundles: Sequence[str]) -> str:
    named = _list_of(bundles or sorted(destination.unlisted))
    return (
        f"does not list {named}: it gets nothing more and counts as a broker without data; look at its log and at"
        " what it reports, restart it, or run `trimtab resume` once it lists its bundles"
    )


def _list_of(names: Sequence[str]) -> str:
    return some_of(names, _NAMED)


def _answered(
    in_flight: Mapping[str, InFlight], results: Iterable[CommandResult], interval: int
) -> dict[str, dict[str, UnlistedBundle]]:
    """Destination -> the bundles that it has by *results*; the first result of a command counts."""
    open_commands, came = dict(in_flight), dict[str, dict[str, UnlistedBundle]]()
    for result in results:
        command = open_commands.pop(result.id, None)
        if command is None or command.action != "unload" or not command.destination:
            continue
        if result.status in ("done", "already_done") and result.owner_after in ("", command.destination):
            verified = result.owner_after == command.destination
            bundle = UnlistedBundle(answered=interval, idle=command.idle, verified=verified)
            came.setdefault(command.destination, {})[command.bundle] = bundle
    return came


def _is_overdue(each: UnlistedBundle, limits: ListingLimits) -> bool:
    return not each.lapsed and limits.confirm_intervals is not None and each.sweeps >= limits.confirm_intervals


class _Listing(NamedTuple):
    """What brokers list in one interval."""

    view: ClusterView
    limits: ListingLimits
    patience: Patience

    def after(self, broker: str, before: Destination, came: Mapping[str, UnlistedBundle]) -> Destination:
        """*before*, the record of *broker*, after this interval, in which it got the bundles *came*."""
        interval = self.view.as_of_ms
        unlisted = {
            bundle: each
            for bundle, each in {**before.unlisted, **came}.items()
            if interval - each.answered < FORGOTTEN_MS
        }
        row = self.view.brokers.code_of.get(broker)
        if row is None:
            # A broker without data in this interval: the count pauses.
            if broker in self.view.missing:
                return replace(before, unlisted=unlisted)
            # It left.  One that never listed anything is not new when it comes back.
            lapsed = {} if before.listed else {name: replace(each, lapsed=True) for name, each in unlisted.items()}
            return Destination(unlisted=lapsed, resumed_ms=before.resumed_ms)
        listed = {bundle for bundle, each in unlisted.items() if self._lists(row, bundle, each)}
        count = before.listed + len(listed)
        count = min(count, max(1, len(self.view.bundles.of_broker(row))))
        # It listed what it got after its rest.
        again = before.failed > 0 and any(unlisted[bundle].answered > before.rests_until for bundle in listed)
        still_unlisted = {
            bundle: after
            for bundle, each in unlisted.items()
            if bundle not in listed and (after := self._unlisted(bundle, each, again=again, proven=count > 0))
        }
        return self._rested(replace(before, listed=count, unlisted=still_unlisted), before)

    def _rested(self, after: Destination, before: Destination) -> Destination:
        """*after* with its rest: one begins if bundles are overdue that were not so *before*."""
        late = overdue(after, self.limits)
        if not late:
            return replace(after, failed=0, rests_until=0)
        if set(late) <= set(overdue(before, self.limits)):
            return after
        failed = after.failed + 1
        rest = self.patience.rests_for_ms(Failed(times=failed, interval=self.view.as_of_ms))
        return replace(after, failed=failed, rests_until=self.view.as_of_ms + rest)

    def _unlisted(self, bundle: str, each: UnlistedBundle, *, again: bool, proven: bool) -> UnlistedBundle | None:
        """*each*, of *bundle*, which is not listed in this interval either; None: it counts no more."""
        if proven and each.idle:
            return None
        due = self.limits.confirm_intervals or _DUE
        if each.sweeps < due and self.view.as_of_ms - each.answered >= (each.sweeps + 1) * _RENEWED_MS:
            each = replace(each, sweeps=each.sweeps + 1)
        if each.sweeps < due:
            return each
        if proven and self._is_elsewhere(bundle):
            return None
        excused = each.idle or not each.verified or self._is_elsewhere(bundle) or self._is_gone(bundle)
        return replace(each, lapsed=each.lapsed or again or excused or self.limits.confirm_intervals is None)

    def _lists(self, broker: int, bundle: str, each: UnlistedBundle) -> bool:
        """Whether *broker* (a row) lists *bundle*, with clients or traffic if it had some."""
        if not self.view.lists(broker, bundle):
            return False
        table, row = self.view.bundles, self.view.bundles.code_of[bundle]
        return each.idle or int(table.broker[row]) != broker or not table.is_idle(row)

    def _is_elsewhere(self, bundle: str) -> bool:
        """Whether a broker lists *bundle*: another one than its destination, or that one, but without load."""
        row = self.view.bundles.code_of.get(bundle)
        return row is not None and int(self.view.bundles.broker[row]) != UNOWNED

    def _is_gone(self, bundle: str) -> bool:
        """Whether *bundle* seems to be split, merged, or deleted with its namespace: brokers list others instead."""
        names, namespace = self.view.bundles.names, namespace_of(bundle)
        begin = bisect_left(names, f"{namespace}/")
        if begin == len(names) or namespace_of(names[begin]) != namespace:
            return True
        at = bisect_left(names, bundle)
        return any(_overlap(names[row], bundle) for row in (at - 1, at) if 0 <= row < len(names))


def _overlap(one: str, other: str) -> bool:
    try:
        first, second = parse_bundle(one), parse_bundle(other)
    except TrimtabError:
        return False
    return first.namespace == second.namespace and first.lower < second.upper and second.lower < first.upper

"""Whether commands, and what is answered to them, are true of the cluster.  Imports nothing of the product."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from tests.protocol.rules import Event

_PERIOD_MS: Final = 60_000
#: From the last look at something to what follows from it: half a session, a call, and how exact clocks are.
_LOOK_MS: Final = 12_000
#: How old a view may be: two intervals that are late, and a collector that asks for the list now and then.
_VIEW_MS: Final = 8 * _PERIOD_MS
#: How old a broker's load report may be, as the settings of every run have it.
_REPORT_MS: Final = 4 * _PERIOD_MS
#: What people do to the controls; and what needs approvals under a policy, so it may return without a change.
_CHANGES: Final = frozenset({"pause", "stop_all", "drain", "exclude"})
_RAISES: Final = frozenset({"resume", "mode", "release", "include"})
#: How long a command may be valid, and how long an executor may take for it after that.
_TTL_MS, _GIVE_UP_MS = 60_000, 20_000
#: The detail of an answer: by how much a command had expired.
_TOO_LATE: Final = re.compile(r"(\d+) ms too late")


def untrue(trace: Sequence[Event]) -> list[str]:
    """What is not true, a line each."""
    checks = (
        *(_contents, _answers, _decided, _decided_in_time, _stopped, _takeovers, _resumed, _batches, _rosters),
        *(_plans, _holders, _reports, _stored),
    )
    return [line for check in checks for line in check(trace)]


class _Owners:
    """Who owned which bundle when."""

    def __init__(self, trace: Sequence[Event]) -> None:
        self._at, self._owner = defaultdict[str, list[int]](list), defaultdict[str, list[str]](list)
        for each in trace:
            if each.kind == "owned":
                self._at[each.content].append(each.at)
                self._owner[each.content].append(each.outcome)

    def between(self, bundle: str, first: int, last: int) -> set[str]:
        """Its owners from *first* to *last*, epoch ms: "" while it has none, "-" once it is no more."""
        begin = max(bisect_right(self._at[bundle], first) - 1, 0)
        return set(self._owner[bundle][begin : bisect_right(self._at[bundle], last)])


def _contents(trace: Sequence[Event]) -> Iterator[str]:
    """A command is the same in the journal, in its topic, and where it is carried out."""
    decided = {each.command: each for each in trace if each.kind == "decided"}
    owners, slow = _Owners(trace), dict[str, int]()
    for each in trace:
        if each.kind in ("slowed", "stood-still"):
            slow[each.process] = each.at
        if each.kind not in ("issued", "effect"):
            continue
        source = decided.get(each.command)
        if source is None:
            if not each.command:
                yield f"wrong: {each.content}, which no command asks for"
            continue
        if each.kind == "issued" and (each.content, each.expires_at) != (source.content, source.expires_at):
            yield f"wrong: {each.command} was decided as {source.content}, and issued as {each.content}"
        if each.kind == "effect":
            wanted = source.content.split()
            if each.content.split() != wanted[:3]:
                yield f"wrong: {each.command} was decided as {source.content}, and carried out as {each.content}"
            seen = owners.between(wanted[1], each.at - _LOOK_MS, each.at)
            if wanted[3] not in seen and each.at - slow.get(each.process, 0) > 4 * _PERIOD_MS:
                yield f"wrong: {each.command} is about {wanted[3]}, and carried out on {sorted(seen)}"
            if wanted[-1] != "active":
                yield f"wrong: {each.command} is {wanted[-1]}, and has changed the cluster"


def _answers(trace: Sequence[Event]) -> Iterator[str]:
    """An answer says what has become of its command."""
    owners, commands, effects = _Owners(trace), dict[str, Event](), dict[str, int]()
    newest, clocks = defaultdict[int, int](int), _wrong_clocks(trace)
    for each in trace:
        if each.kind in ("issued", "marked"):
            newest[each.partition] = max(newest[each.partition], each.epoch)
        if each.kind == "issued":
            commands[each.command] = each
        elif each.kind == "effect":
            effects[each.command] = each.at
        elif each.kind == "answered" and (command := commands.get(each.command)) is not None:
            seen = owners.between(command.content.split()[1], command.at - _PERIOD_MS, each.at)
            since = owners.between(command.content.split()[1], effects.get(each.command, each.at), each.at)
            if each.outcome == "expired" and any(_shows(clock, each, command) for clock in clocks):
                continue
            why = _lie(each, command, seen, since, newest[command.partition])
            if why:
                yield f"wrong: {each.command}, {command.content}, is answered as {each.outcome}: {why}"


class _WrongClock(NamedTuple):
    """An executor's clock is *ahead* from *begin* to *end*, ms."""

    begin: int
    end: int
    ahead: int


def _wrong_clocks(trace: Sequence[Event]) -> list[_WrongClock]:
    """A process that starts again has a clock that is right, and in the end all have."""
    found, wrong = list[_WrongClock](), dict[str, Event]()
    for each in trace:
        if each.kind in ("skewed", "died", "calm"):
            over = [each.process] if each.kind != "calm" else [*wrong]
            found += [_WrongClock(one.at, each.at, int(one.content)) for one in map(wrong.pop, {*over} & {*wrong})]
        if each.kind == "skewed" and each.process.startswith("executor"):
            wrong[each.process] = each
    return found + [_WrongClock(one.at, trace[-1].at, int(one.content)) for one in wrong.values()]


def _shows(clock: _WrongClock, answer: Event, command: Event) -> bool:
    """Whether *clock* showed, when *command* was looked at, what *answer* says.

    It may be another executor that gives the answer: the one with this clock died once it had stored it.
    """
    late = _TOO_LATE.fullmatch(answer.content)
    looked = command.expires_at + int(late[1]) - clock.ahead if late else 0
    return late is not None and max(clock.begin, command.at) - 2 <= looked <= min(clock.end, answer.at) + 2


def _lie(answer: Event, command: Event, seen: set[str], since: set[str], newest: int) -> str:
    """What is not true about *answer*; *seen*: who owned the bundle lately, *since*: after the act."""
    kind, _, destination, _, mode = command.content.split()
    wanted = "-" if kind == "split" else destination
    match answer.outcome:
        case "done" | "already_done" if kind == "split" or destination != "-":
            return "" if wanted in seen else f"its owners were {sorted(seen)}"
        case "expired":
            is_early = answer.at < command.expires_at - _LOOK_MS
            return "its time is not over" if is_early and not answer.content.startswith("not started") else ""
        case "fenced":
            return "" if newest > command.epoch else f"epoch {newest} is the newest"
        case "dry_run":
            return "" if mode == "dry_run" else "it is active"
        case "skipped":
            return "it is about no system namespace"
        case "failed" if kind == "unload" and answer.content.startswith("it went to"):
            return f"{wanted} alone has owned it since" if since - {""} == {wanted} else ""
    return ""


def _decided(trace: Sequence[Event]) -> Iterator[str]:
    """A bundle has one command at a time, from its owner to another broker that is there."""
    owners, dead = _Owners(trace), dict[str, int]()
    open_ = dict[str, Event]()
    answered = dict[str, str]()
    for each in trace:
        if each.kind == "broker-died":
            dead[each.content] = each.at
        elif each.kind == "broker-back":
            dead.pop(each.content, None)
        elif each.kind == "answered":
            answered[each.command] = each.outcome
        elif each.kind == "decided":
            kind, bundle, destination, source, mode = each.content.split()
            earlier = open_.get(bundle)
            is_open = earlier is not None and earlier.command not in answered
            if earlier is not None and is_open and each.at < earlier.expires_at + _GIVE_UP_MS:
                yield f"twice: {each.command} is about {bundle}, as is {earlier.command}, which has no answer"
            if mode == "active":  # a dry run moves nothing
                open_[bundle] = each
            if source not in owners.between(bundle, each.interval - _VIEW_MS, each.at):
                yield f"wrong: {each.command} is decided for {bundle} of {source}, which has not owned it"
            if kind == "unload" and destination == source:
                yield f"wrong: {each.command} moves {bundle} from {source} to itself"
            if dead.get(destination, each.at) < each.interval - _VIEW_MS:
                yield f"wrong: {each.command} moves {bundle} to {destination}, which is dead"
            if each.expires_at > each.interval + _TTL_MS:
                yield f"wrong: {each.command} expires {each.expires_at - each.interval} ms after its interval"


def _decided_in_time(trace: Sequence[Event]) -> Iterator[str]:
    """Intervals decided within a period, one of them late, share the budget of one: 3 unloads, 1 split."""
    entries, never_begun = dict[int, int](), set[str]()
    lately = list[tuple[int, bool, Event]]()
    for each in trace:
        if each.kind == "entry":
            entries[each.interval] = int(each.content)
        elif each.kind == "answered" and each.outcome in ("expired", "fenced"):
            never_begun.add(each.command)
        elif each.kind == "decided" and each.outcome.startswith("active"):
            at = entries[each.interval]
            is_late = abs(at - each.interval) >= _PERIOD_MS
            lately = [(when, late, other) for when, late, other in lately if when > at - _PERIOD_MS]
            lately.append((at, is_late, each))
            shared = [other for _, late, other in lately if is_late or late or other.interval == each.interval]
            for kind, most in (("unload", 3), ("split", 1)):
                count = sum(one.content.startswith(kind) and one.command not in never_begun for one in shared)
                if count > most and each.content.startswith(kind):
                    yield f"budget: {count} {kind}s of late intervals within a period, up to {each.interval}"


def _stopped(trace: Sequence[Event]) -> Iterator[str]:
    """Once stop-all has returned nothing older is carried out, and nothing is decided until somebody resumes."""
    stopped_at: int | None = None
    issued, older = set[str](), dict[str, int]()
    is_resumed, stopper = False, ""
    for each in trace:
        if each.kind == "issued":
            issued.add(each.command)
        elif each.kind == "stopping-all":
            is_resumed, stopper = False, each.process
        elif each.kind == "all-stopped":
            # Not by the epoch that it begins: without one, older commands are of the newest epoch.
            older = dict.fromkeys(issued, each.at) | older
            # Somebody may have resumed in its midst.
            stopped_at = None if is_resumed else each.at
        elif each.kind == "controls" and each.process != stopper:
            is_resumed = each.outcome.startswith("resumed")
            stopped_at = None if is_resumed else stopped_at
        elif each.kind == "decided" and stopped_at is not None and each.outcome.startswith("active"):
            yield f"stop-all: {each.command} is decided {each.at - stopped_at} ms after it"
        elif each.kind == "act" and each.at > older.get(each.command, each.at) + _LOOK_MS:
            yield f"stop-all: {each.command} is carried out {each.at - older[each.command]} ms after it"


def _takeovers(trace: Sequence[Event]) -> Iterator[str]:
    """A leadership that begins after a pause was stored obeys it from its first interval on."""
    paused_at: int | None = None
    began = dict[int, int]()
    for each in trace:
        if each.kind == "controls":
            is_active = each.outcome.split()[0] == "resumed" and each.outcome.split()[1:] in (
                [],
                ["active"],
                ["approve"],
            )
            paused_at = None if is_active else each.at if paused_at is None else paused_at
        elif each.kind == "epoch":
            began[each.epoch] = each.at
        elif each.kind == "decided" and each.outcome.startswith("active"):
            is_new = paused_at is not None and began.get(each.epoch, 0) > paused_at
            if is_new:
                yield f"pause: {each.command} is decided by epoch {each.epoch}, which began after somebody forbade it"


def _resumed(trace: Sequence[Event]) -> Iterator[str]:
    """Once all pauses have ended for an interval, none is in force."""
    resumed_at: int | None = None
    unread = dict[str, int]()
    # Under a policy what is stored is not always in force: _grants of the oracle looks at that.
    for each in trace if all(each.kind != "policy" for each in trace) else ():
        if each.kind == "controls":
            is_paused = each.outcome.startswith("paused")
            resumed_at = None if is_paused else each.at if resumed_at is None else resumed_at
        elif each.kind in ("read-lost", "stood-still", "slowed"):
            unread[each.process] = each.at
        elif each.kind == "entry" and each.outcome == "paused":
            long_ago = resumed_at is not None and resumed_at < each.at - 2 * _PERIOD_MS
            if resumed_at is not None and long_ago and unread.get(each.process, 0) < resumed_at:
                yield f"pause: interval {each.interval} is paused {each.at - resumed_at} ms after somebody resumed"


def _is_forged(orders: Event) -> bool:
    """Whether somebody without a key handed *orders* over, or put earlier ones back."""
    return orders.process == "mallory" or orders.outcome.endswith(" mallory")


def _plans(trace: Sequence[Event]) -> Iterator[str]:
    """A move of a plan is decided while it is handed over; a wave is handed over once the one before is done."""
    owner = dict[str, str]()
    #: Plan -> what it has handed over, and not reached its broker since: bundle and broker.
    waiting = defaultdict[str, dict[str, str]](dict)
    known = defaultdict[str, set[str]](set)
    until = dict[tuple[str, str], int]()
    for each in trace:
        if each.kind == "owned":
            owner[each.content] = each.outcome
            for moves in waiting.values():
                if moves.get(each.content) == each.outcome:
                    del moves[each.content]
        elif each.kind == "orders" and each.content:
            plan = each.outcome.split()[0]
            wave = dict(move.split(">") for move in each.content.split())
            until |= dict.fromkeys(wave.items(), each.expires_at)
            if _is_forged(each):  # who hands over what he likes: what is approved is for the oracle
                continue
            late = waiting[plan].keys() - wave.keys()
            if late and not wave.keys() <= known[plan]:
                yield f"plan: {plan} hands {sorted(wave)} over before {sorted(late)} are where they belong"
            known[plan] |= wave.keys()
            waiting[plan] |= {bundle: to for bundle, to in wave.items() if owner.get(bundle) != to}
        elif each.kind == "decided" and each.outcome.endswith(" Planned"):
            _, bundle, destination, *_ = each.content.split()
            if each.interval > until.get((bundle, destination), 0):
                yield f"plan: {each.command}, {each.content}, is decided and not handed over"


def _holders(trace: Sequence[Event]) -> Iterator[str]:
    """One plan at a time is handed over."""
    plan, until = "", 0
    for each in trace:
        if each.kind == "orders" and _is_forged(each):
            plan, until = "", 0
        elif each.kind == "orders":
            new = each.outcome.split()[0] if each.outcome else ""
            if new and plan and new != plan and each.at <= until:
                yield f"plan: {new} is handed over {until - each.at} ms before {plan} ends"
            plan, until = new, each.expires_at


def _reports(trace: Sequence[Event]) -> Iterator[str]:
    """A broker whose load report has stood still for long has no data, so nothing moves to it or from it."""
    since = dict[str, int]()
    for each in trace:
        if each.kind == "report-stands-still":
            since[each.content] = each.at
        elif each.kind == "report-renewed":
            since.pop(each.content, None)
        elif each.kind == "decided" and not each.outcome.endswith(" Planned"):
            _, _, destination, source, _ = each.content.split()
            for broker in {source, destination} & since.keys():
                age = each.interval - since[broker]
                if age > _REPORT_MS + _PERIOD_MS:
                    yield f"wrong: {each.command} is about {broker}, whose load is {age} ms old"


def _stored(trace: Sequence[Event]) -> Iterator[str]:
    """A command of a person that changes the controls, and has returned, has changed them."""
    changed = dict[str, int]()
    began = dict[int, int]()
    wanted = _CHANGES if any(each.kind == "policy" for each in trace) else _CHANGES | _RAISES
    for at, each in enumerate(trace):
        if each.kind == "controls":
            changed[each.process] = at
        elif each.kind == "commands":
            began[each.interval] = at
        elif each.kind == "commanded" and each.content in wanted:
            if changed.get(each.process, -1) >= began[each.interval]:
                continue
            yield f"lost: {each.content} of {each.process} has returned, and is not in the controls"


def _batches(trace: Sequence[Event]) -> Iterator[str]:
    """The records of a batch never change."""
    seen = dict[int, str]()
    for each in trace:
        if each.kind == "batch" and seen.setdefault(each.epoch, each.content) != each.content:
            yield f"batch: {each.epoch} is made of {each.content}, after {seen[each.epoch]}"


def _rosters(trace: Sequence[Event]) -> Iterator[str]:
    """Once all is calm, each interval has all brokers that are there."""
    calm: int | None = None
    absent, last = set[str](), 0
    brokers = {each.outcome for each in trace if each.kind == "owned"} - {"", "-"}
    for each in trace:
        if each.kind == "calm":
            calm = each.at
        elif each.kind == "broker-died":
            absent.add(each.content)
        elif each.kind == "broker-back":
            absent.discard(each.content)
            last = each.at
        elif each.kind == "tick" and each.outcome == "metrics" and calm is not None and not each.partition:
            missing = brokers - absent - set(each.content.split())
            if missing and each.interval > max(calm, last) + 2 * _PERIOD_MS:
                yield f"tick: interval {each.interval} lacks {sorted(missing)}"

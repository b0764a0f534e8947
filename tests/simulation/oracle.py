"""What must hold after every run, by the trace alone.  Imports nothing of the product but models of the wire."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from controller.wire.base import read_object
from tests.protocol.linearizable import Call, Fencing, Register, check, with_values
from tests.protocol.rules import NEVER_BEGUN, Event
from tests.protocol.trace import differs

#: Topic, partition and position of a record.
Place: TypeAlias = tuple[str, int, int]

_PERIOD_MS: Final = 60_000
#: Of guardrails, as the settings of every run have them.
_UNLOADS, _SPLITS, _WINDOW_UNLOADS, _WINDOW_SPLITS, _WINDOW_MS = 3, 1, 8, 3, 360_000
#: How long a decision waits for its approval.
_DECISION_MS: Final = 300_000
#: A leader reads the controls once an interval, and may take so long from there to its commit.
_TO_COMMIT_MS: Final = 20_000
#: How old an executor's look for newer epochs may be, and the latency of its call.
_LOOK_AGAIN_MS: Final = 1_500
#: From the last look at the clock and at the epochs to an act: half a session, a call, and how exact clocks are.
_TO_ACT_MS: Final = 12_000


def findings(trace: Sequence[Event], *, ended_ms: int) -> list[str]:
    """What does not hold, a line each; *ended_ms*: when the run came to rest, epoch ms."""
    checks = (
        *(_leaderships, _issuing, _epochs_of_partitions, _answers, _acts, _epochs_of_acts, _budgets, _controls),
        *(_exclusions, _approvals, _plans, _grants, _ticks),
    )
    return [line for check in checks for line in check(trace)] + list(_alive(trace, ended_ms))


def _of(trace: Sequence[Event], *kinds: str) -> list[Event]:
    return [each for each in trace if each.kind in kinds]


def _leaderships(trace: Sequence[Event]) -> Iterator[str]:
    epochs = [each.epoch for each in _of(trace, "epoch")]
    yield from (f"epoch {other} begins after {one}" for one, other in pairwise(epochs) if other <= one)
    entries = _of(trace, "entry")
    for one, other in pairwise(entries):
        if other.interval <= one.interval:
            yield f"interval {other.interval} is decided after {one.interval}"
        if other.epoch < one.epoch:
            yield f"interval {other.interval} is decided in epoch {other.epoch}, after epoch {one.epoch}"
    newest = 0
    for each in _of(trace, "epoch", "entry"):
        if each.kind == "entry" and each.epoch != newest:
            yield f"interval {each.interval} is decided in epoch {each.epoch} while {newest} leads"
        newest = max(newest, each.epoch)


def _issuing(trace: Sequence[Event]) -> Iterator[str]:
    decided = {each.command: each for each in _of(trace, "decided")}
    issued = _of(trace, "issued")
    times = Counter(each.command for each in issued)
    yield from (f"lost: command {each} was decided and not issued" for each in decided if not times[each])
    yield from (f"twice: command {each} was issued {count} times" for each, count in times.items() if count > 1)
    for each in issued:
        if each.command not in decided:
            yield f"wrong: command {each.command} is in no decision"
        elif each.epoch != decided[each.command].epoch:
            yield f"wrong: command {each.command} of epoch {decided[each.command].epoch} was issued in {each.epoch}"
    newest = Counter[int]()
    for each in _of(trace, "marked", "issued", "entry"):
        if each.kind != "entry":
            newest[each.partition] = max(newest[each.partition], each.epoch)
        elif older := sorted(partition for partition, epoch in newest.items() if epoch < each.epoch):
            yield f"wrong: interval {each.interval} is decided in epoch {each.epoch}, unknown in partitions {older}"


def _epochs_of_partitions(trace: Sequence[Event]) -> Iterator[str]:
    """No epoch follows a newer one in a partition of the commands, except where the next leader completes a decision.

    ``trimtab stop-all`` completes nothing.  Where it ends a leadership between an entry and its commands, the next
    leader of a log that does not append atomically issues them after the newer epoch, and executors answer that they
    are fenced (``tests.protocol.rules``).  It has to have taken the partition over since that epoch came there: a
    leader that was deposed has not.  They have to be of the last decision.
    """
    decided = {each.command: each.interval for each in _of(trace, "decided")}
    newest, last = Counter[int](), 0
    #: Who has taken a partition over since its newest epoch came there.
    successor = dict[int, str]()
    for each in _of(trace, "marked", "issued", "entry", "taken-over", "died"):
        at = each.partition
        if each.kind == "entry":
            last = each.interval
        elif each.kind == "taken-over":
            successor[at] = each.process
        elif each.kind == "died":
            successor = {place: who for place, who in successor.items() if who != each.process}
        elif each.epoch > newest[at]:
            newest[at] = each.epoch
            successor.pop(at, None)
        elif each.epoch < newest[at]:
            is_completed = successor.get(at) == each.process and decided.get(each.command) == last
            if each.kind == "marked" or not is_completed:
                yield f"wrong: epoch {each.epoch} follows {newest[at]} in partition {at}"


def _answers(trace: Sequence[Event]) -> Iterator[str]:
    issued = {each.command for each in _of(trace, "issued")}
    answers = Counter(each.command for each in _of(trace, "answered"))
    yield from (f"lost: command {each} has no result" for each in sorted(issued - answers.keys()))
    yield from (f"twice: command {each} has {count} results" for each, count in answers.items() if count > 1)
    yield from (f"wrong: a result of {each}, which was not issued" for each in sorted(answers.keys() - issued))


def _acts(trace: Sequence[Event]) -> Iterator[str]:
    """A command is begun, then acted on by who began it, in time and once; then it is answered, and truly."""
    issued = set[str]()
    begun, acted, changed, unanswered = dict[str, str](), set[str](), Counter[str](), set[str]()
    for each in trace:
        name = each.command
        if each.kind == "issued":
            issued.add(name)
        elif each.kind == "begun":
            if name in begun and begun[name] != each.process:
                yield f"twice: {each.process} begins {name}, which {begun[name]} has begun"
            begun[name] = each.process
        elif each.kind == "act":
            if name not in issued:
                yield f"wrong: {name} is carried out and was not issued"
            if begun.get(name) != each.process:
                yield f"wrong: {each.process} acts on {name}, which it has not begun"
            if each.at > each.expires_at + _TO_ACT_MS:
                yield f"wrong: {name} is carried out {each.at - each.expires_at} ms after it expired"
            if changed[name]:
                yield f"twice: {each.process} acts on {name} again, which has changed the cluster"
            if name in unanswered:
                yield f"twice: {each.process} acts on {name} again, and whether its call was carried out is not known"
            acted.add(name)
        elif each.kind == "unanswered":
            unanswered.add(name)
        elif each.kind == "effect":
            changed[name] += 1
        elif each.kind == "answered":
            if each.outcome == "done" and name not in acted:
                yield f"wrong: {name} is answered as done before anybody has acted"
            if each.outcome in NEVER_BEGUN and changed[name]:
                yield f"wrong: {name} is answered as {each.outcome}, and has changed the cluster"
    yield from (f"twice: {name} changed the cluster {count} times" for name, count in changed.items() if count > 1)


def _epochs_of_acts(trace: Sequence[Event]) -> Iterator[str]:
    """No command is begun whose executor has read of a newer epoch in its partition, or has not looked for one.

    Nor is one carried out long after a newer epoch.

    An executor that stood still may store that it begins: it looks at the time and the epoch again before it acts.
    """
    issued = dict[str, Event]()
    marked = defaultdict[int, list[tuple[int, Event]]](list)
    looked, looked_ms = dict[tuple[str, int], int](), dict[tuple[str, int], int]()
    for at, each in enumerate(trace):
        if each.kind == "marked":
            marked[each.partition].append((at, each))
        elif each.kind == "issued":
            issued[each.command] = each
            marked[each.partition].append((at, each))
        elif each.kind == "caught-up":
            looked[each.process, each.partition], looked_ms[each.process, each.partition] = at, each.at
        elif each.kind in ("begun", "act") and each.command in issued:
            command = issued[each.command]
            last = looked_ms.get((each.process, command.partition), 0)
            if each.kind == "begun" and last < command.at - _LOOK_AGAIN_MS:
                yield f"wrong: {each.command} is begun, and {each.process} has not looked for a newer epoch"
            for when, newer in marked[command.partition]:
                is_read = when < looked.get((each.process, command.partition), -1)
                is_old = each.kind == "act" and newer.at < each.at - _TO_ACT_MS
                if newer.epoch > command.epoch and (is_read or is_old):
                    done = "begun" if each.kind == "begun" else "carried out"
                    yield f"wrong: {each.command} of epoch {command.epoch} is {done} while {newer.epoch} leads"
                    break


def _budgets(trace: Sequence[Event]) -> Iterator[str]:
    """Commands that nobody has begun do not count."""
    counted = defaultdict[str, list[Event]](list)
    never_begun = {each.command for each in _of(trace, "answered") if each.outcome in ("expired", "fenced")}
    for each in _of(trace, "decided"):
        mode, kind, _ = each.outcome.split(" ", 2)
        if mode == "active" and each.command not in never_begun:
            counted[kind].append(each)
    limits = {"unload": (_UNLOADS, _WINDOW_UNLOADS), "split": (_SPLITS, _WINDOW_SPLITS)}
    for kind, events in counted.items():
        of_interval, of_window = limits[kind]
        for interval, count in Counter(each.interval for each in events).items():
            if count > of_interval:
                yield f"budget: {count} {kind}s in interval {interval}"
            window = sum(interval - _WINDOW_MS < each.interval <= interval for each in events)
            if window > of_window:
                yield f"budget: {window} {kind}s in the window up to {interval}"


def _controls(trace: Sequence[Event]) -> Iterator[str]:
    """Once a pause has stood for an interval, nothing is issued.

    A read that is lost excuses only who has not read of the pause before.
    """
    held_since: int | None = None
    unread, read = dict[str, int](), dict[str, int]()
    active = True
    for each in trace:
        if each.kind == "controls":
            active = each.outcome.split()[0] == "resumed" and each.outcome.split()[1:] in ([], ["active"], ["approve"])
            held_since = None if active else held_since if held_since is not None else each.at
            read = {} if active else read
        elif each.kind in ("read-lost", "stood-still"):
            unread[each.process] = each.at
        elif each.kind == "controls-read" and held_since is not None:
            read.setdefault(each.process, each.at)
        elif each.kind == "decided" and held_since is not None and each.outcome.startswith("active"):
            long_ago = each.at - _PERIOD_MS - _TO_COMMIT_MS
            is_known = read.get(each.process, each.at) < long_ago
            if held_since < long_ago and (is_known or unread.get(each.process, 0) < held_since):
                yield f"pause: {each.command} is decided {each.at - held_since} ms after somebody forbade it"


def _exclusions(trace: Sequence[Event]) -> Iterator[str]:
    """Nothing is done to what is excluded in the interval; nor to what somebody excluded more than an interval ago,
    unless the read was lost by which the controller would know."""
    in_force, since, unread = frozenset[str](), dict[str, int](), dict[str, int]()
    for each in trace:
        if each.kind == "in-force":
            in_force = _in_force(each).excluded
        elif each.kind == "excluded":
            since = {name: since.get(name, each.at) for name in each.content.split()}
        elif each.kind in ("read-lost", "stood-still"):
            unread[each.process] = each.at
        elif each.kind == "decided":
            bundle = each.content.split()[1]
            names, long_ago = {bundle, bundle.rpartition("/")[0]}, each.at - _PERIOD_MS - _TO_COMMIT_MS
            if names & in_force:
                yield f"exclusion: {each.command} is decided though {bundle} is excluded"
            elif any(unread.get(each.process, 0) < since[name] < long_ago for name in names & since.keys()):
                yield f"exclusion: {each.command} is decided more than an interval after {bundle} was excluded"


def _approvals(trace: Sequence[Event]) -> Iterator[str]:
    """In mode approve strategies' commands are those of a decision that was proposed and approved, in time and once.

    Once the mode has stood for an interval, nothing is decided in another one; under a policy, in one that allows more.
    """
    proposed, decided_at = dict[str, Event](), dict[int, int]()
    approved, asks, used = set[str](), set[int](), set[tuple[str, str]]()
    unread, since = dict[str, int](), None
    issued, has_policy = Counter(each.interval for each in _of(trace, "decided")), bool(_of(trace, "policy"))
    for each in trace:
        if each.kind == "proposed":
            proposed[each.content] = each
        elif each.kind == "decision-approved":
            approved.add(each.content)
        elif each.kind == "entry":
            decided_at[each.interval] = int(each.content)
        elif each.kind == "asks":
            asks.add(each.interval)
            if " is approved: by " in each.content and "; it waits" not in each.content and not issued[each.interval]:
                yield f"approval: an approved decision is lost in interval {each.interval}: {each.content}"
        elif each.kind == "controls":
            is_asked = each.outcome.split()[1:] == ["approve"]
            since = None if not is_asked else each.at if since is None else since
        elif each.kind in ("read-lost", "stood-still"):
            unread[each.process] = each.at
        elif each.kind == "decided" and not each.outcome.endswith("Planned"):
            if each.interval in asks:
                yield from _unapproved(each, proposed, approved, used, decided_at)
            elif has_policy and not each.outcome.startswith("active"):
                continue
            elif since is not None and unread.get(each.process, 0) < since < each.at - _PERIOD_MS - _TO_COMMIT_MS:
                yield f"approval: {each.command} is decided in another mode {each.at - since} ms after approve"


def _unapproved(
    command: Event,
    proposed: Mapping[str, Event],
    approved: Collection[str],
    used: set[tuple[str, str]],
    decided_at: Mapping[int, int],
) -> Iterator[str]:
    """What is wrong with a *command* of mode approve; *used*: the decisions and commands that were issued before."""
    of = [each for each in proposed.values() if command.content in each.outcome.split("|") and each.content in approved]
    unused = [each for each in of if (each.content, command.content) not in used]
    if not of:
        yield f"approval: {command.command} is decided, and nobody has approved it: {command.content}"
    elif not unused:
        yield f"approval: {command.command} is decided again: {command.content}"
    else:
        newest = unused[-1]
        used.add((newest.content, command.content))
        waited = decided_at[command.interval] - decided_at[newest.interval]
        if waited > _DECISION_MS:
            yield f"approval: {command.command} is decided {waited} ms after it was proposed"


def _plans(trace: Sequence[Event]) -> Iterator[str]:
    """Where plans need approvals, each command of one is a move of a plan that was approved, and not long ago."""
    approved, plan = dict[str, Event](), ""
    for each in trace if _of(trace, "policy") else ():
        if each.kind == "plan-approved":
            approved[each.content] = each
        elif each.kind == "ordered":
            plan = each.content
        elif each.kind == "decided" and each.outcome.endswith(" Planned"):
            approval = approved.get(plan)
            if approval is None:
                yield f"unapproved: {each.command} is decided for plan {plan[:12]}, which nobody has approved"
            elif each.at > approval.expires_at + _TO_COMMIT_MS:
                yield f"unapproved: {each.command} is decided {each.at - approval.expires_at} ms after approval expired"
            elif not any(each.content.startswith(f"{move} ") for move in approval.outcome.split("|")):
                yield f"unapproved: {each.command} is decided and is not in plan {plan[:12]}"


def _grants(trace: Sequence[Event]) -> Iterator[str]:
    """What was in force stays in force until a change that two people agreed on ends it: the mode once for each.

    After the calm end all that they agreed on last is in force.
    """
    grants, last_mode, before = list[Event](), 0, _NOTHING_IN_FORCE
    for each in trace if _of(trace, "policy") else ():
        if each.kind == "granted":
            grants.append(each)
        elif each.kind == "in-force":
            now, last = _in_force(each), _in_force(before)
            if RANKS[each.outcome] > RANKS[before.outcome]:
                of = [grant for grant in _of(grants, "granted") if _raises(grant, each.outcome, last_mode)]
                last_mode = max((grant.interval for grant in of), default=last_mode)
                if not of:
                    yield f"unapproved: the mode is {each.outcome} in interval {each.interval}, after {before.outcome}"
            for what, names in (
                ("resume", last.pauses - now.pauses),
                ("release", last.drained - now.drained),
                ("include", last.excluded - now.excluded),
            ):
                of = [grant for grant in grants if grant.outcome == what]
                yield from (
                    f"unapproved: {what} {name} in interval {each.interval}"
                    for name in names
                    if not any(_names(grant, name) for grant in of)
                )
            before = each
        elif each.kind == "decided" and not each.outcome.endswith(" Planned"):
            kind, _, destination, *_ = each.content.split()
            if kind == "unload" and destination in _in_force(before).drained:
                yield f"drain: {each.command} moves to {destination}, which is drained"
    pauses = _in_force(before).pauses
    if grants and (before.outcome != "active" or pauses):
        yield f"approval: at the end {before.outcome} with the pauses {pauses} is in force, not what was approved"


#: Modes, from the one in which least moves; that of the settings is active.
RANKS: Final = {"observe": 0, "dry_run": 1, "approve": 2, "active": 3}
_NOTHING_IN_FORCE: Final = Event(kind="in-force", outcome="active", content="||")


class _InForce(NamedTuple):
    """What holds something back in an interval."""

    pauses: frozenset[str]
    drained: frozenset[str]
    excluded: frozenset[str]


def _in_force(entry: Event) -> _InForce:
    return _InForce(*(frozenset(part.split()) for part in entry.content.split("|")))


def _names(grant: Event, name: str) -> bool:
    """Whether *grant* is about *name*; one of every pause is not about those that began after it was proposed."""
    values = grant.content.split()
    return name in values or ("*" in values and int(name) <= grant.interval)


def _raises(grant: Event, mode: str, last_ms: int) -> bool:
    """Whether *grant* allows *mode*, and is newer than the one of *last_ms* by which a mode was raised."""
    return grant.outcome == "mode" and RANKS[grant.content] >= RANKS[mode] and grant.interval > last_ms


def _ticks(trace: Sequence[Event]) -> Iterator[str]:
    places = defaultdict[int, Counter[tuple[str, int]]](Counter)
    last = dict[tuple[str, int], int]()
    for each in _of(trace, "tick"):
        place = each.outcome, each.partition
        places[each.interval][place] += 1
        if each.interval < last.get(place, 0):
            yield f"tick: {each.interval} follows {last[place]} in {place}"
        last[place] = each.interval
    for interval, count in places.items():
        yield from (f"tick: {interval} {times} times in {place}" for place, times in count.items() if times > 1)
    # Partitions are added, and never taken away.
    for one, other in pairwise(sorted(places)):
        if missing := places[one].keys() - places[other].keys():
            yield f"tick: {other} is not in {sorted(missing)}, where {one} is"


def _alive(trace: Sequence[Event], ended_ms: int) -> Iterator[str]:
    """After the calm end the loop goes on: the last intervals are decided."""
    last = max((each.interval for each in _of(trace, "entry")), default=0)
    if last < ended_ms - 4 * _PERIOD_MS:
        yield f"stands still: the last decision is of {(ended_ms - last) // 1000} s before the end"


def against_the_model(trace: Sequence[Event]) -> Iterator[str]:
    """Where *trace* is none that the model of the protocol allows.

    Three things that the product may do are not in the model (docs/protocol.md), and left out here.  It begins and acts
    again, in the same life, where brokers say that nothing was done.  Once it has stored that it begins, it may still
    answer that a command was not carried out: because it finds it late, or reaches no broker.  It goes on with old
    controls where it cannot read them.
    """
    changed = {each.command for each in trace if each.kind == "effect"}
    untouched = {each.command for each in _of(trace, "answered") if each.outcome in NEVER_BEGUN} - changed
    modelled, before = list[Event](), set[tuple[str, str, str]]()
    for each in trace:
        if each.kind == "died":
            before = {attempt for attempt in before if attempt[0] != each.process}
        if each.kind in ("begun", "act"):
            attempt = each.process, each.kind, each.command
            if attempt in before or each.command in untouched:
                continue
            before.add(attempt)
        modelled.append(each)
    if (difference := differs(modelled)) is not None:
        yield f"model: {difference}"


def histories(calls: Sequence[Call], absent: int) -> Iterator[str]:
    """Calls of the election, or of the controls, that no order of them explains; *absent*: no controls' version."""
    controls = [each for each in calls if each.name in ("read", "cas")]
    yield from (f"controls: {each}" for each in [check(Register(), with_values(controls, absent))] if each)
    names = {"claim": "claim", "check": "check", "raise": "raise", "epoch": "read"}
    election = [each._replace(name=names[each.name]) for each in calls if each.name in names]
    yield from (f"election: {each}" for each in [check(Fencing(), election)] if each)


def letters(
    found: Sequence[bytes], poison: Collection[Place], records: Mapping[Place, tuple[int, bytes]]
) -> Iterator[str]:
    """One dead letter for each record that cannot be used, or more of the same, and no other.

    *poison*: where such records were put.  *records*: all others, with when they were appended, epoch ms: collectors
    whose clock is ahead write some that are of the future.
    """
    wanted = {place for place in poison if place[0] != "commands"}
    wanted |= {place for place, (at, value) in records.items() if place not in poison and _is_of_the_future(value, at)}
    there = set[Place]()
    for value in found:
        source: Mapping[str, object] = read_object(value)["source"]
        there.add((str(source["topic"]), int(str(source.get("partition", 0))), int(str(source["offset"]))))
    yield from (f"dead letter missing of {place}" for place in sorted(wanted - there))
    yield from (f"dead letter of a good record: {place}" for place in sorted(there - wanted))


def _is_of_the_future(value: bytes, at: int) -> bool:
    fields = read_object(value)
    return any(int(fields.get(name) or 0) > at + _PERIOD_MS for name in ("interval", "version"))

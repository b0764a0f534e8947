"""What must hold whatever happened: everything issued is answered, nothing is done twice, and all of it was decided."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

from controller.model.decision import Command
from controller.model.journal import JournalEntry
from controller.wire.commands import CommandEvent, EpochEvent, to_command
from tests.faults.log import Answered, Decided, SiteLog
from tests.faults.pulsar import Act

#: Answers behind which the bundle may have moved or not.
_EITHER = ("unknown", "already_done")
#: Bundle and destination -> how often it was moved there, at least and at most, if all answers are true.
_Bounds: TypeAlias = dict[tuple[str, str], tuple[int, int]]


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What does not hold, a line each."""

    #: Commands that were decided and never issued, or issued and never answered.
    lost: list[str] = field(default_factory=list)
    #: Intervals, commands and acts that came more than once.
    twice: list[str] = field(default_factory=list)
    #: What nobody decided, what a dead leadership did, and answers that are not true.
    wrong: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.lost or self.twice or self.wrong)


def audit(log: SiteLog, acts: Sequence[Act], forged: Set[str] = frozenset(), *, obeyed: bool = True) -> Findings:
    """Findings about all that ever happened at a site that has come to rest.

    *forged*: ids of commands that a test has put on the command topic; they are answered once, as all are.  *obeyed*:
    a bundle always goes where it is sent; real brokers may give it to another one, and then the answer is ``failed``.
    """
    either = _EITHER if obeyed else (*_EITHER, "failed")
    decided, events, answers = log.decisions(), log.events(), log.answers()
    issued = [to_command(event) for each in events for event in each if not isinstance(event, EpochEvent)]
    wanted = [command for each in decided for command in each.entry.decision.commands]
    missing = sorted({command.id for command in wanted} - {command.id for command in issued})
    unanswered = sorted({command.id for command in issued} - {answer.result.id for answer in answers})
    strange = sorted({command.id for command in issued} - {command.id for command in wanted} - forged)
    return Findings(
        lost=[f"command {each} was decided and is not issued" for each in missing]
        + [f"command {each} has no result" for each in unanswered],
        twice=[
            *_repeated("interval", (each.entry.interval for each in decided)),
            *_repeated("command", (command.id for command in issued)),
            *_repeated("result of", (answer.result.id for answer in answers)),
            *_acts_too_many(_bounds(issued, answers, either), acts),
        ],
        wrong=[
            *(f"command {each} is in no decision" for each in strange),
            *_out_of_order([each.entry for each in decided]),
            *_epochs_of_decisions(decided),
            *(finding for each in events for finding in _epochs_of(each)),
            *_acts_too_few(_bounds(issued, answers, either), acts),
        ],
    )


def differences(decided: Sequence[Decided], undisturbed: Sequence[bytes]) -> list[str]:
    """Where the journal is not what it were had nothing ever failed."""
    if len(decided) != len(undisturbed):
        return [f"{len(decided)} intervals are decided instead of {len(undisturbed)}"]
    pairs = zip(decided, undisturbed, strict=True)
    return [f"interval {each.entry.interval} is decided otherwise" for each, other in pairs if each.value != other]


def _repeated(what: str, names: Iterable[object]) -> list[str]:
    return [f"{what} {name}: {times} times" for name, times in Counter(names).items() if times > 1]


def _out_of_order(entries: Sequence[JournalEntry]) -> Iterator[str]:
    for one, other in pairwise(entries):
        if other.interval < one.interval:
            yield f"interval {other.interval} is decided after {one.interval}"


def _epochs_of_decisions(decided: Sequence[Decided]) -> Iterator[str]:
    for one, other in pairwise(decided):
        if other.epoch < one.epoch:
            yield f"interval {other.entry.interval} is decided in epoch {other.epoch}, after one in {one.epoch}"


def _epochs_of(events: Sequence[CommandEvent]) -> Iterator[str]:
    """Events of a partition that come behind those of a newer leadership."""
    newest = 0
    for event in events:
        if event.epoch < newest:
            yield f"{event.type} {event.id} of epoch {event.epoch} lies behind epoch {newest}"
        newest = max(newest, event.epoch)


def _bounds(issued: Sequence[Command], answers: Sequence[Answered], either: Sequence[str]) -> _Bounds:
    moved, maybe = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    result_of = {answer.result.id: answer.result for answer in answers}
    for command in issued:
        result = result_of.get(command.id)
        key = command.bundle, command.destination
        if result is None or result.status in either:
            maybe[key] += 1
        elif result.status == "done":
            moved[key] += 1
    return defaultdict(lambda: (0, 0), {key: (moved[key], moved[key] + maybe[key]) for key in moved | maybe})


def _acts_too_many(bounds: _Bounds, acts: Sequence[Act]) -> Iterator[str]:
    for key, times in Counter((act.bundle, act.destination) for act in acts).items():
        if times > bounds[key][1]:
            yield f"{key[0]} was moved to {key[1]} {times} times, {bounds[key][1]} commands account for it"


def _acts_too_few(bounds: _Bounds, acts: Sequence[Act]) -> Iterator[str]:
    times = Counter((act.bundle, act.destination) for act in acts)
    for key, (least, _) in bounds.items():
        if times[key] < least:
            yield f"{least} answers say that {key[0]} was moved to {key[1]}; it was {times[key]} times"
    for act in acts:
        if act.source == act.destination:
            yield f"{act.bundle} was moved to where it was: {act.destination}"

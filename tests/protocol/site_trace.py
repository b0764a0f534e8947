"""The trace of a site that has come to rest, as its log shows it: journal, commands, results (``tests.faults``)."""

from collections.abc import Iterator, Sequence, Set

from controller.wire.commands import CommandEvent, EpochEvent
from tests.faults.log import SiteLog
from tests.protocol.rules import Event
from tests.protocol.trace import differs


def against_the_model(log: SiteLog, forged: Set[str] = frozenset()) -> list[str]:
    """Where what lies in *log* is no trace of the model; *forged*: ids of commands that no controller has decided."""
    difference = differs(site_trace(log, forged))
    return [] if difference is None else [f"the model does not allow {difference}"]


def site_trace(log: SiteLog, forged: Set[str] = frozenset()) -> list[Event]:
    """What *log* shows.  Between two partitions there is no order: what is decided comes as early as it can."""
    partitions = [[each for each in events if each.id not in forged] for events in log.events()]
    decisions = log.decisions()
    epochs = sorted({each.epoch for each in decisions} | {each.epoch for events in partitions for each in events})
    trace, decided = list[Event](), set[str]()
    for each in decisions:
        trace += _begun(epochs, each.epoch)
        entry, interval = each.entry, each.entry.interval
        paused = "paused" if entry.controls.paused else ""
        trace.append(Event(kind="entry", at=each.at_ms, epoch=each.epoch, interval=interval, outcome=paused))
        for command in entry.decision.commands:
            decided.add(command.id)
            trace.append(Event(kind="decided", epoch=each.epoch, interval=interval, command=command.id))
        for number, events in enumerate(partitions):
            trace += _issued(number, events, each.epoch, decided)
    for number, events in enumerate(partitions):
        trace += _begun(epochs, max((each.epoch for each in events), default=0))
        trace += _issued(number, events, max((each.epoch for each in events), default=0), {each.id for each in events})
    answers = [each for each in log.answers() if each.result.id not in forged]
    return [
        *trace,
        *(Event(kind="answered", at=a.at_ms, command=a.result.id, outcome=a.result.status) for a in answers),
    ]


def _begun(epochs: list[int], upto: int) -> Iterator[Event]:
    """Those of *epochs* that have begun when *upto* has; they are removed."""
    while epochs and epochs[0] <= upto:
        yield Event(kind="epoch", epoch=epochs.pop(0))


def _issued(number: int, events: list[CommandEvent], epoch: int, decided: Set[str]) -> Sequence[Event]:
    """The next *events* of the partition *number* that *epoch* and the commands *decided* explain; they are removed."""
    found = list[Event]()
    while events and (events[0].id in decided or (isinstance(events[0], EpochEvent) and events[0].epoch <= epoch)):
        event = events.pop(0)
        kind, command = ("marked", "") if isinstance(event, EpochEvent) else ("issued", event.id)
        found.append(Event(kind=kind, epoch=event.epoch, partition=number, command=command))
    return found

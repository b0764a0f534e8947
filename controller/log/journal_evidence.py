"""Evidence of the journal in the command topic and the checkpoint, for controller.model.lost_journal."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from controller.log.tail import LogTail
from controller.model.errors import WireError
from controller.model.lost_journal import Evidence
from controller.wire.commands import EpochEvent, own_event
from controller.wire.readable import utc

#: Events of the command topic that are looked at, from its end backwards, until one is a command of this cluster.
#: Clusters may share the topic.
_MOST_EVENTS: Final = 10_000
#: The file with the last journalled interval in a checkpoint, and its length.
JOURNALLED: Final = "journalled"
DIGITS: Final = 15


def of_commands(tail: LogTail, cluster: str, *, election_epoch: int | None = None) -> Iterator[Evidence]:
    """The newest command of *cluster*, and each epoch that started after it.

    *election_epoch*: the newest leadership in the election, where every leader claims its epoch first; what has a newer
    one was forged, and does not hide what is older.  None: that is not known.  Raises TrimtabError.
    """
    for value in islice(tail.backwards("commands", (b"",)), _MOST_EVENTS):
        try:
            event = own_event(value, cluster)
        except WireError:  # nobody executes it, either
            continue
        if event is None:
            continue
        genuine = election_epoch is None or event.epoch <= election_epoch
        if isinstance(event, EpochEvent):
            what = f"the command topic has epoch {event.epoch}"
            yield Evidence(what=what, epoch=event.epoch, at_ms=event.time_ms, genuine=genuine)
            continue
        interval = event.data.interval
        what = f"the command topic has commands of interval {utc(interval)}, epoch {event.epoch}"
        at_ms = max(interval, event.time_ms)
        yield Evidence(what=what, interval=interval, epoch=event.epoch, at_ms=at_ms, genuine=genuine)
        if genuine:
            return


def of_checkpoint(path: str, content: bytes | None) -> Iterator[Evidence]:
    """What the checkpoint at *path* shows, whose file with the last journalled interval holds *content*."""
    # Half a file, as of a process that was killed, shows nothing.
    if content is not None and content.isdigit() and len(content) == DIGITS:
        interval = int(content)
        what = f"the checkpoint {path} was used up to interval {utc(interval)}"
        yield Evidence(what=what, interval=interval, at_ms=interval)


def content_of(interval: int) -> bytes:
    """The file's content for the journalled *interval*, epoch ms."""
    return f"{interval:0{DIGITS}d}".encode()

"""The journal: one partition with one writer, and the commands that are issued with its entries.

An entry and its commands are appended together (port.Fenced), all or nothing, on every system.  A new leader fences the
one before it, reads to the end, and completes the commands of the last entry.  Commands depend on the entry and its
headers alone, so any leader that completes an entry issues the same commands, with the entry's epoch and time, and the
signatures of the leader that decided it: nobody signs for what another process wrote.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Final

from controller.adapters.process.failpoints import failpoint
from controller.log.journal_reading import (
    CLUSTER,
    EPOCH,
    ISSUED_AT,
    SIGNATURES,
    WHOLE,
    JournalEnd,
    JournalReader,
    newest_epoch,
    number_in,
)
from controller.log.port import INTERVAL, OLDEST, Fenced, Log, LogRecord, Out, Position, Scope
from controller.model.decision import Command
from controller.model.errors import (
    AccessDeniedError,
    JournalError,
    LeadershipLostError,
    SettingsError,
    TrimtabError,
    WireError,
)
from controller.model.journal import JournalEntry, JournalHead
from controller.wire.base import read_object
from controller.wire.command_signatures import joined, signatures_of
from controller.wire.commands import EVENT_HEADERS, command_event, command_key, epoch_event
from controller.wire.ed25519 import SigningKey
from controller.wire.journal import encode_epoch
from controller.wire.journal_records import WHOLE_EVERY_MS, EntryWriter
from controller.wire.readable import utc

log = logging.getLogger(__name__)

#: How many records are read from the end before all are read: usually the last entry with the whole memory is among
#: them.
_NEAR: Final = (200, 10_000, None)
#: How many bytes one pruning searches, or more if nothing in them can be pruned.
_PRUNED_BYTES: Final = 64 << 20
#: A decision further ahead of the clock than this causes a warning, ms.
_FAR_AHEAD_MS: Final = 600_000


class LogJournal:
    """Journal in *log*."""

    def __init__(
        self, log: Log, *, cluster: str, whole_every_ms: int = WHOLE_EVERY_MS, signing_key: SigningKey | None = None
    ) -> None:
        """*signing_key* signs the commands; None: they are not signed."""
        self._log, self._cluster, self._whole_every_ms = log, cluster, whole_every_ms
        self._signing_key = signing_key
        self._reader = JournalReader(log, cluster)
        self._scope = Scope(name=f"journal-{cluster}", decides=("journal", 0), owns=("commands",))
        self._scope_fence: Fenced | None = None
        #: How many partitions of the commands have the newest epoch.
        self._announced = 0

    def open(self) -> JournalHead:
        """See Journal."""
        with _as_journal_errors():
            fenced = self._fence()
            end = self._end(fenced)
            base = None if end.last is None else end.last.remembered
            self._writer = EntryWriter(whole_every_ms=self._whole_every_ms, base=base)
            head = end.head
            mark = epoch_event(self._cluster, end.epoch, _now_ms()) if end.epoch else b""
            fenced.complete(self._unfinished(end), mark, _identity)
            return head

    def fence(self) -> int:
        """See LogJournal."""
        with _as_journal_errors():
            fenced = self._fence()
            for about in _NEAR:
                if epoch := newest_epoch(list(fenced.history(about))):
                    return epoch
            return 0

    def begin_epoch(self, epoch: int) -> None:
        """See Journal."""
        self._announced, partitions = 0, self._partitions()
        entry = Out("journal", encode_epoch(self._cluster, epoch), partition=0, headers=self._headers(epoch))
        self._open_scope().append([entry], self._epoch_events(epoch, _now_ms(), partitions))
        self._announced = partitions

    def append(self, entry: JournalEntry, *, epoch: int, issued_at_ms: int, before_commit: Callable[[], None]) -> None:
        """See Journal."""
        failpoint("after-decide")

        def before() -> None:
            before_commit()
            failpoint("inside-transaction")

        partitions = self._partitions()
        encoded = self._writer.encode(entry)
        headers = self._headers(epoch) | {
            INTERVAL: b"%d" % entry.interval,
            ISSUED_AT: b"%d" % issued_at_ms,
        }
        signatures = signatures_of(entry.decision.commands, epoch, self._signing_key)
        records = [Out("journal", record, partition=0, headers=headers) for record in encoded.records]
        if encoded.whole:
            records[0] = records[0]._replace(headers=headers | {WHOLE: b"1"})
        if signatures:
            # A share with each part of the entry: no record grows above what Kafka takes.
            shares = zip(records, joined(signatures, len(records)), strict=True)
            records = [each._replace(headers={**each.headers, SIGNATURES: share}) for each, share in shares]
        follow = [
            *self._epoch_events(epoch, issued_at_ms, partitions),
            *_events(entry.decision.commands, epoch, issued_at_ms, signatures),
        ]
        self._open_scope().append(records, follow, before)
        self._writer.wrote(encoded)
        self._announced = partitions
        failpoint("after-commit")

    def prune(self, *, committed: int, before: int) -> None:
        """See Journal."""
        needed: Position | None = None
        looked = 0
        try:
            for record in self._records():
                interval = number_in(record, INTERVAL, self._reader.place(record))
                if interval is not None and not (interval < before and interval <= committed):
                    break
                looked += len(record.value)
                if WHOLE in record.headers:
                    needed = record.position
                    if looked > _PRUNED_BYTES:
                        break
            if needed is not None:
                self._open_scope().prune_before(needed)
        except LeadershipLostError:
            raise
        except TrimtabError as error:
            raise JournalError(f"cannot prune the journal: {error}") from error

    def close(self) -> None:
        """End all connections."""
        self._release()
        self._log.close()

    def _fence(self) -> Fenced:
        """Become the journal's only writer."""
        self._release()
        self._log.partitions("metrics", "results", "commands", "journal")
        self._reader.refuse_another()  # before the leader of another cluster is fenced
        self._scope_fence = self._log.fence(self._scope)
        return self._scope_fence

    def _release(self) -> None:
        if self._scope_fence is not None:
            self._scope_fence.close()
            self._scope_fence = None

    def _open_scope(self) -> Fenced:
        if self._scope_fence is None:
            raise JournalError("the journal is not open")
        return self._scope_fence

    def _end(self, fenced: Fenced) -> JournalEnd:
        for about in _NEAR:
            end = self._reader.end_of(fenced.history(about))
            if end.is_whole:
                break
        if end.last is not None and end.record is not None:
            _warn_of_the_future(end.last.interval, self._reader.place(end.record))
        return end

    def _unfinished(self, end: JournalEnd) -> list[Out]:
        """The commands of the last entry, whether its leader issued them or not."""
        if end.last is None or end.record is None:
            return []
        place = self._reader.place(end.record)
        epoch, issued_at = (number_in(end.record, header, place) for header in (EPOCH, ISSUED_AT))
        commands, at_ms = end.last.entry.decision.commands, end.record.timestamp_ms if issued_at is None else issued_at
        return _events(commands, epoch or end.epoch, at_ms, end.signatures)

    def _records(self) -> Iterator[LogRecord]:
        with closing(self._log.read("journal", OLDEST, partition=0)) as reader:
            yield from reader.read_to_end()

    def _partitions(self) -> int:
        """The present number of partitions of the commands; more can be added at any time."""
        with _as_journal_errors():
            return self._log.partitions("commands")["commands"]

    def _epoch_events(self, epoch: int, at_ms: int, partitions: int) -> list[Out]:
        """Events that announce *epoch* to the *partitions* that do not have it, so that no lower one counts there."""
        event = epoch_event(self._cluster, epoch, at_ms)
        return [
            Out("commands", event, partition=partition, headers=EVENT_HEADERS)
            for partition in range(self._announced, partitions)
        ]

    def _headers(self, epoch: int) -> dict[str, bytes]:
        return {EPOCH: b"%d" % epoch, CLUSTER: self._cluster.encode()}


def _events(commands: tuple[Command, ...], epoch: int, issued_at_ms: int, signatures: Sequence[str] = ()) -> list[Out]:
    """The events of *commands*; *signatures* has one for each of them, or none."""
    return [
        Out(
            "commands",
            command_event(command, epoch, issued_at_ms, signature),
            key=command_key(command).encode(),
            headers=EVENT_HEADERS,
        )
        for command, signature in zip(commands, signatures or [""] * len(commands), strict=True)
    ]


def _identity(value: bytes) -> object:
    """The id and the signature of an event, which nobody else can write; other values are returned as they are."""
    try:
        event = read_object(value)
    except WireError:
        return value
    return str(event.get("id")), str(event.get("signature", ""))


def _warn_of_the_future(interval: int, place: str) -> None:
    """Warn if the last decision is of a time in the future, since none is made before then."""
    if interval > _now_ms() + _FAR_AHEAD_MS:
        log.error(
            "%s: the last decision is of %s, ahead of this host's clock: no decisions until then; if "
            "this clock is right, the clock of the collector that wrote the tick was wrong",
            place,
            utc(interval),
        )


@contextmanager
def _as_journal_errors() -> Iterator[None]:
    """What the log raises in the block, as Journal does."""
    try:
        yield
    except (AccessDeniedError, JournalError, LeadershipLostError, SettingsError):
        raise
    except TrimtabError as error:
        raise JournalError(str(error)) from error


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

"""The journal in Pulsar: a topic of one partition with one writer, and commands that follow from it.

The entry is the decision: once its record (of several, the last one) is stored, the interval is decided.  Its commands
are written after it.  A leader that dies in between leaves commands out; the next one reads which are there, and writes
those that are missing, under the epoch and with the time of the entry.  Each partition of the command topic has one
writer, too, so a leader that hung and comes back adds nothing.  docs/adr/0008-a-log-in-pulsar.md
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import zip_longest
from typing import Final

import pulsar

from controller.adapters.process.failpoints import failpoint
from controller.adapters.pulsar.log.client import partition_name, topic_name
from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.fenced import FencedPartition
from controller.adapters.pulsar.log.journal_reading import (
    CLUSTER,
    EPOCH,
    FIRST,
    INTERVAL,
    ISSUED_AT,
    WHOLE,
    JournalEnd,
    end_of,
    newest_properties,
    number,
    refuse_another_cluster,
    shown,
    start_in,
)
from controller.adapters.pulsar.log.reader import LogRecord, MessagePlace, Start, read_rest
from controller.adapters.pulsar.log.topics import create_topics
from controller.adapters.pulsar.log.writer import now_ms, partition_of
from controller.model.decision import Command
from controller.model.errors import (
    AccessDeniedError,
    DamagedJournalError,
    JournalError,
    LeadershipLostError,
    TrimtabError,
    WireError,
)
from controller.model.journal import JournalEntry
from controller.ports.journal import JournalHead
from controller.ports.leadership import newer_epoch
from controller.settings.pulsar_log import PulsarLogSettings
from controller.wire.base import read_object
from controller.wire.commands import command_event, command_key, epoch_event
from controller.wire.journal import encode_epoch
from controller.wire.journal_records import WHOLE_EVERY_MS, EntryWriter

log = logging.getLogger(__name__)

#: The subscription whose position says what the journal still needs: Pulsar keeps all that it has not acknowledged.
KEPT: Final = "trimtab-journal"
#: So many bytes are searched for one pruning, or more where nothing in them can be pruned.
_PRUNED_BYTES: Final = 64 << 20


class PulsarJournal:
    """Journal in Pulsar."""

    def __init__(self, settings: PulsarLogSettings, *, cluster: str, whole_every_ms: int = WHOLE_EVERY_MS) -> None:
        self._log, self._cluster, self._whole_every_ms = settings, cluster, whole_every_ms
        self._connection = LogConnection(settings)
        self._entries = FencedPartition(
            self._connection, settings.journal_topic, 0, writer=f"trimtab-journal-{cluster}"
        )
        self._commands: list[FencedPartition] = []
        #: How many partitions of the command topic have the newest epoch.
        self._told = 0
        #: ledger:entry where the journal begins, "" where nothing was pruned.
        self._first = ""

    def open(self) -> JournalHead:
        """See Journal.  Writes the commands of the last entry that its writer did not come to."""
        self._fence()
        end = self._end()
        base = None if end.last is None else end.last.remembered
        self._writer = EntryWriter(whole_every_ms=self._whole_every_ms, base=base)
        head = end.head
        self._take_commands(end.epoch)
        if head.last is not None:
            self._complete(head.last, end)
        return head

    def fence(self) -> int:
        """See Journal."""
        self._fence()
        newest = 0
        for start in self._entries.windows(now_ms()):
            if epochs := sorted(filter(None, map(_epoch_of, self._entries.before(start)))):
                newest = newer_epoch(*epochs)
                break
        self._take_commands(newest)
        return newest

    def _fence(self) -> None:
        """Become the journal's only writer."""
        log = self._log
        create_topics(self._connection, log.metrics_topic, log.results_topic, log.commands_topic, log.journal_topic)
        try:
            self._keep()
            newest = newest_properties(self._connection)
        except AccessDeniedError:
            raise
        except TrimtabError as error:
            raise JournalError(str(error)) from error
        # Before the leader of another cluster is fenced.
        refuse_another_cluster(newest.get(CLUSTER, self._cluster), self._cluster)
        begin = start_in(newest)
        self._first = "" if begin.entry is None else f"{begin.entry[0]}:{begin.entry[1]}"
        self._entries.take_over(properties=self._properties())

    def begin_epoch(self, epoch: int) -> None:
        """See Journal."""
        self._told = 0
        self._connect_commands()
        self._entries.append(encode_epoch(self._cluster, epoch), self._properties() | {EPOCH: str(epoch)})
        self._tell(epoch)

    def append(self, entry: JournalEntry, *, epoch: int, issued_at_ms: int, before_commit: Callable[[], None]) -> None:
        """See Journal."""
        failpoint("after-decide")
        self._connect_commands()
        encoded = self._writer.encode(entry)
        common = self._properties() | {
            EPOCH: str(epoch),
            ISSUED_AT: str(issued_at_ms),
            INTERVAL: str(entry.interval),
        }
        for nth, record in enumerate(encoded.records):
            if nth == len(encoded.records) - 1:
                before_commit()
                failpoint("inside-transaction")
            self._entries.append(record, common | ({WHOLE: "1"} if encoded.whole and nth == 0 else {}))
        self._writer.wrote(encoded)
        failpoint("after-commit")
        self._tell(epoch)
        self._issue(entry.decision.commands, epoch, issued_at_ms)

    def prune(self, *, committed: int, before: int) -> None:
        """See Journal."""
        needed: MessagePlace | None = None
        last_before: MessagePlace | None = None
        previous: MessagePlace | None = None
        looked = 0
        try:
            for record in self._all():
                interval = number(record, INTERVAL)
                if interval is not None and not (interval < before and interval <= committed):
                    break
                looked += len(record.value)
                if WHOLE in record.properties:
                    needed, last_before = record.place, previous
                    if looked > _PRUNED_BYTES:
                        break
                previous = record.place
            if needed is not None and shown(needed) != self._first:
                self._first = shown(needed)
                self._entries.append(b"", self._properties() | {"trimtab.mark": "pruned"})
                if last_before is not None:
                    self._keep(last_before)
        except LeadershipLostError:
            raise
        except (TrimtabError, pulsar.PulsarException) as error:
            raise JournalError(f"the journal could not be pruned: {error}") from error

    def close(self) -> None:
        """End all connections."""
        self._connection.close()

    def _properties(self) -> dict[str, str]:
        return {CLUSTER: self._cluster} | ({FIRST: self._first} if self._first else {})

    def _all(self) -> Iterator[LogRecord]:
        """The records from where the journal begins."""
        ledger, _, entry = self._first.partition(":")
        start = Start(entry=(int(ledger), int(entry))) if self._first else Start()
        return read_rest(self._connection, self._log.journal_topic, 0, start)

    def _end(self) -> JournalEnd:
        for start in self._entries.windows(now_ms()):
            end = end_of(self._entries.before(start), self._cluster)
            if end.is_whole:
                break
        return end

    def _keep(self, done: MessagePlace | None = None) -> None:
        """Pulsar keeps the journal from behind *done* on; None: from where it keeps it already, else all of it."""
        full = partition_name(topic_name(self._log, self._log.journal_topic), 0)
        consumer = self._connection.patiently(
            lambda: self._connection.client.subscribe(
                full,
                KEPT,
                consumer_type=pulsar.ConsumerType.Failover,
                initial_position=pulsar.InitialPosition.Earliest,
                receiver_queue_size=1,
            ),
            self._log.journal_topic,
            "consume",
        )
        with closing(consumer):
            if done is not None:
                consumer.acknowledge_cumulative(pulsar.MessageId(-1, done[0], done[1], -1))

    def _take_commands(self, epoch: int) -> None:
        """Fence earlier writers of the command topic.  The mark is the epoch that holds there already."""
        self._commands = []
        self._connect_commands(epoch_event(self._cluster, epoch, now_ms()) if epoch else None)
        self._told = len(self._commands) if epoch else 0

    def _connect_commands(self, mark: bytes | None = None) -> None:
        """Write to those partitions of the command topic, too, that it has by now."""
        name = self._log.commands_topic
        try:
            partitions = self._connection.existing(name)
        except AccessDeniedError:
            raise
        except TrimtabError as error:
            raise JournalError(str(error)) from error
        for partition in range(len(self._commands), partitions):
            writer = FencedPartition(self._connection, name, partition, writer=f"trimtab-commands-{self._cluster}")
            writer.take_over(mark)
            self._commands.append(writer)

    def _complete(self, last: JournalEntry, end: JournalEnd) -> None:
        """Write those commands of the *last* entry that are not there."""
        missing = {command.id: command for command in last.decision.commands}
        # Usually all are found near the end.  Where one is not, the topic is read farther back, and at last whole.
        for starts in zip_longest(*(writer.windows(now_ms()) for writer in self._commands)):
            for writer, start in zip(self._commands, starts, strict=True):
                if missing and start is not None:
                    for record in writer.before(start):
                        missing.pop(_id(record.value), None)
        if missing:
            log.info("the last leader did not write %d of its commands: they are written now", len(missing))
        epoch, issued_at = end.properties.get(EPOCH, ""), end.properties.get(ISSUED_AT, "")
        self._issue(
            tuple(missing.values()),
            int(epoch) if epoch else end.epoch,
            int(issued_at) if issued_at else end.appended_ms,
        )

    def _tell(self, epoch: int) -> None:
        """*epoch* to those partitions of the command topic that do not know it, so that no lower one counts there."""
        event = epoch_event(self._cluster, epoch, now_ms())
        for writer in self._commands[self._told :]:
            writer.append(event)
        self._told = len(self._commands)

    def _issue(self, commands: tuple[Command, ...], epoch: int, issued_at_ms: int) -> None:
        for partition, writer in enumerate(self._commands):
            records = [
                (command_key(command), command_event(command, epoch, issued_at_ms))
                for command in commands
                if partition_of(command_key(command), len(self._commands)) == partition
            ]
            if records:
                writer.append_all(records)


def _epoch_of(record: LogRecord) -> int:
    """The epoch in the properties of *record*, whatever else it holds; 0 where it has none that can be read."""
    try:
        return number(record, EPOCH) or 0
    except DamagedJournalError:
        return 0


def _id(value: bytes) -> str:
    try:
        return str(read_object(value).get("id"))
    except WireError:
        return ""

"""The end of the log, newest first, for commands that show recent events; no decision depends on it."""

import heapq
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Final, Literal, NamedTuple, TypeAlias

from controller.adapters.network.calls import side_by_side
from controller.log.journal_reading import JournalReader, epoch_in
from controller.log.port import INTERVAL, Log, LogRecord, Position
from controller.model.decision import Decision
from controller.model.journal import JournalEntry
from controller.wire.journal import DecisionEntry, DeltaEntry, to_decision
from controller.wire.journal_records import BackwardsReader

#: Topics that are read backwards.
ReadTopic: TypeAlias = Literal["metrics", "results", "commands"]
#: Records that are read at once: at first, and at most; fewer where they are long.
_FIRST_WINDOW: Final = 64
_LARGEST_WINDOW: Final = 4_096
_BYTES: Final = 32 << 20
#: How long all partitions may take to give their newest records, seconds.
_PATIENCE_SECONDS: Final = 60.0
#: In every part of an entry that is too long for one record.
_PART: Final = b'"type":"part"'


class JournalTail(NamedTuple):
    """The newest decisions, newest first, and the newest leadership's number, 0 before the first."""

    decisions: tuple[Decision, ...]
    epoch: int


class LogTail:
    """The end of the log that *connect* opens, a new connection for each call.

    Every method may raise TrimtabError where the log cannot be read.
    """

    def __init__(self, connect: Callable[[], Log], *, cluster: str | None, endless: bool) -> None:
        """*cluster*: the cluster that the log must belong to; None: any.

        *endless*: whether it is too long to be read whole: a live log rather than a recording.
        """
        self._connect, self._cluster, self.endless = connect, cluster, endless

    @property
    def where(self) -> str:
        """Where the metrics are, for messages."""
        with closing(self._connect()) as log:
            return log.name("metrics")

    def backwards(self, topic: ReadTopic, texts: tuple[bytes, ...]) -> Iterator[bytes]:
        """The records of *topic* that have one of the texts *texts* in them, the newest first.  b"" is in each."""
        with closing(self._connect()) as log:
            for record in newest_first(log, topic):
                if any(text in record.value for text in texts):
                    yield record.value

    @property
    def missing_journal(self) -> str:
        """Where the journal would be; "" where there is one, also without entries."""
        with closing(self._connect()) as log:
            return "" if log.ends("journal") else log.name("journal")

    def journal_backwards(self) -> Iterator[bytes]:
        """The records of the journal, the newest first."""
        with self._journal() as journal:
            for record in journal.backwards():
                yield record.value

    def last_entry(self) -> JournalEntry | None:
        """The newest decision with the memory behind it; None before the first.  JournalError."""
        with self._journal() as journal:
            return journal.end().head.last

    def journal_tail(self, limit: int, about: bytes) -> JournalTail:
        """Those of the newest *limit* decisions that contain the text *about*.

        JournalError where an entry cannot be read.
        """
        decisions: list[Decision] = []
        epoch, looked = 0, 0
        reader = BackwardsReader()
        with self._journal() as journal:
            for raw in journal.backwards():
                epoch = epoch or epoch_in(raw.headers)
                if INTERVAL not in raw.headers:
                    continue  # a leadership
                if about in raw.value or _PART in raw.value:
                    whole = reader.read(raw.value, journal.place(raw))
                    if whole is None:
                        continue
                    if isinstance(whole.record, DecisionEntry | DeltaEntry) and about in whole.value:
                        decisions.append(to_decision(whole.record))
                looked += 1
                if looked == limit:
                    break
        return JournalTail(tuple(decisions), epoch)

    @contextmanager
    def _journal(self) -> Iterator[JournalReader]:
        with closing(self._connect()) as log:
            journal = JournalReader(log, self._cluster)
            journal.refuse_another()
            yield journal


def newest_first(log: Log, topic: ReadTopic) -> Iterator[LogRecord]:
    """The records of *topic*, from the present end backwards, by their append times.

    Reads windows whose size follows from how much is in them, so that a caller who stops soon reads little.
    """
    partitions = [each for each, ends in log.ends(topic).items() if ends.first < ends.end]
    # All partitions at once: the merge below begins with the newest record of each.
    calls = side_by_side(
        {each: partial(log.read_backwards, topic, each, None, _FIRST_WINDOW) for each in partitions}, _PATIENCE_SECONDS
    )
    parts = [_backwards(log, topic, each, calls[each].result()) for each in partitions]
    yield from heapq.merge(*parts, key=lambda record: -record.timestamp_ms)


def _backwards(log: Log, topic: ReadTopic, partition: int, window: Sequence[LogRecord]) -> Iterator[LogRecord]:
    size = _FIRST_WINDOW
    while window:
        before: Position = window[0].position
        length = sum(len(record.value) for record in window) // len(window) + 1
        yield from reversed(window)
        size = min(4 * size, _LARGEST_WINDOW, max(1, _BYTES // length))
        window = log.read_backwards(topic, partition, before, size)

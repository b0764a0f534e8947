"""A log in a folder, as each process that works on it opens it."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

from controller.log.commands import CommandLog
from controller.log.dead_letters import DeadLetterLog
from controller.log.files.log import FolderLog
from controller.log.inbox import Delivery, Inbox
from controller.log.journal import LogJournal
from controller.log.journal_reading import JournalReader
from controller.log.port import INTERVAL, LogRecord, Out
from controller.log.ticks import CollectorLog, MetricsLog
from controller.model.journal import JournalEntry
from controller.wire.journal_records import WHOLE_EVERY_MS
from tests.records import CLUSTER


def journal_in(folder: Path, *, cluster: str = CLUSTER, whole_every_ms: int = WHOLE_EVERY_MS) -> LogJournal:
    return LogJournal(FolderLog(folder, cluster=cluster), cluster=cluster, whole_every_ms=whole_every_ms)


def entries_in(folder: Path) -> Iterator[JournalEntry]:
    return JournalReader(FolderLog(folder, cluster=None), None).entries()


def metrics_in(folder: Path, *, cluster: str = CLUSTER) -> MetricsLog:
    return MetricsLog(FolderLog(folder, cluster=cluster), cluster=cluster)


def collector_in(folder: Path, *, cluster: str = CLUSTER) -> CollectorLog:
    return CollectorLog(FolderLog(folder, cluster=cluster), cluster=cluster)


def commands_in(folder: Path) -> CommandLog:
    return CommandLog(FolderLog(folder, cluster=None))


def letters_in(folder: Path) -> DeadLetterLog:
    return DeadLetterLog(FolderLog(folder, cluster=None))


class QuickInbox(Inbox):
    """Waits 20 ms at most for commands: in a folder they are there, or do not come during the test."""

    def poll(self, limit: int, timeout_seconds: float) -> list[Delivery]:
        return super().poll(limit, min(timeout_seconds, 0.02))


def inbox_in(folder: Path, *, cluster: str = CLUSTER) -> Inbox:
    return QuickInbox(FolderLog(folder, cluster=cluster), group="trimtab-executor", cluster=cluster)


def decisions_in(folder: Path) -> dict[int, LogRecord]:
    """Interval -> its record in the journal of the log in *folder*."""
    with closing(FolderLog(folder, cluster=None)) as log, closing(log.read("journal")) as reader:
        return {int(each.headers[INTERVAL]): each for each in reader.read_to_end() if INTERVAL in each.headers}


def file_of(folder: Path, interval: int) -> Path:
    """The file of the decision of *interval* in the journal of the log in *folder*."""
    log = FolderLog(folder, cluster=None)
    return Path(log.place("journal", 0, decisions_in(folder)[interval].position))


def lines_in(folder: Path) -> list[bytes]:
    """The lines of all files of the topic in *folder*, as people read them."""
    return [line for path in sorted(folder.glob("*.jsonl")) for line in path.read_bytes().splitlines()]


def issue(folder: Path, events: Iterable[bytes]) -> None:
    """Append *events* to the commands of the log in *folder*."""
    with closing(FolderLog(folder, cluster=CLUSTER)) as log:
        log.append([Out("commands", event) for event in events], within_seconds=1.0)

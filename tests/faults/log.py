"""What lies in the log of a site, read by somebody who only looks."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from controller.adapters.kafka.writer import Producer
from controller.aggregate.columns.rows import METRICS, RESULTS
from controller.log.files.log import FolderLog
from controller.log.journal_reading import EPOCH
from controller.log.port import LogRecord
from controller.model.errors import TrimtabError, WireError
from controller.model.journal import JournalEntry
from controller.settings.log import KafkaLogSettings
from controller.settings.trimtab_toml import Settings
from controller.wire import journal_records
from controller.wire.commands import CommandEvent, parse_event
from controller.wire.journal_records import EntryReader
from controller.wire.metrics import decode_metric
from controller.wire.results import Result, decode_result
from controller.wire.rows import Located
from tests.faults.clock import eventually
from tests.kafka_log import read_all

T = TypeVar("T")


class Decided(NamedTuple):
    """An entry of the journal."""

    entry: JournalEntry
    #: As it was written.
    value: bytes
    #: The leadership that wrote it; 0 where the log does not say.
    epoch: int
    #: Epoch ms.
    at_ms: int


class Answered(NamedTuple):
    """A result."""

    result: Result
    #: Epoch ms.
    at_ms: int


class SiteLog(Protocol):
    """The log of a site."""

    def decisions(self) -> list[Decided]:
        """All entries of the journal, in its order."""
        ...

    def events(self) -> list[list[CommandEvent]]:
        """The events of each partition of the commands, in its order."""
        ...

    def answers(self) -> list[Answered]:
        """All results."""
        ...

    def inputs(self) -> list[Located]:
        """All that decisions follow from."""
        ...

    def dead_letters(self) -> int:
        """How many there are."""
        ...


class KafkaSiteLog:
    """SiteLog on Kafka; what was read once is neither read nor decoded again: tests look every tenth of a second."""

    def __init__(self, settings: Settings) -> None:
        kafka = settings.log.kafka
        assert kafka is not None
        self._cluster, self._period_ms = settings.cluster.name, settings.intervals.period_ms
        self._kafka, shared = kafka, range(kafka.partitions)
        self._entries = EntryReader(self._cluster)
        self._letters: _Partition[None] = _Partition(kafka, kafka.dead_letters_topic, 0, lambda _: None)
        self._journal = _Partition(kafka, kafka.journal_topic, 0, self._decided)
        self._commands: list[_Partition[CommandEvent]] = [
            _Partition(kafka, kafka.commands_topic, each, _event) for each in shared
        ]
        self._metrics = [self._metrics_partition(each) for each in shared]
        self._results = [_Partition(kafka, kafka.results_topic, each, self._result) for each in shared]

    def decisions(self) -> list[Decided]:
        return self._journal.found()

    def _decided(self, record: LogRecord) -> Decided | None:
        read = self._entries.read(record.value)
        if not isinstance(read, journal_records.Decided):
            return None
        return Decided(read.entry, record.value, int(record.headers["epoch"]), record.timestamp_ms)

    def events(self) -> list[list[CommandEvent]]:
        return [each.found() for each in self._commands]

    def answers(self) -> list[Answered]:
        found = [each for partition in self._results for each in partition.found()]
        return [Answered(each.record, at_ms) for each, at_ms in found if isinstance(each.record, Result)]

    def _result(self, record: LogRecord) -> tuple[Located, int] | None:
        decoded = _decoded(RESULTS, record.value, self._cluster, self._period_ms, record.timestamp_ms)
        return None if decoded is None else (_located(RESULTS, record, decoded), record.timestamp_ms)

    def inputs(self) -> list[Located]:
        self._metrics += [
            self._metrics_partition(each) for each in range(len(self._metrics), self._partitions_of_metrics())
        ]
        metrics = [each for partition in self._metrics for each in partition.found()]
        return [*metrics, *(each for partition in self._results for each, _ in partition.found())]

    def _metric(self, record: LogRecord) -> Located | None:
        decoded = _decoded(METRICS, record.value, self._cluster, self._period_ms, record.timestamp_ms)
        return None if decoded is None else _located(METRICS, record, decoded)

    def _metrics_partition(self, partition: int) -> "_Partition[Located]":
        return _Partition(self._kafka, self._kafka.metrics_topic, partition, self._metric)

    def dead_letters(self) -> int:
        return self._letters.records()

    def _partitions_of_metrics(self) -> int:
        producer = Producer(self._kafka.bootstrap)
        return producer.partitions(self._kafka.metrics_topic)[self._kafka.metrics_topic]


class _Partition(Generic[T]):
    """What lies in a partition, as *decode* gives it; None for what is left out."""

    def __init__(
        self, settings: KafkaLogSettings, topic: str, partition: int, decode: Callable[[LogRecord], T | None]
    ) -> None:
        self._place = settings.bootstrap, topic, partition
        self._decode = decode
        self._after, self._records = 0, 0
        self._found: list[T] = []

    def found(self) -> list[T]:
        """All so far, in its order."""
        for record in _when_it_answers(lambda: list(read_all(*self._place, self._after))):
            self._after, self._records = record.position + 1, self._records + 1
            decoded = self._decode(record)
            if decoded is not None:
                self._found.append(decoded)
        return list(self._found)

    def records(self) -> int:
        """How many there are, whatever they are."""
        self.found()
        return self._records


class FolderSiteLog:
    """SiteLog on a folder."""

    def __init__(self, settings: Settings) -> None:
        assert settings.log.folder is not None
        self._folder = Path(settings.log.folder.path)
        self._cluster, self._period_ms = settings.cluster.name, settings.intervals.period_ms

    def decisions(self) -> list[Decided]:
        found, reader = [], EntryReader(self._cluster)
        log = FolderLog(self._folder, cluster=self._cluster)
        for record in log.read("journal").read_to_end():
            read = reader.read(record.value)
            if isinstance(read, journal_records.Decided):
                written_ms = Path(log.place("journal", 0, record.position)).stat().st_mtime_ns // 1_000_000
                found.append(Decided(read.entry, record.value, int(record.headers[EPOCH]), written_ms))
        return found

    def events(self) -> list[list[CommandEvent]]:
        return [_events(line for _, _, line in self._lines("commands"))]

    def answers(self) -> list[Answered]:
        found = []
        for path, _, line in self._lines("results"):
            result = decode_result(line, cluster=self._cluster, period_ms=self._period_ms)
            if isinstance(result, Result):
                found.append(Answered(result, path.stat().st_mtime_ns // 1_000_000))
        return found

    def inputs(self) -> list[Located]:
        found = []
        for source, name in ((METRICS, "metrics"), (RESULTS, "results")):
            for path, number, line in self._lines(name):
                decoded = _decoded(source, line, self._cluster, self._period_ms)
                if decoded is not None:
                    found.append(Located(source=source, partition=0, offset=number, file=path.name, record=decoded))
        return found

    def dead_letters(self) -> int:
        return sum(1 for _ in self._lines("dead_letters"))

    def _lines(self, name: str) -> Iterator[tuple[Path, int, bytes]]:
        for path in sorted((self._folder / name).glob("*.jsonl")):
            for number, line in enumerate(path.read_bytes().splitlines()):
                yield path, number, line


def _decoded(
    source: int, value: bytes, cluster: str, period_ms: int, append_time_ms: int | None = None
) -> object | None:
    """The record, or None for one that nobody can use: a dead letter."""
    decode = decode_metric if source == METRICS else decode_result
    try:
        return decode(value, cluster=cluster, period_ms=period_ms, append_time_ms=append_time_ms)
    except WireError:
        return None


def _located(source: int, record: LogRecord, decoded: Any) -> Located:
    return Located(source=source, partition=record.partition, offset=record.position, record=decoded)


def _event(record: LogRecord) -> CommandEvent | None:
    """The event in *record*; executors pass over what is none."""
    return next(iter(_events([record.value])), None)


def _events(values: Iterable[bytes]) -> list[CommandEvent]:
    """The events among *values*."""
    found = []
    for value in values:
        with suppress(WireError):
            found.append(parse_event(value))
    return found


def _when_it_answers(read: Callable[[], list[T]]) -> list[T]:
    """What *read* gives, once Kafka is there again."""
    found: list[list[T]] = []

    def answers() -> bool:
        try:
            found.append(read())
        except TrimtabError:
            return False
        return True

    eventually(answers, "Kafka answers")
    return found[0]

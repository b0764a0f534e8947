"""What lies in the log of a site, read by somebody who only looks."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from controller.adapters.kafka.reader import KafkaRecord, read_all
from controller.adapters.kafka.writer import Producer
from controller.aggregate.rows import METRICS, RESULTS
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
    """SiteLog on Kafka; what was read once is not read again."""

    def __init__(self, settings: Settings) -> None:
        kafka = settings.log.kafka
        assert kafka is not None
        self._cluster, self._period_ms = settings.cluster.name, settings.intervals.period_ms
        self._kafka, shared = kafka, range(kafka.partitions)
        self._letters = _Partition(kafka, kafka.dead_letters_topic, 0)
        self._journal = [_Partition(kafka, kafka.journal_topic, 0)]
        self._commands = [_Partition(kafka, kafka.commands_topic, each) for each in shared]
        self._metrics = [_Partition(kafka, kafka.metrics_topic, each) for each in shared]
        self._results = [_Partition(kafka, kafka.results_topic, each) for each in shared]

    def decisions(self) -> list[Decided]:
        return list(self._decisions())

    def _decisions(self) -> Iterator[Decided]:
        reader = EntryReader(self._cluster)
        for record in self._journal[0].records():
            read = reader.read(record.value)
            if isinstance(read, journal_records.Decided):
                yield Decided(read.entry, record.value, int(record.headers["epoch"]), record.timestamp_ms)

    def events(self) -> list[list[CommandEvent]]:
        return [_events(record.value for record in each.records()) for each in self._commands]

    def answers(self) -> list[Answered]:
        records = [record for each in self._results for record in each.records()]
        read = [(_decoded(RESULTS, each.value, self._cluster, self._period_ms), each) for each in records]
        return [Answered(result, each.timestamp_ms) for result, each in read if isinstance(result, Result)]

    def inputs(self) -> list[Located]:
        there = self._partitions_of_metrics()
        self._metrics += [
            _Partition(self._kafka, self._kafka.metrics_topic, each) for each in range(len(self._metrics), there)
        ]
        found = []
        for source, partitions in ((METRICS, self._metrics), (RESULTS, self._results)):
            for record in (record for each in partitions for record in each.records()):
                decoded = _decoded(source, record.value, self._cluster, self._period_ms, record.timestamp_ms)
                if decoded is not None:
                    at = Located(source=source, partition=record.partition, offset=record.offset, record=decoded)
                    found.append(at)
        return found

    def dead_letters(self) -> int:
        return len(self._letters.records())

    def _partitions_of_metrics(self) -> int:
        producer = Producer(self._kafka.bootstrap)
        return producer.partitions(self._kafka.metrics_topic)[self._kafka.metrics_topic]


class _Partition:
    def __init__(self, settings: KafkaLogSettings, topic: str, partition: int) -> None:
        self._place = settings.bootstrap, topic, partition
        self._records: list[KafkaRecord] = []

    def records(self) -> Sequence[KafkaRecord]:
        after = self._records[-1].offset + 1 if self._records else 0
        self._records += _when_it_answers(lambda: list(read_all(*self._place, after)))
        return self._records


class FolderSiteLog:
    """SiteLog on a folder."""

    def __init__(self, settings: Settings) -> None:
        assert settings.log.folder is not None
        self._folder = Path(settings.log.folder.path)
        self._cluster, self._period_ms = settings.cluster.name, settings.intervals.period_ms

    def decisions(self) -> list[Decided]:
        found, reader = [], EntryReader(self._cluster)
        for path in sorted((self._folder / "journal").glob("[0-9]*.json")):
            value = path.read_bytes()
            read = reader.read(value)
            assert isinstance(read, journal_records.Decided)
            found.append(Decided(read.entry, value, 0, path.stat().st_mtime_ns // 1_000_000))
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


def site_log(settings: Settings) -> SiteLog:
    return KafkaSiteLog(settings) if settings.log.kind == "kafka" else FolderSiteLog(settings)


def _decoded(
    source: int, value: bytes, cluster: str, period_ms: int, append_time_ms: int | None = None
) -> object | None:
    """The record, or None for one that nobody can use: a dead letter."""
    decode = decode_metric if source == METRICS else decode_result
    try:
        return decode(value, cluster=cluster, period_ms=period_ms, append_time_ms=append_time_ms)
    except WireError:
        return None


def _events(values: Iterable[bytes]) -> list[CommandEvent]:
    """The events among *values*; executors pass over what is none."""
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

"""What lies in the log of a site that has it in Pulsar, read by somebody who only looks."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.positions import number_of
from controller.adapters.pulsar.log.reader import MARK, LogRecord, PartitionReader
from controller.aggregate.columns.rows import METRICS, RESULTS
from controller.model.errors import WireError
from controller.settings.pulsar_log import PulsarLogSettings
from controller.settings.trimtab_toml import Settings
from controller.wire import journal_records
from controller.wire.commands import CommandEvent, parse_event
from controller.wire.journal_records import EntryReader
from controller.wire.metrics import decode_metric
from controller.wire.results import Result, decode_result
from controller.wire.rows import Located
from tests.faults.log import Answered, Decided

T = TypeVar("T")


class PulsarSiteLog:
    """SiteLog on Pulsar; what was read once is not read again."""

    def __init__(self, settings: Settings) -> None:
        log = settings.log.pulsar
        assert log is not None
        self._cluster, self._period_ms = settings.cluster.name, settings.intervals.period_ms
        self._connection, self._log = LogConnection(log), log
        self._entries = EntryReader(self._cluster)
        self._journal = self._partition(log.journal_topic, 0, self._decided)
        shared = range(log.partitions)
        self._commands: list[_Partition[CommandEvent]] = [
            self._partition(log.commands_topic, each, _event) for each in shared
        ]
        self._metrics = [self._partition(log.metrics_topic, each, self._metric) for each in shared]
        self._results = [self._partition(log.results_topic, each, self._result) for each in shared]
        self._letters = self._partition(log.dead_letters_topic, 0, lambda record: record)

    def decisions(self) -> list[Decided]:
        return self._journal.found()

    def events(self) -> list[list[CommandEvent]]:
        return [each.found() for each in self._commands]

    def answers(self) -> list[Answered]:
        found = [each for partition in self._results for each in partition.found()]
        return [Answered(each.record, at_ms) for each, at_ms in found if isinstance(each.record, Result)]

    def inputs(self) -> list[Located]:
        metrics = [each for partition in self._metrics for each in partition.found()]
        return [*metrics, *(each for partition in self._results for each, _ in partition.found())]

    def dead_letters(self) -> int:
        return len(self._letters.found())

    def close(self) -> None:
        self._connection.close()

    def _partition(self, name: str, partition: int, decode: Callable[[LogRecord], T | None]) -> "_Partition[T]":
        return _Partition(self._connection, name, partition, decode)

    def _decided(self, record: LogRecord) -> Decided | None:
        read = self._entries.read(record.value)
        if not isinstance(read, journal_records.Decided):
            return None
        return Decided(read.entry, record.value, int(record.properties["epoch"]), record.timestamp_ms)

    def _metric(self, record: LogRecord) -> Located | None:
        return self._located(METRICS, record, decode_metric)

    def _result(self, record: LogRecord) -> tuple[Located, int] | None:
        found = self._located(RESULTS, record, decode_result)
        return None if found is None else (found, record.timestamp_ms)

    def _located(self, source: int, record: LogRecord, decode: Any) -> Located | None:
        try:
            decoded = decode(
                record.value, cluster=self._cluster, period_ms=self._period_ms, append_time_ms=record.timestamp_ms
            )
        except WireError:
            return None
        offset = number_of(*record.place)
        return (
            None
            if decoded is None
            else Located(source=source, partition=record.partition, offset=offset, record=decoded)
        )


class _Partition(Generic[T]):
    """What lies in a partition, as *decode* gives it; None for what is left out."""

    def __init__(
        self, connection: LogConnection, name: str, partition: int, decode: Callable[[LogRecord], T | None]
    ) -> None:
        self._connection, self._name, self._number = connection, name, partition
        self._reader: PartitionReader | None = None
        self._decode = decode
        self._found: list[T] = []

    def found(self) -> list[T]:
        """All so far, in its order."""
        if self._reader is None and self._connection.partitions(self._name) > self._number:
            self._reader = PartitionReader(self._connection, self._name, self._number)
        for record in self._reader.rest() if self._reader is not None else ():
            decoded = None if MARK in record.properties else self._decode(record)
            if decoded is not None:
                self._found.append(decoded)
        return list(self._found)


def _event(record: LogRecord) -> CommandEvent | None:
    with suppress(WireError):
        return parse_event(record.value)
    return None


def log_section(log: PulsarLogSettings) -> str:
    """The lines of [log] for *log*."""
    urls = ", ".join(f'"{url}"' for url in log.admin_url)
    return (
        f'kind = "pulsar"\n[log.pulsar]\nservice_url = "{log.service_url}"\nadmin_url = [{urls}]\n'
        f'namespace = "{log.namespace}"\npartitions = {log.partitions}'
    )

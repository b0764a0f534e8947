"""What lies in the log of a site that has it in Pulsar, read by somebody who only looks."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from controller.aggregate.columns.rows import METRICS, RESULTS
from controller.log.port import LogRecord, LogTopic, Reader
from controller.log.pulsar.log import PulsarLog
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
        self._log = PulsarLog(log, cluster=self._cluster)
        self._entries = EntryReader(self._cluster)
        self._journal = _Partition(self._log, "journal", 0, self._decided)
        shared = range(log.partitions)
        self._commands = [_Partition[CommandEvent](self._log, "commands", each, _event) for each in shared]
        self._metrics = [_Partition(self._log, "metrics", each, self._metric) for each in shared]
        self._results = [_Partition(self._log, "results", each, self._result) for each in shared]
        self._letters = _Partition(self._log, "dead_letters", 0, lambda record: record)

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
        self._log.close()

    def _decided(self, record: LogRecord) -> Decided | None:
        read = self._entries.read(record.value)
        if not isinstance(read, journal_records.Decided):
            return None
        return Decided(read.entry, record.value, int(record.headers["epoch"]), record.timestamp_ms)

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
        if decoded is None:
            return None
        return Located(source=source, partition=record.partition, offset=record.position, record=decoded)


class _Partition(Generic[T]):
    """What lies in a partition, as *decode* gives it; None for what is left out."""

    def __init__(
        self, log: PulsarLog, topic: LogTopic, partition: int, decode: Callable[[LogRecord], T | None]
    ) -> None:
        self._log, self._topic, self._number, self._decode = log, topic, partition, decode
        self._reader: Reader | None = None
        self._found: list[T] = []

    def found(self) -> list[T]:
        """All so far, in its order."""
        if self._reader is None and self._number in self._log.ends(self._topic):
            self._reader = self._log.read(self._topic, partition=self._number)
        for record in self._reader.read_to_end() if self._reader is not None else ():
            decoded = self._decode(record)
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

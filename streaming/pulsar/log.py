"""A log in Pulsar, as Spark reads it: the driver's side of streaming.pulsar.source."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from controller.adapters.pulsar.log.client import topic_name
from controller.adapters.pulsar.log.gate_file import GateFile
from controller.aggregate.columns.rows import METRICS, RESULTS
from controller.aggregate.places import Span
from controller.log.pulsar.backlog import backlog
from controller.log.pulsar.log import PulsarLog
from controller.log.ticked import LogTickWatch
from controller.model.backlog import Backlog
from controller.model.errors import TrimtabError
from controller.settings.pulsar_log import PulsarLogSettings
from controller.settings.trimtab_toml import Settings
from streaming.batches.gate import Ticks
from streaming.pulsar.options import PulsarOptions
from streaming.pulsar.source import PULSAR, PulsarRecords
from streaming.spark.gateway import scratch_folder


class PulsarSource:
    """LogSource of a log in Pulsar."""

    files = False

    def __init__(self, log: PulsarLogSettings, settings: Settings) -> None:
        self._log, self._cluster = log, settings.cluster.name
        self._period_ms = settings.intervals.period_ms
        self._path: Path | None = None

    @property
    def topics(self) -> Mapping[int, str]:
        """See LogSource."""
        names = {METRICS: self._log.metrics_topic, RESULTS: self._log.results_topic}
        return {role: topic_name(self._log, name) for role, name in names.items()}

    def jars(self) -> Sequence[Path]:
        """See LogSource."""
        return ()

    def records(self, spark: SparkSession, max_offsets: int, now_ms: int) -> DataFrame:
        """See LogSource.  *max_offsets* counts entries: batches of messages, not messages."""
        start_ms, gate = self._log.start_ms(now_ms), self._gate_path()
        options = PulsarOptions(log=self._log, max_entries=max_offsets, start_ms=start_ms, gate=str(gate))
        return pulsar_records(spark, options)

    def again(self, spark: SparkSession, spans: Sequence[Span]) -> DataFrame:
        """See LogSource."""
        return pulsar_records_again(spark, self._log, spans)

    def ticks(self) -> Ticks:
        """See LogSource."""
        return LogTickWatch(lambda: PulsarLog(self._log, cluster=self._cluster), cluster=self._cluster)

    def open_gate(self, spark: SparkSession) -> None:  # noqa: ARG002
        """See LogSource."""
        GateFile(self._gate_path()).open()

    def peek(self, spark: SparkSession) -> None:
        """See LogSource."""
        self.again(spark, ()).collect()

    def backlog(self, read: Callable[[], Any], now_ms: int) -> Backlog | None:
        """See LogSource."""
        return backlog(self._log, cluster=self._cluster, period_ms=self._period_ms, read=read(), now_ms=now_ms)

    def refusal(self, error: str) -> TrimtabError | None:  # noqa: ARG002
        """See LogSource.  The source is in Python: its errors say it themselves."""
        return None

    def _gate_path(self) -> Path:
        """Of a file that all queries of this process wait at; created with the first one."""
        if self._path is None:
            folder = tempfile.mkdtemp(prefix="trimtab-gate-", dir=scratch_folder())
            self._path = Path(folder) / "gate"
            self._path.touch()
        return self._path


def pulsar_records(spark: SparkSession, options: PulsarOptions) -> DataFrame:
    """The records of the metrics and the result topic, as a stream."""
    spark.dataSource.register(PulsarRecords)
    return spark.readStream.format(PULSAR).options(**options.to_spark()).load()


def pulsar_records_again(spark: SparkSession, log: PulsarLogSettings, spans: Sequence[Span]) -> DataFrame:
    """The records of *spans*; less where retention has taken some."""
    spark.dataSource.register(PulsarRecords)
    options = PulsarOptions(log=log, spans=spans)
    return spark.read.format(PULSAR).options(**options.to_spark()).load()

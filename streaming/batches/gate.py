"""Starts a micro-batch when one is due, rather than whenever a record arrives.

Spark polls a source for its end to find new data.  Our sources (streaming/jvm/GatedKafka.java,
streaming/jvm/GatedFolder.java, streaming/pulsar/source.py) report none until the gate is opened; then they report data
until all has been read that was in the log.
"""

import time
from collections.abc import Callable
from typing import Any, Protocol

from pyspark.sql import SparkSession

from controller.aggregate.ticks.batch_times import BatchTimes

#: Spark's sources of Kafka and of files behind the gate.
GATED_KAFKA, GATED_FOLDER = "trimtab.GatedKafka", "trimtab.GatedFolder"


class Ticks(Protocol):
    """The ticks of a log, as they come."""

    @property
    def newest(self) -> int | None:
        """The newest interval that was ticked, epoch ms; None before the first."""
        ...

    def wait(self, seconds: float) -> None:
        """Return when a tick has come since the last call, or after *seconds*."""
        ...

    def close(self) -> None:
        """Stop reading."""
        ...


class BatchGate:
    """The gate of the query that decides."""

    def __init__(
        self, opens: Callable[[], None], ticks: Ticks, decided: Callable[[], int | None], period: float
    ) -> None:
        """*opens* opens it.  *decided*: the last interval decided, epoch ms.  *period*: of an interval, seconds."""
        self._opens, self._ticks, self._decided = opens, ticks, decided
        self._times = BatchTimes(period=period)

    def wait(self, seconds: float) -> None:
        """Let *seconds* pass, or less if a tick comes; then open the gate if a batch is due."""
        self._ticks.wait(seconds)
        if self._times.due(time.monotonic(), ticked=self._ticks.newest, decided=self._decided()):
            self._opens()


def open_gate(spark: SparkSession) -> None:
    """Let the query on GATED_KAFKA or GATED_FOLDER read all that lies in the log now."""
    jvm: Any = spark._jvm
    jvm.trimtab.Gate.open()

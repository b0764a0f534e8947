"""A controller in the test's process, on the Spark session that tests share: for what is not about a process's life."""

import threading
import time
from collections.abc import Callable

from pyspark.sql import SparkSession

from controller.adapters.metrics.controller import ControllerMetrics
from controller.settings.trimtab_toml import Settings
from streaming.assembly import Assembly
from streaming.supervisor import balance

_PATIENCE_SECONDS = 300.0


class _SharedSession(Assembly):
    """An assembly that starts no Spark of its own."""

    def __init__(self, settings: Settings, spark: SparkSession, metrics: ControllerMetrics) -> None:
        super().__init__(settings, metrics)
        self._spark = spark.newSession()
        self._spark.conf.set("spark.sql.shuffle.partitions", settings.spark.shuffle_partitions)
        # The controller stops its session at its end; this one lives on.
        vars(self._spark)["stop"] = lambda: None

    def session(self) -> SparkSession:
        return self._spark


def run_until(
    condition: Callable[[], bool], settings: Settings, spark: SparkSession, metrics: ControllerMetrics | None = None
) -> None:
    """Run a controller on *spark* until *condition* holds; what ends it before is raised."""
    deadline, reached = time.monotonic() + _PATIENCE_SECONDS, threading.Event()
    metrics = metrics or ControllerMetrics()

    def stop() -> bool:
        if condition():
            reached.set()
        return reached.is_set() or time.monotonic() > deadline

    balance(_SharedSession(settings, spark, metrics), metrics.health.beating(stop))
    assert reached.is_set(), f"not within {_PATIENCE_SECONDS:g} s"

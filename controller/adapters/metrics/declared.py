"""Metrics, each declared once with its meaning; docs/metrics.md is made from the declarations."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

#: The media type of ``DeclaredMetrics.page``.
PAGE_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4

#: Upper bounds of histograms, seconds: of work, and of delays after the begin or the end of an interval.
WORK_SECONDS: Final = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 120.0, 300.0)
DELAY_SECONDS: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 300.0, 600.0, 1800.0)

# Otherwise each counter and histogram has a second metric, with the time of its creation.
disable_created_metrics()  # type: ignore[no-untyped-call]


class DeclaredMetric(NamedTuple):
    """One metric, for people."""

    name: str
    #: counter, gauge or histogram.
    kind: str
    meaning: str
    labels: tuple[str, ...]


class DeclaredMetrics:
    """Metrics of one process, in a registry of their own.

    Labels have few values, known beforehand: names of topics, bundles and namespaces are never among them.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        #: In the order of the page.
        self.declared: list[DeclaredMetric] = []
        ProcessCollector(registry=self.registry)

    def counter(self, name: str, meaning: str, *labels: str) -> Counter:
        """Declare a counter; its *name* ends in _total."""
        return Counter(*self._declare(name, "counter", meaning, labels), registry=self.registry)

    def gauge(self, name: str, meaning: str, *labels: str) -> Gauge:
        """Declare a gauge."""
        return Gauge(*self._declare(name, "gauge", meaning, labels), registry=self.registry)

    def histogram(self, name: str, meaning: str, *labels: str, buckets: Sequence[float] = WORK_SECONDS) -> Histogram:
        """Declare a histogram with *buckets*, upper bounds in seconds."""
        declaration = self._declare(name, "histogram", meaning, labels)
        return Histogram(*declaration, registry=self.registry, buckets=buckets)

    def page(self) -> bytes:
        """All metrics with their values, in Prometheus' text format."""
        return generate_latest(self.registry)

    def _declare(self, name: str, kind: str, meaning: str, labels: tuple[str, ...]) -> tuple[str, str, tuple[str, ...]]:
        self.declared.append(DeclaredMetric(name, kind, meaning, labels))
        return name, meaning, labels

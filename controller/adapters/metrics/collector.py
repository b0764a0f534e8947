"""The metrics of ``trimtab collect``."""

from typing import ClassVar, Final

from controller.adapters.metrics.declared import DELAY_SECONDS
from controller.adapters.metrics.process import ProcessMetrics, ProcessWork
from controller.adapters.metrics.traces import ns
from controller.wire.process import Role

_MS: Final = 1000.0


class CollectorMetrics(ProcessMetrics):
    """The events that the collector's loop reports."""

    role: ClassVar[Role] = "collector"

    def __init__(self) -> None:
        super().__init__()
        self._sweep = self.histogram(
            "trimtab_broker_sweep_seconds", "From the request to a broker to its complete load; all brokers together."
        )
        self._sweeps = self.counter(
            "trimtab_broker_sweeps_total",
            "Brokers queried. `result`: answered, or failed (no answer in time).",
            "result",
        )
        self._answered, self._failed = self._sweeps.labels("answered"), self._sweeps.labels("failed")
        self._silent = self.gauge(
            "trimtab_silent_brokers",
            "Brokers that did not answer this collector's last query; the log names them.",
        )
        self._share = self.gauge("trimtab_collector_share", "Brokers that this collector queries.")
        self._members = self.gauge("trimtab_collectors", "Collectors of the cluster, as this one sees them.")
        self._leads = self.gauge("trimtab_collector_leads", "1 if this collector writes the ticks, else 0.")
        self._records = self.counter("trimtab_published_records_total", "Records written to the metrics log.")
        self._bytes = self.counter("trimtab_published_bytes_total", "Bytes of these records.")
        self._publish_errors = self.counter(
            "trimtab_publish_errors_total", "Attempts to write records to the metrics log that failed."
        )
        self._clock_ahead = self.gauge(
            "trimtab_clock_ahead_seconds",
            "How far this host's clock is ahead of the brokers' clocks (their median; below 0: behind). "
            "Beyond a sixth of the period, and 2 s, this collector ends no interval.",
        )
        self._last_tick = self.gauge(
            "trimtab_last_tick_timestamp_seconds", "T of the last tick that this process wrote; 0: none."
        )
        self._tick_delay = self.histogram(
            "trimtab_interval_sweep_seconds",
            "From T to the tick: how long the sweep of the whole cluster took. Only in the collector that leads.",
            buckets=DELAY_SECONDS,
        )
        self._roster = self.gauge(
            "trimtab_interval_brokers", "Active brokers of the last tick, by whether their sweep is complete.", "sweep"
        )

    def grouped(self, *, members: int, share: int, leads: bool) -> None:
        """The group of collectors as it is now."""
        self._members.set(members)
        self._share.set(share)
        self._leads.set(leads)
        self.work = ProcessWork(leads=leads, brokers=share)
        if not share and not leads:
            self.health.ready("stands by: other collectors ask all brokers")

    def swept(self, seconds: float) -> None:
        """A broker returned its load after *seconds*."""
        self._sweep.observe(seconds)
        self._answered.inc()

    def no_sweep(self) -> None:
        """A broker returned no load."""
        self._failed.inc()

    def clock_ahead(self, seconds: float) -> None:
        """So far this host's clock is ahead of the brokers'."""
        self._clock_ahead.set(seconds)

    def silent(self, brokers: int) -> None:
        """So many brokers did not answer when they were asked last."""
        self._silent.set(brokers)

    def published(self, *, sweeps: int, records: int, size: int) -> None:
        """*sweeps* of brokers and what else there was, *records* of *size* bytes together, were written to the log."""
        self._records.inc(records)
        self._bytes.inc(size)
        if sweeps:
            self.health.ready("collects: its last sweeps were published")

    def not_published(self, *, sweeps: bool) -> None:
        """The log refused *sweeps*, or what else there was, or could not be written to."""
        self._publish_errors.inc()
        if sweeps:
            self.health.not_ready("its sweeps cannot be published; its log says why")

    def ticked(self, interval: int, now_ms: float, *, brokers: int, silent: int) -> None:
        """The tick of *interval*, epoch ms, was just written: *silent* of *brokers* are without a sweep."""
        self._last_tick.set(interval / _MS)
        self._tick_delay.observe(max(0.0, (now_ms - interval) / _MS))
        self._roster.labels("complete").set(brokers - silent)
        self._roster.labels("missing").set(silent)
        facts = {"trimtab.brokers": brokers, "trimtab.silent_brokers": silent}
        self.traces.add(interval, "sweep", ns(interval), ns(now_ms), facts)

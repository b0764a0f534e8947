"""The metrics that all processes have."""

import math
import time
from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Literal, NamedTuple

from controller.adapters.expiry import ExpiringFile
from controller.adapters.metrics.declared import DeclaredMetrics
from controller.adapters.metrics.health import ProcessHealth
from controller.adapters.metrics.traces import Traces
from controller.adapters.network.deadline import Clock
from controller.adapters.outages import OutageWatch, Part
from controller.wire.process import Role


class ProcessWork(NamedTuple):
    """What a process has to do, as the registry shows it; see ``controller.wire.process``."""

    leads: bool = False
    brokers: int | None = None
    partitions: int | None = None


class ProcessMetrics(DeclaredMetrics):
    """Metrics and readiness of one process; a subclass has those of its role."""

    #: Controller, collector or executor; or the page's server, which does not register itself.
    role: ClassVar[Role | Literal["web"]]

    def __init__(self, clock: Clock = time.monotonic) -> None:
        super().__init__()
        self.health = ProcessHealth(clock)
        #: One value: another thread reads it.
        self.work = ProcessWork()
        #: Takes the spans of intervals; by default nowhere.
        self.traces = Traces()
        self._info = self.gauge(
            "trimtab_info", "Always 1. The labels say which process this is.", "role", "cluster", "version"
        )
        self._period = self.gauge("trimtab_period_seconds", "Length of an interval: `intervals.period_seconds`.")
        self._ready = self.gauge("trimtab_ready", "1 if /readyz answers 200, else 0.")
        self._ready.set_function(lambda: float(self.health.now[0]))
        self._reachable = self.gauge(
            "trimtab_reachable",
            "1 if the server answered at the last check, at most a few seconds ago, else 0. `part`: log "
            "(Kafka, Pulsar),"
            " election (ZooKeeper), brokers (Pulsar's admin API). A part that is not a server has no series.",
            "part",
        )
        self._expiry = self.gauge(
            "trimtab_credential_expiry_timestamp_seconds",
            "When a token or certificate in a file expires, seconds since 1970. `section` and `key` name it in"
            " trimtab.toml. A file without an expiry has the value NaN.",
            "section",
            "key",
        )

    def tell(self, *, cluster: str, version: str, period_seconds: int, stalled_after_seconds: float) -> None:
        """Show which process this is; it is dead if its main loop takes *stalled_after_seconds*."""
        self._info.labels(self.role, cluster, version).set(1)
        self._period.set(period_seconds)
        self.health.limit_standstill(stalled_after_seconds)

    def show_expiry_of(self, files: Sequence[ExpiringFile]) -> None:
        """From now on show when the credentials in *files* expire; they are read anew when somebody asks."""
        for each in files:
            self._expiry.labels(each.section, each.key).set_function(partial(_expires_at, each))

    def trace_to(self, endpoint: str, *, cluster: str, version: str) -> None:
        """From now on send spans to *endpoint*; "": to nobody."""
        self.traces = Traces(endpoint, cluster=cluster, role=self.role, version=version)

    def waits_for_servers(self, watch: OutageWatch) -> None:
        """The process waits until it can reach what it needs; from now on show which servers *watch* can reach."""
        self.health.not_ready("it waits until the servers that it needs answer; its log names those that do not")
        for part in watch.parts:
            self._reachable.labels(part.value).set_function(partial(_reaches, watch, part))

    def begins(self) -> None:
        """The process can reach what it needs, and begins its work."""
        self.health.not_ready("it begins its work")


def _expires_at(file: ExpiringFile) -> float:
    expiry = file.expires_at()
    return math.nan if expiry is None else expiry


def _reaches(watch: OutageWatch, part: Part) -> float:
    return float(not watch.is_away(part))

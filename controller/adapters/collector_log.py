"""What a log can do for collectors: take sweeps and states from all of them, and ticks from one at a time."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from controller.adapters.folder.log import FolderMetricsLog
from controller.adapters.kafka.ticks import KafkaCollectorLog
from controller.settings.log import LogInKafka
from controller.settings.trimtab_toml import Settings
from controller.wire.chunks import Arrived, Record, glance


class CollectorLog(Protocol):
    """The metrics topic as collectors see it.  Used from one thread.

    Every failure is a TrimtabError; after one the log can be used on, and nothing is written later by itself.
    """

    def publish(self, records: Iterable[Record], within_seconds: float) -> None:
        """Append *records* to the metrics topic; returns when all are there, fails when that takes longer."""
        ...

    def lead(self, since_ms: int) -> None:
        """Begin to write the ticks.  Whoever wrote them before is fenced: no tick of its own comes after this.

        ``arrived`` then begins with what was appended at *since_ms* or later.  LogOfflineError where ticks could not
        be written now.
        """
        ...

    def arrived(self) -> Iterator[Arrived]:
        """The sweeps and ticks that came since the last call, in the log's order; the first time, up to its end.

        To be read to its end; nothing is kept of what was read.
        """
        ...

    def tick(self, interval: int, roster: Mapping[str, str | None]) -> None:
        """End *interval* in all partitions of the metrics and result topics, or in none.

        LeadershipLostError where another one leads by now; LogOfflineError where a partition of them is offline.
        """
        ...

    def follow(self) -> None:
        """Write no more ticks, until ``lead``."""
        ...

    def close(self) -> None:
        """End all connections."""
        ...


class FolderCollectorLog:
    """CollectorLog on a folder: its lock lets one collector in, so what it wrote itself is all that arrives."""

    def __init__(self, folder: Path, *, cluster: str) -> None:
        self._folder, self._cluster = folder, cluster
        self._log = FolderMetricsLog(folder, cluster=cluster)
        self._metrics = folder / "metrics"
        self._arrived: list[Arrived] = []

    def publish(self, records: Iterable[Record], within_seconds: float) -> None:  # noqa: ARG002
        """See CollectorLog."""
        records = list(records)
        self._log.publish(records)
        self._arrived += [Arrived(head, None) for _, value in records if (head := glance(value)) is not None]

    def lead(self, since_ms: int) -> None:  # noqa: ARG002
        """See CollectorLog.  The newest files are enough: they begin with the last tick."""
        self._log = FolderMetricsLog(self._folder, cluster=self._cluster)  # others may have written since
        newest = max((path.name.partition("-")[0] for path in self._metrics.glob("*.jsonl")), default="")
        files = sorted(self._metrics.glob(f"{newest}-*.jsonl")) if newest else []
        lines = (line for path in files for line in path.read_bytes().splitlines())
        self._arrived = [Arrived(head, None) for line in lines if (head := glance(line)) is not None]

    def arrived(self) -> Iterator[Arrived]:
        """See CollectorLog."""
        arrived, self._arrived = self._arrived, []
        yield from arrived

    def tick(self, interval: int, roster: Mapping[str, str | None]) -> None:
        """See CollectorLog."""
        self._log.tick(interval, roster)

    def follow(self) -> None:
        """See CollectorLog."""

    def close(self) -> None:
        """See CollectorLog."""


def collector_log(settings: Settings) -> CollectorLog:
    """The log that *settings* name."""
    if isinstance(settings.log, LogInKafka):
        return KafkaCollectorLog(settings.log.kafka, cluster=settings.cluster.name)
    return FolderCollectorLog(Path(settings.log.folder.path), cluster=settings.cluster.name)

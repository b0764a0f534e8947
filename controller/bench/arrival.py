"""What a running controller costs: ``trimtab run`` as it is, while the sweeps of each interval come one by one.

Production's records come so: collectors spread their sweeps over half a period, then they end the interval.  The
process and all that it starts are looked at from outside: processor time and memory in /proc, the delay of a decision
in the journal, the state that Spark writes to the checkpoint, and the stages of its batches in Spark's event log, which
production does not write.

Left out: the brokers, collectors and executors, and the work of Kafka, which runs on this machine, too.  The records
are made and sent by this process: it and Kafka take processor time from the controller, and a delay is rather too long
than too short.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Final

from controller.adapters.kafka.specs import create_topics
from controller.adapters.process.process_tree import Usage, usage
from controller.bench.logs import InKafka
from controller.bench.stages import event_log, read_stages
from controller.lab.processes import Processes
from controller.log.kafka.log import KafkaLog
from controller.log.port import Reader
from controller.log.ticks import MetricsLog
from controller.model.errors import TrimtabError
from controller.settings.log import KafkaLogSettings
from controller.settings.trimtab_toml import Settings, read_settings
from controller.simulator.cluster import ClusterShape, ModelledCluster, ModelledSweep
from controller.simulator.encode import FORMS, KeyValue, namespace_record, topic_records
from controller.wire.answers.bench import ArrivalAnswer, StagesAnswer
from controller.wire.journal_records import Decided, EntryReader

#: Not that of controller.bench.pipeline: both may run on one Kafka, and a cluster has one journal.
_CLUSTER: Final = "arrival"
#: Intervals that are not counted: the JVM compiles what is hot while they run.
WARM_UP: Final = 4
#: Sweeps are published in so many parts.
_PARTS: Final = 100
#: How long the controller is left alone at the end.
_IDLE_SECONDS: Final = 30.0
_DECIDED_SECONDS: Final = 180.0
_LEADS: Final = "reads the log"
#: Where Spark logs its events.
_EVENTS: Final = "events"
_CONF: Final = """
[cluster]
name = "{cluster}"
broker_conf = "broker.conf"
[intervals]
period_seconds = {period}
[log]
kind = "kafka"
[log.kafka]
bootstrap = "{bootstrap}"
partitions = {partitions}
metrics_topic = "arrival-{form}-metrics"
results_topic = "arrival-{form}-results"
commands_topic = "arrival-{form}-commands"
journal_topic = "arrival-{form}-journal"
dead_letters_topic = "arrival-{form}-dead-letters"
summaries_topic = "arrival-{form}-summaries"
[election]
kind = "file"
path = "election"
[checkpoint]
path = "checkpoint"
[decisions]
mode = "active"
[spark]
master = "{master}"
[spark.conf]
{spark_conf}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """One interval."""

    cpu_seconds: float
    delay_seconds: float
    state_bytes: int
    resident_bytes: int


def arrival(
    form: str,
    shape: ClusterShape,
    server: InKafka,
    folder: Path,
    *,
    period_seconds: int,
    master: str,
    partitions: int,
    runs: int,
    report: Callable[[str], None],
) -> ArrivalAnswer:
    """Measure *form*, one of FORMS, over *runs* intervals after those to warm up, in a log on *server*.

    *master*: Spark's; *partitions*: of the topics.  State and logs lie in *folder*.  Raises TrimtabError where the
    controller ends, or does not decide.
    """
    settings, conf = _settings(form, server.bootstrap, folder, period_seconds, master, partitions)
    kafka = settings.log.kafka
    assert kafka is not None
    create_topics(kafka)
    with Processes(conf, folder) as processes, _journal(kafka) as decisions:
        processes.start("run")
        processes.wait_for("run", _LEADS)
        site = _Site(form, shape, settings, folder, processes, decisions)
        measured, warm_ms = [], 0
        for run in range(WARM_UP + runs):
            warm_ms = time.time_ns() // 1_000_000 if run == WARM_UP else warm_ms
            one = site.interval()
            warm = "" if run >= WARM_UP else " (to warm up)"
            report(
                f"{form}: interval {run + 1}{warm}: {one.cpu_seconds:.1f} s of CPU, decided {one.delay_seconds:.1f} s"
                f" after the tick, {one.state_bytes / 1e6:.1f} MB of state, {one.resident_bytes / 1e6:,.0f} MB held"
            )
            measured.append(one)
        idle_cores = site.idle_cores(_IDLE_SECONDS)
        # Not before: Spark logs a batch some time after its end, later on a busy machine.
        stages = read_stages(folder / _EVENTS, warm_ms, runs)
        return _figures(form, shape, period_seconds, measured[WARM_UP:], stages, idle_cores)


class _Site:
    """A modelled cluster whose sweeps come as time passes, and the controller that reads them."""

    def __init__(
        self,
        form: str,
        shape: ClusterShape,
        settings: Settings,
        folder: Path,
        processes: Processes,
        decisions: Iterator[int | None],
    ) -> None:
        kafka = settings.log.kafka
        assert kafka is not None
        self._records, self._swept = FORMS[form], FORMS[form] is not topic_records
        self._cluster = ModelledCluster(shape, seed=1, name=_CLUSTER)
        self._metrics = MetricsLog(KafkaLog(kafka, cluster=_CLUSTER), cluster=_CLUSTER)
        self._metrics.publish(namespace_record(_CLUSTER, state) for state in self._cluster.changed_namespaces())
        self._period = settings.intervals.period_seconds
        self._processes, self._decisions = processes, decisions
        self._state = _State(folder / "checkpoint")
        #: The last interval, epoch seconds.
        self._last = 0

    def interval(self) -> _Measured:
        """Let an interval pass: its sweeps over half of it, its tick, its decision, and the rest of its time."""
        begins = self._next_interval()
        interval = begins * 1000
        sweeps = list(self._cluster.sweeps(interval))
        parts = _parts([list(self._records(sweep)) for sweep in sweeps])
        self._sleep_until(begins)
        before = self._usage()
        for nth, part in enumerate(parts):
            self._sleep_until(begins + nth * self._period / 2 / len(parts))
            self._metrics.publish(part)
        self._metrics.tick(interval, {sweep.broker: _sweep_id(sweep, swept=self._swept) for sweep in sweeps})
        delay = self._wait_for_decision(interval, time.monotonic())
        self._sleep_until(begins + self._period - 1)
        after = self._usage()
        self._cluster.advance()
        return _Measured(
            cpu_seconds=after.cpu_seconds - before.cpu_seconds,
            delay_seconds=delay,
            state_bytes=self._state.written(),
            resident_bytes=after.resident_bytes,
        )

    def idle_cores(self, seconds: float) -> float:
        """The cores that the controller takes while nothing comes."""
        before, began = self._usage(), time.monotonic()
        time.sleep(seconds)
        return (self._usage().cpu_seconds - before.cpu_seconds) / (time.monotonic() - began)

    def _next_interval(self) -> int:
        """The first interval that has not begun, epoch seconds."""
        self._last = max(self._last, int(time.time()) // self._period * self._period) + self._period
        return self._last

    def _sleep_until(self, at: float) -> None:
        self._processes.check()
        time.sleep(max(0.0, at - time.time()))

    def _usage(self) -> Usage:
        return usage(self._processes.pid("run"))

    def _wait_for_decision(self, interval: int, ticked: float) -> float:
        for decided in self._decisions:
            if decided is not None and decided >= interval:
                break
            self._processes.check()
            if time.monotonic() - ticked > _DECIDED_SECONDS:
                raise TrimtabError(f"interval {interval} is not decided {_DECIDED_SECONDS:g} s after its tick")
        return time.monotonic() - ticked


class _State:
    """The files of the state below a checkpoint; those that Spark has deleted before they are seen are not counted."""

    def __init__(self, checkpoint: Path) -> None:
        self._checkpoint = checkpoint
        self._known_files: set[Path] = set()

    def written(self) -> int:
        """Bytes of the files that have come since the last call."""
        there = {path for path in self._checkpoint.glob("*/state/**/*") if path.is_file()}
        new, self._known_files = there - self._known_files, there
        return sum(path.stat().st_size for path in new if path.exists())


def _parts(records: Sequence[Sequence[KeyValue]]) -> list[list[KeyValue]]:
    """The brokers' *records* in at most _PARTS parts, in their order."""
    count = min(_PARTS, len(records))
    bounds = [len(records) * nth // count for nth in range(count + 1)]
    return [list(chain.from_iterable(records[lo:hi])) for lo, hi in pairwise(bounds)]


def _sweep_id(sweep: ModelledSweep, *, swept: bool) -> str | None:
    return sweep.sweep_id if swept else None


@contextmanager
def _journal(kafka: KafkaLogSettings) -> Iterator[Iterator[int | None]]:
    """The intervals that are decided, epoch ms; None where none was for a moment."""
    with closing(KafkaLog(kafka, cluster=_CLUSTER)) as log, closing(log.read("journal")) as reader:
        yield _decided(reader)


def _decided(reader: Reader) -> Iterator[int | None]:
    entries = EntryReader(_CLUSTER)
    while True:
        record = reader.next(0.2)
        read = None if record is None else entries.read(record.value)
        yield read.entry.interval if isinstance(read, Decided) else None


def _settings(
    form: str, bootstrap: str, folder: Path, period_seconds: int, master: str, partitions: int
) -> tuple[Settings, Path]:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "broker.conf").touch()
    conf = folder / "trimtab.toml"
    text = _CONF.format(
        cluster=_CLUSTER,
        period=period_seconds,
        bootstrap=bootstrap,
        partitions=partitions,
        form=form,
        master=master,
        spark_conf="\n".join(f'"{name}" = "{value}"' for name, value in event_log(folder / _EVENTS).items()),
    )
    conf.write_text(text, encoding="utf-8")
    return read_settings(conf), conf


def _figures(
    form: str,
    shape: ClusterShape,
    period_seconds: int,
    measured: Sequence[_Measured],
    stages: StagesAnswer,
    idle_cores: float,
) -> ArrivalAnswer:
    cpu, delays = [one.cpu_seconds for one in measured], [one.delay_seconds for one in measured]
    return ArrivalAnswer(
        form=form,
        topics=shape.topics,
        bundles=shape.bundles,
        brokers=shape.brokers,
        period_seconds=period_seconds,
        intervals=len(measured),
        cpu_seconds=round(statistics.median(cpu), 2),
        lowest_cpu_seconds=round(min(cpu), 2),
        highest_cpu_seconds=round(max(cpu), 2),
        delay_seconds=round(statistics.median(delays), 2),
        longest_delay_seconds=round(max(delays), 2),
        state_megabytes=round(statistics.median(one.state_bytes for one in measured) / 1e6, 3),
        resident_megabytes=round(max(one.resident_bytes for one in measured) / 1e6),
        growth_megabytes=round(_growth([one.resident_bytes for one in measured]) / 1e6),
        idle_cores=round(idle_cores, 3),
        stages=stages,
    )


def _growth(values: Sequence[int]) -> float:
    """How much higher the last fifth of *values* is than the first, medians; 0 where there are fewer than five."""
    fifth = len(values) // 5
    return statistics.median(values[-fifth:]) - statistics.median(values[:fifth]) if fifth else 0.0

"""``trimtab collect``: sweep the brokers and publish the tick that ends each interval."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from controller.adapters.metrics.collector import CollectorMetrics
from controller.adapters.network.calls import side_by_side
from controller.adapters.network.tls import tls_of
from controller.adapters.outages import Part
from controller.adapters.process import signals
from controller.adapters.process.open_files import open_at_most
from controller.adapters.pulsar.access import credentials_of, pulsar_admin
from controller.adapters.pulsar.load_data import PulsarLoadData
from controller.adapters.zookeeper.access import metadata_access
from controller.adapters.zookeeper.pulsar_metadata import PulsarMetadata
from controller.cli.shared.console import DEFAULT_CONF, Conf, start_logging
from controller.cli.shared.log_format import LogFormat, LogFormatOption
from controller.cli.shared.metrics_address import MetricsAddress, served
from controller.cli.shared.starting import started
from controller.collector.balancing_reader import read_broker_settings
from controller.collector.cluster_state import ClusterState
from controller.collector.loop import PUBLISH_SHARE, BrokerAccess, Collector
from controller.collector.reports import SweepName
from controller.collector.states import broker_state
from controller.collector.summary import summary
from controller.collector.sweeper import Sweeper, Swept
from controller.log.elections import election_system
from controller.log.factory import log_system
from controller.model.errors import SettingsError
from controller.settings.capacity import CapacityOverrides, read_capacity_overrides
from controller.settings.trimtab_toml import PulsarSettings, Settings, read_settings
from controller.wire.answers.status import CollectAnswer
from controller.wire.chunks import FORMS

#: The number of brokers whose connections stay open between intervals.
_HOSTS: Final = 1024
#: What may be open for each of them: its connection, and as much for brokers that are silent, for the log and the rest.
_OPEN_FOR_EACH: Final = 4
#: Key of the call that reads the cluster's state; no broker has this name.
_STATE: Final = "cluster state"
_SETTINGS: Final = "settings of "


def collect(
    conf: Conf = DEFAULT_CONF,
    once: Annotated[bool, typer.Option("--once", help="Stop after one interval.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Sweep all brokers once, publish nothing, print docs/schemas/answer.collect.json."
        ),
    ] = False,
    metrics: MetricsAddress = "",
    log_format: LogFormatOption = LogFormat.TEXT,
) -> None:
    """Sweep the brokers every interval until SIGTERM or Ctrl-C.  Several collectors divide the brokers among them."""
    start_logging("kazoo", form=log_format)
    settings = read_settings(conf)
    role_metrics = CollectorMetrics()
    # Beside a collector that runs, one interval or a dry run must not want its address.
    with nullcontext() if once or dry_run else served(role_metrics, settings, metrics):
        signals.run_until_told(lambda ending: _run(settings, ending, role_metrics, once=once, dry_run=dry_run))


def _run(settings: Settings, until: threading.Event, metrics: CollectorMetrics, *, once: bool, dry_run: bool) -> None:
    if settings.pulsar is None:
        raise SettingsError("trimtab collect needs the brokers' admin API: add a section [pulsar] with admin_url")
    # A dry run should answer at once, even with "the brokers cannot be reached"; a service waits.
    needed = () if dry_run else (Part.LOG, Part.ELECTION, Part.BROKERS)
    stop = metrics.health.beating(until.is_set)
    with started(settings, stop, *needed, metrics=metrics, is_listed=not dry_run) as watch:
        if watch is None:
            return
        with _broker_access(settings, settings.pulsar) as access:
            if dry_run:
                typer.echo(_summary(settings, access).model_dump_json(by_alias=True, indent=2))
            else:
                _collect(settings, access, until, metrics, once=once)


def _collect(
    settings: Settings, access: BrokerAccess, until: threading.Event, metrics: CollectorMetrics, *, once: bool
) -> None:
    with ExitStack() as joined:
        group = election_system(settings).collectors()
        joined.callback(group.leave)
        collector_log = joined.enter_context(closing(log_system(settings).collectors()))
        Collector(
            cluster=settings.cluster.name,
            period_ms=settings.intervals.period_ms,
            settings=settings.collector,
            log=collector_log,
            group=group,
            brokers=access,
            metrics=metrics,
        ).run(until, once=once)


@contextmanager
def _broker_access(settings: Settings, pulsar: PulsarSettings) -> Iterator[BrokerAccess]:
    own = settings.collector
    # An answer after the time to publish would come too late.
    timeout = min(own.timeout_seconds, PUBLISH_SHARE * _deadline_seconds(settings))
    overrides = read_capacity_overrides(Path(own.capacity_overrides)) if own.capacity_overrides else CapacityOverrides()
    hosts = open_at_most(_HOSTS * _OPEN_FOR_EACH) // _OPEN_FOR_EACH
    with ExitStack() as stack:
        admin = stack.enter_context(
            closing(pulsar_admin(settings, answer_seconds=timeout, hosts=hosts, at_once=own.max_concurrent))
        )
        stored = stack.enter_context(closing(PulsarMetadata(metadata_access(own)))) if own.zookeeper else None
        if stored is None:
            logging.getLogger(__name__).info("zookeeper in [collector] is not set: stored averages are not collected")
        load_data = PulsarLoadData(
            lambda: own.service_url or admin.service_url(), credentials_of(pulsar), tls_of(pulsar.tls)
        )
        stack.callback(load_data.close)
        sweeper = Sweeper(admin, overrides, load_data, form=FORMS[settings.log.sweeps], timeout_seconds=timeout)
        publish_seconds = PUBLISH_SHARE * _deadline_seconds(settings)
        state = ClusterState(admin, settings.cluster.name, stored, own.max_concurrent, publish_seconds)
        yield BrokerAccess(sweeper, state, overrides, admin.clocks)


def _deadline_seconds(settings: Settings) -> float:
    """Seconds after T at which the interval ends."""
    return settings.collector.deadline_share * settings.intervals.period_seconds


def _summary(settings: Settings, access: BrokerAccess) -> CollectAnswer:
    cluster, period_ms = settings.cluster.name, settings.intervals.period_ms
    now_ms = time.time_ns() // 1_000_000
    interval = now_ms // period_ms * period_ms
    brokers = access.state.admin.brokers()
    names = {
        broker: SweepName(cluster=cluster, broker=broker, interval=interval, sweep_id=f"{broker}@{interval}")
        for broker in brokers
    }
    work: dict[str, Callable[[], Any]] = {
        broker: partial(access.sweeper.sweep, name, now_ms) for broker, name in names.items()
    }
    work |= {_SETTINGS + broker: partial(read_broker_settings, access.state.admin, broker) for broker in brokers}
    work[_STATE] = lambda: (access.state.read(interval, whole=True), access.state.domains())
    calls = side_by_side(work, at_once=settings.collector.max_concurrent + 1)
    reading, domains = calls.pop(_STATE).result()
    # None of a broker that does not say.
    settings_of = {broker: calls.pop(_SETTINGS + broker).value for broker in brokers}
    swept: dict[str, Swept] = {broker: call.value for broker, call in calls.items() if call.error is None}
    missing = {broker: str(call.error) for broker, call in calls.items() if call.error is not None}
    known = [
        broker_state(
            cluster,
            broker,
            swept[broker].report,
            version=interval,
            failure_domain=domains.get(broker),
            capacity=access.overrides.of(broker),
            settings=settings_of[broker],
            leads=broker == reading.leader,
        )
        for broker in sorted(swept)
    ]
    ordered = [swept[broker] for broker in sorted(swept)]
    return summary(interval, ordered, dict(sorted(missing.items())), [*reading.states, *known], leader=reading.leader)

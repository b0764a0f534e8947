"""``trimtab execute``: execute the commands on a real Pulsar cluster."""

import logging
import threading
from collections.abc import Callable
from typing import Final

from controller.adapters.metrics.executor import ExecutorMetrics
from controller.adapters.outages import Part
from controller.adapters.process import signals
from controller.adapters.pulsar.access import pulsar_admin
from controller.adapters.pulsar.admin import PulsarAdmin
from controller.cli.shared.console import DEFAULT_CONF, Conf, start_logging
from controller.cli.shared.log_format import LogFormat, LogFormatOption
from controller.cli.shared.metrics_address import MetricsAddress, served
from controller.cli.shared.starting import started
from controller.executor.attempt import PulsarTarget
from controller.executor.loop import Executor
from controller.log.factory import log_system
from controller.model.errors import AccessDeniedError, TrimtabError
from controller.settings.trimtab_toml import Settings, read_settings

log = logging.getLogger(__name__)

_AGAIN_SECONDS: Final = 5.0


def execute(
    conf: Conf = DEFAULT_CONF,
    metrics: MetricsAddress = "",
    log_format: LogFormatOption = LogFormat.TEXT,
) -> None:
    """Execute the commands on the cluster until SIGTERM or Ctrl-C.  Several executors share the commands."""
    start_logging(form=log_format)
    settings = read_settings(conf)
    admin, role_metrics = pulsar_admin(settings), ExecutorMetrics()
    try:
        with served(role_metrics, settings, metrics):
            signals.run_until_told(lambda ending: _execute(settings, admin, ending, role_metrics))
    finally:
        admin.close()


def _execute(settings: Settings, admin: PulsarAdmin, until: threading.Event, metrics: ExecutorMetrics) -> None:
    stop = metrics.health.beating(until.is_set)
    with started(settings, stop, Part.LOG, Part.BROKERS, metrics=metrics) as watch:
        if watch is not None:
            execute_until(settings, admin, until, lambda: watch.wait_for([Part.LOG], stop), metrics)


def execute_until(
    settings: Settings,
    admin: PulsarAdmin,
    until: threading.Event,
    wait_for_log: Callable[[], object] = lambda: None,
    metrics: ExecutorMetrics | None = None,
) -> None:
    """Execute until *until* is set.  Restart after the log was unavailable or another executor took over.

    *wait_for_log* returns when the log can be reached, or *until* is set.
    """
    has_worked, metrics = False, metrics or ExecutorMetrics()
    system = log_system(settings)
    while not until.is_set():
        try:
            inbox = system.inbox()
            try:
                executor = Executor(
                    inbox,
                    PulsarTarget(admin),
                    settings.executor,
                    name=settings.cluster.name,
                    give_up_seconds=settings.decisions.executor_timeout_seconds,
                    now_ms=admin.clocks.latest_ms,
                    metrics=metrics,
                    own_namespaces=settings.log.own_namespaces,
                    controller_keys=settings.approvals.controller_keys,
                )
                has_worked = True
                executor.run(until)
            finally:
                inbox.close()
        except AccessDeniedError:
            raise  # retrying does not help: an administrator must grant the right
        except TrimtabError as error:
            if not has_worked:
                raise
            log.warning("%s; the executor restarts in %g s", error, _AGAIN_SECONDS)
            metrics.restarts()
            until.wait(_AGAIN_SECONDS)
            wait_for_log()

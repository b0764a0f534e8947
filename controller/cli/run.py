"""``trimtab run``: run the controller."""

from functools import partial

from controller.adapters.long_work import long_work
from controller.adapters.metrics.controller import ControllerMetrics
from controller.adapters.outages import Part
from controller.adapters.process import signals
from controller.cli.shared.console import DEFAULT_CONF, Conf, start_logging
from controller.cli.shared.log_format import LogFormat, LogFormatOption
from controller.cli.shared.metrics_address import MetricsAddress, served
from controller.cli.shared.starting import started
from controller.settings.trimtab_toml import Settings, read_settings


def run(
    conf: Conf = DEFAULT_CONF,
    metrics: MetricsAddress = "",
    log_format: LogFormatOption = LogFormat.TEXT,
) -> None:
    """Run the controller until SIGTERM or Ctrl-C."""
    start_logging(form=log_format)
    settings = read_settings(conf)
    role_metrics = ControllerMetrics()
    with served(role_metrics, settings, metrics):
        signals.run_until_told(lambda ending: _run(settings, ending, role_metrics))


def _run(settings: Settings, ending: signals.Ending, metrics: ControllerMetrics) -> None:
    stop = metrics.health.beating(ending.is_set)
    needed = (Part.LOG, Part.ELECTION)
    with started(
        settings, stop, *needed, decides=True, metrics=metrics, meanwhile=partial(_start_jvm, settings)
    ) as watch:
        if watch is not None:
            with long_work("loading Spark's client"):
                from streaming import supervisor  # here, because importing Spark takes seconds

            supervisor.run(settings, stop, metrics)


def _start_jvm(settings: Settings) -> None:
    from streaming import early  # here, because importing Spark takes seconds

    early.start_jvm(settings)

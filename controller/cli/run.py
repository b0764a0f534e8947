"""``trimtab run``: run the controller."""

from controller.adapters import signals
from controller.adapters.long_work import long_work
from controller.adapters.outages import Part
from controller.cli.common import DEFAULT_CONF, Conf, start_logging
from controller.cli.starting import started
from controller.settings.trimtab_toml import Settings, read_settings


def run(
    conf: Conf = DEFAULT_CONF,
) -> None:
    """Run the controller until SIGTERM or Ctrl-C."""
    start_logging()
    settings = read_settings(conf)
    signals.run_until_told(lambda ending: _run(settings, ending))


def _run(settings: Settings, ending: signals.Ending) -> None:
    with started(settings, ending.is_set, Part.LOG, Part.ELECTION, decides=True) as watch:
        if watch is not None:
            with long_work("loading Spark's client"):
                from streaming import early  # here, because importing Spark takes seconds

                early.start_jvm(settings)
                from streaming import supervisor

            supervisor.run(settings, ending.is_set)

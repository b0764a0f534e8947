"""``trimtab run``: run the controller."""

from controller.adapters import signals
from controller.adapters.long_work import long_work
from controller.cli.common import DEFAULT_CONF, Conf, start_logging
from controller.settings.trimtab_toml import read_settings


def run(
    conf: Conf = DEFAULT_CONF,
) -> None:
    """Run the controller until SIGTERM or Ctrl-C."""
    start_logging("py4j")
    settings = read_settings(conf)
    with long_work("loading Spark's client"):
        from streaming import supervisor  # here, because importing Spark takes seconds

    signals.run_until_told(lambda ending: supervisor.run(settings, ending.is_set, ending.may_take))

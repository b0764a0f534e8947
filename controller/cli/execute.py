"""``trimtab execute``: execute the commands on a real Pulsar cluster."""

import logging
import threading
from typing import Final

from controller.adapters import signals
from controller.adapters.opened import log_system
from controller.adapters.pulsar.access import pulsar_admin
from controller.adapters.pulsar.admin import PulsarAdmin
from controller.cli.common import DEFAULT_CONF, Conf, start_logging
from controller.executor.attempt import PulsarTarget
from controller.executor.loop import Executor
from controller.model.errors import AccessDeniedError, TrimtabError
from controller.settings.trimtab_toml import Settings, read_settings

log = logging.getLogger(__name__)

_AGAIN_SECONDS: Final = 5.0
#: How long an executor that must stop may take to finish the commands it has read.  Another executor then checks those
#: that it started and did not answer.
_BATCH_SECONDS: Final = 30.0


def execute(
    conf: Conf = DEFAULT_CONF,
) -> None:
    """Execute the commands on the cluster until SIGTERM or Ctrl-C.  Several executors share the commands."""
    start_logging()
    settings = read_settings(conf)
    admin = pulsar_admin(settings)
    try:
        signals.run_until_told(lambda ending: execute_until(settings, admin, ending, ending.may_take))
    finally:
        admin.close()


def execute_until(
    settings: Settings,
    admin: PulsarAdmin,
    until: threading.Event,
    may_take: signals.MayTake = signals.without_limit,
) -> None:
    """Execute until *until* is set.  Restart after the log was unavailable or another executor took over."""
    has_worked = False
    while not until.is_set():
        try:
            inbox = log_system(settings).inbox()
            try:
                executor = Executor(
                    inbox,
                    PulsarTarget(admin),
                    settings.executor,
                    name=settings.cluster.name,
                    give_up_seconds=settings.decisions.executor_timeout_seconds,
                )
                has_worked = True
                with may_take(_BATCH_SECONDS):
                    executor.run(until)
            finally:
                inbox.close()
        except AccessDeniedError:
            raise  # retrying does not help: an administrator must grant the right
        except TrimtabError as error:
            if not has_worked:
                raise
            log.warning("%s; the executor restarts in %g s", error, _AGAIN_SECONDS)
            until.wait(_AGAIN_SECONDS)

"""`trimtab execute`: the commands carried out on a real Pulsar cluster."""

import logging
import signal
import threading
from pathlib import Path
from typing import Annotated, Final

import typer

from controller.adapters.folder_inbox import FolderInbox
from controller.adapters.inbox import Inbox
from controller.adapters.kafka_inbox import KafkaInbox
from controller.adapters.pulsar_access import pulsar_admin
from controller.adapters.pulsar_admin import PulsarAdmin
from controller.executor.attempt import PulsarTarget
from controller.executor.loop import Executor
from controller.model.errors import AccessDeniedError, TrimtabError
from controller.settings.trimtab_toml import Settings, read_settings

log = logging.getLogger(__name__)

_AGAIN_SECONDS: Final = 5.0


def execute(
    conf: Annotated[Path, typer.Option(help="The settings.")] = Path("conf/trimtab.toml"),
) -> None:
    """Carry the commands out on the cluster until SIGTERM or Ctrl-C; any number of these share them out."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    settings = read_settings(conf)
    until = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: until.set())
    admin = pulsar_admin(settings)
    try:
        _work(settings, admin, until)
    finally:
        admin.close()


def _work(settings: Settings, admin: PulsarAdmin, until: threading.Event) -> None:
    """Execute until told to end; start anew where the log was away, or another executor had taken over."""
    has_worked = False
    while not until.is_set():
        try:
            inbox = open_inbox(settings)
            try:
                executor = Executor(
                    inbox,
                    PulsarTarget(admin),
                    settings.executor,
                    name=settings.cluster.name,
                    give_up_seconds=settings.decisions.executor_timeout_seconds,
                )
                has_worked = True
                executor.run(until)
            finally:
                inbox.close()
        except AccessDeniedError:
            raise  # whoever gives the right starts it again
        except TrimtabError as error:
            if not has_worked:
                raise
            log.warning("%s; the executor starts anew in %g s", error, _AGAIN_SECONDS)
            until.wait(_AGAIN_SECONDS)


def open_inbox(settings: Settings) -> Inbox:
    """The inbox on the log that the settings name."""
    if settings.log.kind == "kafka":
        assert settings.log.kafka is not None, "checked when the settings were read"
        return KafkaInbox(settings.log.kafka, settings.executor, cluster=settings.cluster.name)
    assert settings.log.folder is not None, "checked when the settings were read"
    return FolderInbox(Path(settings.log.folder.path), cluster=settings.cluster.name)

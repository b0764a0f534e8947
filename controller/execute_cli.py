"""`trimtab execute`: the commands carried out on a real Pulsar cluster."""

import logging
import signal
import threading
from pathlib import Path
from typing import Annotated

import typer

from controller.adapters.folder_inbox import FolderInbox
from controller.adapters.inbox import Inbox
from controller.adapters.kafka_inbox import KafkaInbox
from controller.adapters.pulsar_admin import Credentials, PulsarAdmin, Tls
from controller.executor.attempt import PulsarTarget
from controller.executor.loop import Executor
from controller.model.errors import SettingsError
from controller.settings.trimtab_toml import PulsarSettings, Settings, read_settings


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
    inbox = open_inbox(settings)
    try:
        Executor(inbox, PulsarTarget(admin), settings.executor, name=settings.cluster.name).run(until)
    finally:
        inbox.close()
        admin.close()


def open_inbox(settings: Settings) -> Inbox:
    """The inbox on the log that the settings name."""
    if settings.log.kind == "kafka":
        assert settings.log.kafka is not None, "checked when the settings were read"
        return KafkaInbox(settings.log.kafka, settings.executor)
    assert settings.log.folder is not None, "checked when the settings were read"
    return FolderInbox(Path(settings.log.folder.path), cluster=settings.cluster.name)


def pulsar_admin(settings: Settings) -> PulsarAdmin:
    """The admin API that the settings name."""
    pulsar, tls = settings.pulsar, settings.pulsar.tls
    return PulsarAdmin(
        pulsar.admin_url,
        cluster=settings.cluster.name,
        credentials=_credentials(pulsar),
        tls=Tls(
            trust_certs=tls.trust_certs or "",
            certificate=tls.certificate or "",
            key=tls.key or "",
            verify_host=tls.verify_host,
        ),
        connect_seconds=pulsar.connect_timeout_seconds,
        read_seconds=settings.decisions.executor_timeout_seconds,
        connections=settings.executor.max_concurrent,
    )


def _credentials(pulsar: PulsarSettings) -> Credentials:
    return Credentials(token=_secret(pulsar.token_file), user=pulsar.user, password=_secret(pulsar.password_file))


def _secret(path: str | None) -> str:
    if path is None:
        return ""
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from error

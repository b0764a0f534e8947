"""The admin API that the settings name, with the credentials that they name."""

from controller.adapters.network.tls import tls_of
from controller.adapters.pulsar.admin import PulsarAdmin
from controller.adapters.pulsar.credentials import CredentialFiles, credential_files
from controller.model.errors import SettingsError
from controller.settings.trimtab_toml import PulsarSettings, Settings


def pulsar_admin(
    settings: Settings, *, answer_seconds: float | None = None, hosts: int = 64, at_once: int | None = None
) -> PulsarAdmin:
    """The admin API of the cluster in *settings*.

    *answer_seconds* bounds the wait for a connection, and for an answer, of those who only look; else an answer may
    take as long as an executor may.  Connections to *hosts* brokers are kept open, *at_once* to each; else
    as many as commands are carried out at once.

    Raises SettingsError without a section [pulsar], or where a file cannot be read.
    """
    pulsar = settings.pulsar
    if pulsar is None:
        raise SettingsError("the brokers' admin API is needed: a section [pulsar] with admin_url")
    connect = float(pulsar.connect_timeout_seconds)
    return PulsarAdmin(
        pulsar.admin_url,
        cluster=settings.cluster.name,
        credentials=credentials_of(pulsar),
        tls=tls_of(pulsar.tls),
        connect_seconds=connect if answer_seconds is None else min(connect, answer_seconds),
        read_seconds=answer_seconds or settings.decisions.executor_timeout_seconds,
        connections=at_once or settings.executor.max_concurrent,
        hosts=hosts,
    )


def credentials_of(pulsar: PulsarSettings) -> CredentialFiles:
    """Our credentials from *pulsar*, re-read while the process runs.  SettingsError where a file cannot be read."""
    return credential_files(pulsar, "pulsar")

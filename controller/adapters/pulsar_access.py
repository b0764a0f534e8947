"""The admin API that the settings name, with the credentials that they name."""

from pathlib import Path

from controller.adapters.pulsar_admin import Credentials, PulsarAdmin, Tls
from controller.model.errors import SettingsError
from controller.settings.trimtab_toml import PulsarSettings, Settings


def pulsar_admin(settings: Settings, *, answer_seconds: float | None = None, hosts: int = 64) -> PulsarAdmin:
    """The admin API of the cluster in *settings*.

    *answer_seconds* bounds the wait for a connection, and for an answer, of those who only look; else an answer may
    take as long as an executor may.  Connections to *hosts* brokers are kept open.

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
        tls=tls_of(pulsar),
        connect_seconds=connect if answer_seconds is None else min(connect, answer_seconds),
        read_seconds=answer_seconds or settings.decisions.executor_timeout_seconds,
        connections=settings.executor.max_concurrent,
        hosts=hosts,
    )


def credentials_of(pulsar: PulsarSettings) -> Credentials:
    """What *pulsar* says we show.  SettingsError where a file cannot be read."""
    return Credentials(token=_secret(pulsar.token_file), user=pulsar.user, password=_secret(pulsar.password_file))


def tls_of(pulsar: PulsarSettings) -> Tls:
    """Whom *pulsar* says we trust, and as whom we come."""
    tls = pulsar.tls
    return Tls(
        trust_certs=tls.trust_certs or "",
        certificate=tls.certificate or "",
        key=tls.key or "",
        verify_host=tls.verify_host,
    )


def _secret(path: str | None) -> str:
    if path is None:
        return ""
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from error

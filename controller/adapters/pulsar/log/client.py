"""Connections to the Pulsar that holds the log, with the credentials that [log.pulsar] names.

Secrets are read from their files here, in whichever process connects.
"""

import os
from typing import Final, TypeVar

import pulsar

from controller.adapters.network.tls import tls_of
from controller.adapters.pulsar.client_access import client_access
from controller.adapters.pulsar.credentials import CredentialFiles, credential_files
from controller.adapters.pulsar.http import PulsarHttp
from controller.model.errors import TrimtabError
from controller.settings.pulsar_log import PulsarLogSettings
from controller.settings.redaction import redacted

Api = TypeVar("Api", bound=PulsarHttp)

#: How long Pulsar may be unreachable before a call gives up, seconds.
PATIENCE_SECONDS: Final = 30.0
#: For an answer of the admin API.
ANSWER_SECONDS: Final = 10.0
#: Of an answer of the admin API, bytes: it tells of one topic, or of one namespace.
LARGEST_TOLD: Final = 16 << 20
#: The largest record that is written, in bytes: brokers accept 5 MiB, with the message's own fields.
LARGEST_RECORD: Final = 4_000_000
_SECTION: Final = "log.pulsar"
#: With it the client's own log is written to standard error; what matters comes as an error of a call.
_DEBUG: Final = "TRIMTAB_PULSAR_CLIENT_LOG"


def topic_name(log: PulsarLogSettings, name: str) -> str:
    """The full name of the partitioned topic *name*, a short name as the settings have it."""
    return f"persistent://{log.namespace}/{name}"


def partition_name(topic: str, partition: int) -> str:
    """The full name of a partition of *topic*, a full name."""
    return f"{topic}-partition-{partition}"


def where(log: PulsarLogSettings, topic: str = "") -> str:
    """The place of *topic* (short name), or of the log, for messages."""
    return f"Pulsar at {log.service_url}" + (f", topic {topic_name(log, topic)!r}" if topic else "")


def credentials(log: PulsarLogSettings) -> CredentialFiles:
    """Our credentials from *log*, re-read while the process runs.  SettingsError where a file cannot be read."""
    return credential_files(log, _SECTION)


def log_client(log: PulsarLogSettings, *, seconds: float = PATIENCE_SECONDS) -> pulsar.Client:
    """A client whose calls give up after *seconds*.  TrimtabError where credentials or files cannot be used."""
    login, tls = credentials(log), tls_of(log.tls)
    if log.service_url.startswith("pulsar+ssl:"):
        tls.context(f"Pulsar, [{_SECTION}]")  # the client itself does not say which file is wrong
    try:
        return pulsar.Client(
            log.service_url,
            **client_access(login, tls),
            operation_timeout_seconds=max(1, round(seconds)),
            connection_timeout_ms=log.connect_timeout_seconds * 1000,
            logger=_logger(),
        )
    except pulsar.PulsarException as error:
        raise TrimtabError(f"{where(log)}: {redacted(str(error))}") from error


def log_http(log: PulsarLogSettings, *, api: type[Api] = PulsarHttp) -> Api:  # type: ignore[assignment]
    """The admin API of the log's Pulsar, as *api*; a call takes ANSWER_SECONDS at most.  Raises as ``log_client``."""
    return api(
        log.admin_url,
        cluster="",
        credentials=credentials(log),
        tls=tls_of(log.tls),
        connect_seconds=min(float(log.connect_timeout_seconds), ANSWER_SECONDS),
        read_seconds=ANSWER_SECONDS,
        connections=4,
    )


def _logger() -> object:
    if os.environ.get(_DEBUG):
        return pulsar.ConsoleLogger(pulsar.LoggerLevel.Info)
    return pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull)

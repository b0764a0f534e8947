"""Error messages for Kafka's refusals: the credential, the certificate, or the right that is missing on a topic, group
or id. librdkafka reports why a connection failed only to a callback, and does not say what is wrong with a certificate.

So if Kafka does not answer, one more connection is made just to find the reason.
"""

import socket
import ssl
from collections.abc import Iterable
from typing import Any, Final

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient

from controller.adapters.kafka.client import LIBRDKAFKA_LOG, Client
from controller.adapters.network import tls
from controller.adapters.network.deadline import Deadline
from controller.model.errors import AccessDeniedError, SettingsError, TrimtabError
from controller.settings.redaction import redacted

_SECTION: Final = "log.kafka.client"
_PROBE_SECONDS: Final = 3.0
_CONNECT_SECONDS: Final = 1.5
#: Refusals: a retry does not help.
DENIED: Final = frozenset(
    {
        ck.KafkaError._AUTHENTICATION,
        ck.KafkaError.SASL_AUTHENTICATION_FAILED,
        ck.KafkaError.UNSUPPORTED_SASL_MECHANISM,
        ck.KafkaError.TOPIC_AUTHORIZATION_FAILED,
        ck.KafkaError.GROUP_AUTHORIZATION_FAILED,
        ck.KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        ck.KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)


def text(error: BaseException | ck.KafkaError) -> str:
    """Kafka's own words for *error*, without its code's number and without our secrets."""
    inner = error.args[0] if isinstance(error, BaseException) and error.args else error
    return redacted(inner.str() if isinstance(inner, ck.KafkaError) else str(inner) or type(error).__name__)


def failure(
    where: str,
    error: BaseException | ck.KafkaError,
    client: Client,
    *,
    operation: str,
    topics: Iterable[str] = (),
    group: str = "",
    transactional_id: str = "",
) -> TrimtabError:
    """*error*, met at *where* when *operation* (Kafka's word) was tried on *topics*, as a member of *group*, or as
    *transactional_id*: an AccessDeniedError that names the missing right, else a TrimtabError."""
    inner = error.args[0] if isinstance(error, BaseException) and error.args else error
    code = inner.code() if isinstance(inner, ck.KafkaError) else None
    if code not in DENIED:
        return TrimtabError(f"{where}: {text(error)}")
    who = principal(client)
    if code == ck.KafkaError.TOPIC_AUTHORIZATION_FAILED:
        named = ", ".join(repr(topic) for topic in topics)
        what = f"may not {operation} topic {named}: it needs an ACL for {operation}"
    elif code == ck.KafkaError.GROUP_AUTHORIZATION_FAILED:
        what = f"may not use the consumer group{f' {group!r}' if group else ''}: it needs an ACL for Read on the group"
    elif code == ck.KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        what = f"may not use the transactional id {transactional_id!r}: it needs an ACL for Write on it"
    elif code == ck.KafkaError.CLUSTER_AUTHORIZATION_FAILED:
        what = f"may not {operation} the cluster: it needs an ACL for {operation} on the cluster"
    else:
        what = f"is refused: {text(error)}"
    return AccessDeniedError(f"{where}: {who} {what} (docs/security.md)")


def principal(client: Client) -> str:
    """The principal that *client* authenticates as."""
    user = client.get("sasl.username")
    if user:
        return f"user {user!r} of [{_SECTION}]"
    return f"the certificate of [{_SECTION}]" if client.get("ssl.certificate.location") else "nobody (no credentials)"


def silence(bootstrap: str, client: Client, error: BaseException | ck.KafkaError | str) -> TrimtabError:
    """The error to raise when Kafka at *bootstrap* did not answer, with *error*: an AccessDeniedError if it refuses
    us."""
    where = f"Kafka at {bootstrap}"
    for complaint in _complaints(bootstrap, client):
        if complaint.code() in DENIED:
            return AccessDeniedError(
                f"{where} refuses {principal(client)}: wrong user name or password, or it requires "
                f"another sasl.mechanism: {text(complaint).partition(': ')[2].partition(' (after')[0]}"
            )
    why = tls_problem(bootstrap, client)
    if why:
        return AccessDeniedError(f"{where}: {why}")
    message = error if isinstance(error, str) else text(error)
    return TrimtabError(f"{where} does not answer: {message}")


def _complaints(bootstrap: str, client: Client) -> list[ck.KafkaError]:
    """The first errors of librdkafka's threads about connections with *client*."""
    complaints: list[ck.KafkaError] = []
    config: dict[str, Any] = {"bootstrap.servers": bootstrap, **client, "log_level": 0, "error_cb": complaints.append}
    try:
        admin = AdminClient(config)
        deadline = Deadline.after(_PROBE_SECONDS)
        while not complaints and not deadline.passed:
            try:
                admin.list_topics(timeout=1.0)
                return []
            except ck.KafkaException:
                admin.poll(0.1)
    except ck.KafkaException as error:  # the options themselves
        complaints.append(error.args[0])
    return complaints


def tls_problem(bootstrap: str, client: Client) -> str:
    """What is wrong with TLS or its certificates at the first broker in the list; "" if nothing."""
    host, _, port = bootstrap.split(",")[0].strip().rpartition("://")[2].rpartition(":")
    host = host.strip("[]")
    try:
        how = tls_context(client) if wants_tls(client) else _trusting()
        with (
            socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS) as connection,
            how.wrap_socket(connection, server_hostname=host) as encrypted,
        ):
            if not wants_tls(client):
                return f"it speaks TLS: [{_SECTION}] needs security.protocol = SASL_SSL or SSL"
            encrypted.settimeout(0.5)
            encrypted.recv(1)  # the server refuses our certificate only now
    except ssl.SSLError as error:
        if not (wants_tls(client) and tls.is_refusal(error)):
            return ""
        return tls.refusal(error, _SECTION, trust="ssl.ca.location", own="ssl.certificate.location")
    except TrimtabError as error:
        return str(error)
    except (OSError, ValueError):
        return ""
    return ""


def check_options(client: Client) -> None:
    """SettingsError where librdkafka refuses the value of an option; those of TLS and SASL are tried by connecting."""
    of_connecting = ("security.", "sasl.", "ssl.")
    try:
        ck.Producer(
            {name: each for name, each in client.items() if not name.startswith(of_connecting)}, logger=LIBRDKAFKA_LOG
        )
    except ck.KafkaException as error:
        raise SettingsError(f"[{_SECTION}]: {' '.join(text(error).split())}") from error


def wants_tls(client: Client) -> bool:
    """Whether *client* connects with TLS."""
    return "SSL" in str(client.get("security.protocol", "")).upper().split("_")


def tls_context(client: Client) -> ssl.SSLContext:
    """For the connections of *client*.  TrimtabError where a file cannot be used."""
    verifies = client.get("ssl.endpoint.identification.algorithm", "https") != "none"
    return tls.Tls(
        trust_certs=str(client.get("ssl.ca.location", "")),
        certificate=str(client.get("ssl.certificate.location", "")),
        key=str(client.get("ssl.key.location", "")),
        verify_host=verifies,
    ).context(f"Kafka, [{_SECTION}]")


def _trusting() -> ssl.SSLContext:
    """A context that trusts every certificate, only used to find out whether the server speaks TLS."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context

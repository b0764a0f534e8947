"""librdkafka's options for Kafka's Java client, which Spark reads the log with: one set of options serves both.

Most have the same name in both.  Those about security do not: librdkafka takes names and files, Java a JAAS entry and
PEM text.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from controller.adapters.kafka.errors import principal
from controller.model.errors import AccessDeniedError, SettingsError
from controller.settings.redaction import redacted
from controller.settings.small_file import read_small_file

#: Options with another name in the Java client.
_RENAMED: Final = {
    "sasl.mechanisms": "sasl.mechanism",
    "socket.timeout.ms": "request.timeout.ms",  # how long an answer may take
}
#: Options that name a file, where the Java client takes the file's text.
_FILES: Final = {
    "ssl.ca.location": "ssl.truststore.certificates",
    "ssl.certificate.location": "ssl.keystore.certificate.chain",
    "ssl.key.location": "ssl.keystore.key",
}
_STORES: Final = {"ssl.ca.location": "ssl.truststore.type", "ssl.certificate.location": "ssl.keystore.type"}
_LOGIN: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_USER, _PASSWORD = "sasl.username", "sasl.password"
_MECHANISMS: Final = ("sasl.mechanism", "sasl.mechanisms")


def java_options(client: Mapping[str, object]) -> dict[str, str]:
    """*client*, options under librdkafka's names, under those of the Java client.

    Raises SettingsError for a file that cannot be read, and for a user of a mechanism that takes none.
    """
    options: dict[str, str] = {}
    for name, value in client.items():
        if name in (_USER, _PASSWORD):
            continue
        if name in _FILES:
            options[_FILES[name]] = _text(name, str(value))
            if name in _STORES:
                options[_STORES[name]] = "PEM"
        elif name == "security.protocol":
            options[name] = str(value).upper()
        elif name == "ssl.endpoint.identification.algorithm":
            # "none" is the empty text in Java.
            options[name] = "" if value == "none" else str(value)
        else:
            options[_RENAMED.get(name, name)] = str(value).lower() if isinstance(value, bool) else str(value)
    if _USER in client:
        options["sasl.jaas.config"] = _jaas(client)
    return options


#: The Java client's error -> its meaning.
_REFUSALS: Final = {
    r"TopicAuthorizationException: Not authorized to access topics: \[([^\]\n]*)\]": "{who} may not Read topic"
    " '{what}': it needs an ACL for Read",
    r"GroupAuthorizationException: Not authorized to access group: (\S+)": "{who} may not use the consumer group"
    " '{what}': it needs an ACL for Read on the group",
    r"SaslAuthenticationException: ([^\n]*)": "refuses {who}: {what}",
    r"SslAuthenticationException: ([^\n]*)": "TLS failed, see ssl.ca.location and ssl.certificate.location of"
    " [log.kafka.client]: {what}",
}


def refusal(bootstrap: str, client: Mapping[str, str | int | float | bool], failed: str) -> AccessDeniedError | None:
    """What *failed*, the text of a Spark query's failure, says about rights or credentials in Kafka; None: nothing."""
    for pattern, words in _REFUSALS.items():
        match = re.search(pattern, failed)
        if match:
            message = words.format(who=principal(client), what=redacted(match[1].strip()))
            return AccessDeniedError(f"Kafka at {bootstrap}, read by Spark: {message} (docs/security.md)")
    return None


def _jaas(client: Mapping[str, object]) -> str:
    mechanism = next((str(client[name]) for name in _MECHANISMS if name in client), "")
    module = _LOGIN.get(mechanism)
    if module is None:
        raise SettingsError(
            f"log.kafka.client: {_USER} goes with sasl.mechanism = one of {', '.join(_LOGIN)}, not {mechanism!r}"
        )
    user, password = (_quoted(str(client.get(name, ""))) for name in (_USER, _PASSWORD))
    return f"{module} required username={user} password={password};"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _text(name: str, path: str) -> str:
    try:
        return read_small_file(Path(path)).decode("ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"log.kafka.client: {name} = {path!r}: {error}") from error

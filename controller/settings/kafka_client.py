"""[log.kafka.client]: further options for connections to Kafka.  Options that safety depends on are refused.

Options about connections, security and batching are allowed, by their prefix.  Any other could silently change what is
read, what is committed, or who writes.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from pydantic import ValidationInfo

from controller.model.errors import SettingsError
from controller.settings.redaction import SECRETS, is_secret, read_secret
from controller.settings.section import beside

Scalar: TypeAlias = str | int | float | bool

#: Allowed options; an entry that ends in a dot allows all options that begin with it.
_ALLOWED: Final = (
    "security.protocol",
    "sasl.",
    "ssl.",
    "socket.",
    "client.",
    "metadata.",
    "topic.metadata.",
    "reconnect.",
    "retry.",
    "broker.address.",
    "broker.version.fallback",
    "api.version.",
    "connections.max.idle.ms",
    "compression.",
    "linger.ms",
    "batch.",
    "queue.buffering.",
    "queued.",
    "fetch.wait.max.ms",
    "fetch.min.bytes",
    "check.crcs",
    "request.timeout.ms",
    "enable.metrics.push",
    "debug",
)
_GROUP: Final = "the consumer group is the executors', with the cluster's name in it: [executor] group"
_SESSION: Final = "[executor] session_timeout_seconds says when an executor counts as dead"
_COMMITS: Final = "trimtab commits the offsets of commands in one transaction with their results"
_WRITER: Final = "Kafka fences earlier writers by it; trimtab builds it from the cluster's name"
_ONCE: Final = "with another value a record could be lost, or be written twice"
_SIZES: Final = "it is set so that every record fits; the topics' max.message.bytes is the limit"
#: Name -> why it is trimtab's own, and what to use instead.
_REFUSED: Final[Mapping[str, str]] = {
    "bootstrap.servers": "[log.kafka] bootstrap names the brokers",
    "metadata.broker.list": "[log.kafka] bootstrap names the brokers",
    "group.id": _GROUP,
    "group.instance.id": _GROUP,
    "group.protocol": _GROUP,
    "partition.assignment.strategy": _GROUP,
    "session.timeout.ms": _SESSION,
    "heartbeat.interval.ms": _SESSION,
    "max.poll.interval.ms": _SESSION,
    "enable.auto.commit": _COMMITS,
    "auto.commit.enable": _COMMITS,
    "auto.commit.interval.ms": _COMMITS,
    "enable.auto.offset.store": _COMMITS,
    "auto.offset.reset": "the checkpoint and the consumer group determine where reading begins",
    "isolation.level": "trimtab reads committed records only: read_committed",
    "enable.partition.eof": "trimtab needs it to know that it has read a partition to its end",
    "transactional.id": _WRITER,
    "transaction.timeout.ms": _WRITER,
    "enable.idempotence": _ONCE,
    "enable.gapless.guarantee": _ONCE,
    "acks": _ONCE,
    "request.required.acks": _ONCE,
    "max.in.flight": _ONCE,
    "max.in.flight.requests.per.connection": _ONCE,
    "retries": _ONCE,
    "message.send.max.retries": _ONCE,
    "delivery.timeout.ms": _ONCE,
    "message.timeout.ms": _ONCE,
    "partitioner": "all commands and results of a namespace must be in one partition",
    "message.max.bytes": _SIZES,
    "max.request.size": _SIZES,
    "fetch.message.max.bytes": _SIZES,
    "max.partition.fetch.bytes": _SIZES,
    "fetch.max.bytes": _SIZES,
    "receive.message.max.bytes": _SIZES,
    "allow.auto.create.topics": "trimtab creates its topics itself, with their retention and time stamps",
    "plugin.library.paths": "it loads code into trimtab's processes",
    "enable.ssl.certificate.verification": "trimtab could connect to a false server; name the authority in"
    " ssl.ca.location, or set ssl.endpoint.identification.algorithm = 'none' for other host names",
    "sasl.jaas.config": "only the Java client has it; use sasl.mechanism, sasl.username and sasl.password_file",
}
#: Options that name a file; relative paths start at the folder of the settings file.
_PATHS: Final = frozenset(
    {"ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "ssl.keystore.location", "ssl.crl.location"}
)
_NO_PATH: Final = "probe"
_FILE: Final = "_file"


def client_options(raw: Any, info: ValidationInfo) -> Any:
    """*raw* as librdkafka takes it: paths in full, and the content of ``NAME_file`` as the option NAME.

    ValueError for every option that is refused, with the reason, and for a file that cannot be read.
    """
    if not isinstance(raw, Mapping):
        return raw
    flaws = list(_flaws(raw))
    if flaws:
        raise ValueError("; ".join(flaws))
    options: dict[str, Scalar] = {}
    for name, value in raw.items():
        if name.endswith(_FILE):
            options[name.removesuffix(_FILE)] = _content(name, beside(value, info))
        elif name in _PATHS and value != _NO_PATH:
            options[name] = beside(value, info)
        else:
            options[name] = value
            if is_secret(name):
                SECRETS.register(name, str(value))
    return options


def _flaws(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        option = name.removesuffix(_FILE)
        if option in _REFUSED:
            yield f"{name} is trimtab's own: {_REFUSED[option]}"
        elif not any(option == each or (each.endswith(".") and option.startswith(each)) for each in _ALLOWED):
            yield f"{name} is not an option that may be set here; allowed are {', '.join(_advice())}"
        elif not isinstance(value, Scalar):
            yield f"{name} is a {type(value).__name__}: expected a string, a number, true or false"
        elif (option != name or name in _PATHS) and not isinstance(value, str):
            yield f"{name} names a file, so it must be a string"
        elif option != name and option in options:
            yield f"{option} and {name} are both given: choose one of them"


def _advice() -> Iterator[str]:
    return (f"{each}*" if each.endswith(".") else each for each in _ALLOWED)


def _content(name: str, path: str) -> str:
    try:
        return read_secret(path, name)
    except SettingsError as error:
        raise ValueError(str(error)) from None

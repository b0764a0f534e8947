"""The meaning of the client library's errors: which topic, which operation, and what to do."""

from typing import Any, Final

import pulsar

from controller.model.errors import AccessDeniedError, LogOfflineError, TrimtabError
from controller.settings.redaction import redacted

_UNKNOWN_WHO: Final = "the credentials in [log.pulsar] are refused: check token_file, or user and password_file"
_NOT_ALLOWED: Final = (
    "these credentials may not {operation} here: grant the role {right} on the namespace with"
    " `pulsar-admin namespaces grant-permission`"
)
_MEANINGS: Final[dict[type[BaseException], str]] = {
    pulsar.Timeout: "no answer in time",
    pulsar.ConnectError: "no broker can be reached",
    pulsar.NotConnected: "the connection to the broker is lost",
    pulsar.TopicNotFound: "the topic does not exist",
    pulsar.ServiceUnitNotReady: "the topic is being moved to another broker",
    pulsar.ProducerBusy: "another process writes under this name",
    pulsar.ProducerFenced: "another process has taken over",
    pulsar.ConsumerBusy: "another process reads under this name",
    pulsar.AlreadyClosed: "the connection was closed",
    pulsar.MessageTooBig: "the record is longer than the brokers accept (maxMessageSize)",
    pulsar.ProducerBlockedQuotaExceededError: "the backlog quota of the namespace is used up",
    pulsar.ProducerBlockedQuotaExceededException: "the backlog quota of the namespace is used up",
    pulsar.LookupError: "the brokers do not say which of them owns the topic",
    pulsar.BrokerMetadataError: "the brokers cannot read their metadata store",
    pulsar.BrokerPersistenceError: "the brokers cannot store or read the records: is a bookie down?",
    pulsar.TopicTerminated: "the topic is terminated",
    pulsar.InvalidTopicName: "this is not a valid topic name",
}
#: Refusals: a retry does not help.
DENIED: Final = (pulsar.AuthenticationError, pulsar.AuthorizationError, pulsar.ErrorGettingAuthenticationData)


def meaning(error: BaseException) -> str:
    """What *error* means, in words; without our secrets, which brokers may quote."""
    message = str(error).removeprefix("Pulsar error: ")
    return _MEANINGS.get(type(error)) or redacted(message) or type(error).__name__


def error_of(result: Any) -> BaseException:
    """The exception of the client library that *result*, which it gives to callbacks, stands for."""
    kind = getattr(pulsar, result.name, None)
    return (
        kind(result.name)
        if isinstance(kind, type) and issubclass(kind, BaseException)
        else pulsar.UnknownError(result.name)
    )


def failure(place: str, error: BaseException, *, operation: str) -> TrimtabError:
    """*error*, met at *place* when *operation* ("produce" or "consume", Pulsar's words) was tried.

    AccessDeniedError where Pulsar refuses us.
    """
    if isinstance(error, TrimtabError):
        return error
    if isinstance(error, pulsar.AuthorizationError):
        message = _NOT_ALLOWED.format(operation=operation, right=operation)
        return AccessDeniedError(f"{place}: {message} (docs/pulsar_log.md)")
    if isinstance(error, DENIED):
        return AccessDeniedError(f"{place}: {_UNKNOWN_WHO} (docs/pulsar_log.md)")
    return TrimtabError(f"{place}: {meaning(error)}")


def offline(place: str, error: BaseException) -> TrimtabError:
    """*error*, met at *place* before anything was written: a LogOfflineError unless Pulsar refuses us."""
    reason = failure(place, error, operation="produce")
    return reason if isinstance(reason, AccessDeniedError) else LogOfflineError(f"{reason}; nothing was written")

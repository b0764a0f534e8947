"""A message's metadata. Its producer writes all of it, and no broker checks it."""

from collections.abc import Mapping
from typing import Any, Final

import pulsar

#: For every reader and consumer.  An encrypted message comes as it is, and is refused like others that nobody can read;
#: the client would keep it back else, and whoever knows that it is there would wait for it in vain.
AS_THEY_ARE: Final = {"crypto_failure_action": pulsar.ConsumerCryptoFailureAction.CONSUME}
#: Times are whole numbers of 64 bits; a message may claim a later one.
_LATEST_MS: Final = (1 << 63) - 1
NO_PROPERTIES: Final[Mapping[str, str]] = {}


def published_ms(message: Any) -> int:
    """When its producer says that it sent *message*, epoch ms."""
    return min(int(message.publish_timestamp()), _LATEST_MS)


def key_of(message: Any) -> str:
    """The key of *message*; "" where it has none, or one that is no text."""
    try:
        return str(message.partition_key())
    except UnicodeDecodeError:
        return ""


def properties_of(message: Any) -> Mapping[str, str]:
    """The properties of *message*; none where one of them is no text: then it is not ours."""
    try:
        properties: Mapping[str, str] = message.properties()
    except UnicodeDecodeError:
        return NO_PROPERTIES
    return properties

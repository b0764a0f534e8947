"""What all connections to Kafka share: their options, and how long Kafka may be silent.

*client* is what the settings add to every connection (security.protocol ...), under librdkafka's names.
"""

import logging
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

#: Options of a connection under librdkafka's names.
Client: TypeAlias = Mapping[str, str | int | float | bool]
Headers: TypeAlias = Mapping[str, bytes]

#: What librdkafka says by itself: every attempt to connect, many times.  controller.adapters.outages says once that
#: Kafka cannot be reached; everything else comes as an error of a call.
LIBRDKAFKA_LOG: Final = logging.getLogger("controller.adapters.kafka.librdkafka")
LIBRDKAFKA_LOG.setLevel(logging.CRITICAL)

#: How long Kafka may be unreachable before a call gives up, seconds.
PATIENCE_SECONDS: Final = 60.0
#: The largest record that is read or written, in bytes.  librdkafka's own limit is 1 MB; the brokers' limit counts.
LARGEST_RECORD: Final = 16 << 20
NO_CLIENT: Final[Client] = {}
NO_HEADERS: Final[Headers] = {}


def connection_options(bootstrap: str, client: Client, **ours: Any) -> dict[str, Any]:
    """The options of a connection: *ours*, and those of *client*, which come first."""
    if "debug" in client:
        LIBRDKAFKA_LOG.setLevel(logging.DEBUG)
    return {"bootstrap.servers": bootstrap, **ours, **client}

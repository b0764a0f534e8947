"""Options and timeouts of all connections to Kafka.

*client* is what the settings add to every connection (security.protocol ...), under librdkafka's names.
"""

import logging
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

#: Options of a connection under librdkafka's names.
Client: TypeAlias = Mapping[str, str | int | float | bool]
Headers: TypeAlias = Mapping[str, bytes]

#: librdkafka's own log, which repeats every connection attempt.  controller.adapters.outages says once that
#: Kafka cannot be reached; everything else comes as an error of a call.
LIBRDKAFKA_LOG: Final = logging.getLogger("controller.adapters.kafka.librdkafka")
LIBRDKAFKA_LOG.setLevel(logging.CRITICAL)

#: How long Kafka may be unreachable before a call gives up, seconds.
PATIENCE_SECONDS: Final = 60.0
#: How long a broker may take for an answer, until its connection counts as lost and another broker is asked.  One that
#: lost its machine resets no connection; Kafka itself gives it up after 9 s (broker.session.timeout.ms).  The clients'
#: own limits are 30 and 60 s.
ANSWER_MS: Final = 10_000
#: The largest record that is read or written, in bytes.  librdkafka's own limit is 1 MB; the brokers' limit counts.
LARGEST_RECORD: Final = 16 << 20
#: A consumer with these fetches a batch of records at a time, or as many small ones as fit.  A batch may unpack to
#: thousands of times its size, and librdkafka unpacks all that it has fetched at once.
_AT_ONCE: Final = 1 << 10
BOUNDED: Final[Client] = {
    "fetch.message.max.bytes": _AT_ONCE,
    "fetch.max.bytes": _AT_ONCE,
    "message.max.bytes": _AT_ONCE,  # librdkafka wants it below the one above; a consumer does not use it
    # A longer response is refused.  Nor does librdkafka unpack a batch of zstd that becomes longer; other codecs it
    # unpacks to any size, so trimtab's topics are kept in zstd: see controller.adapters.kafka.specs.  Its buffer grows
    # threefold, and is not tried between the last step below this and this: so the largest record fits into a third.
    "receive.message.max.bytes": 3 * LARGEST_RECORD + (64 << 10),
    # Fetched and not yet taken; the default is 64 MiB.
    "queued.max.messages.kbytes": 16 << 10,
    # Of consumers that wait because enough is fetched, and after an unreadable batch.  The defaults are made for large
    # fetches.
    "fetch.queue.backoff.ms": 20,
    "fetch.error.backoff.ms": 20,
}
NO_CLIENT: Final[Client] = {}
NO_HEADERS: Final[Headers] = {}


def connection_options(bootstrap: str, client: Client, **ours: Any) -> dict[str, Any]:
    """The options of a connection: *ours*, and those of *client*, which take precedence."""
    if "debug" in client:
        LIBRDKAFKA_LOG.setLevel(logging.DEBUG)
    waits = {"socket.timeout.ms": ANSWER_MS, "socket.connection.setup.timeout.ms": ANSWER_MS}
    return {"bootstrap.servers": bootstrap, **waits, **ours, **client}

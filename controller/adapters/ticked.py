"""The ticks in the result topic of Kafka or Pulsar: each of its partitions has all of them, and few other records."""

from typing import Final

from controller.model.errors import WireError
from controller.wire.metrics import TickRecord
from controller.wire.results import decode_result

#: The partition of the result topic that ticks are looked for in.
PARTITION: Final = 0
_TICK: Final = b'"tick"'


def interval_ticked(value: bytes, *, cluster: str, period_ms: int, append_time_ms: int | None = None) -> int | None:
    """The interval that *value*, a record of the result topic, ticks, epoch ms; None where it is no tick of *cluster*.

    *append_time_ms*: when the log got it; an interval of the future is none.  A result costs one search in its bytes.
    """
    if _TICK not in value:
        return None
    try:
        said = decode_result(value, cluster=cluster, period_ms=period_ms, append_time_ms=append_time_ms)
    except WireError:
        return None  # a dead letter
    return said.interval if isinstance(said, TickRecord) else None

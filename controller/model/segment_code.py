"""Segments of scalable topics (Pulsar 5.0) as numbers, so that columns can say which topic a segment belongs to.

A code has the position of ``topic://tenant/namespace/topic`` on the hash ring in its upper 32 bits, and in its lower
ones the first and the last hash of the segment's keys, 16 bits each.  streaming/jvm/Bundle.java makes the same codes.

Pulsar: org.apache.pulsar.common.scalable.SegmentTopicName
"""

import re
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from controller.model.names import topic_hash

#: The code of a topic that is no segment.
NO_SEGMENT: Final = 0
#: Key hashes: 0 .. 0xffff.
KEY_HASHES: Final = 1 << 16
#: As brokers write it; a name in another form is no segment of any topic.
_SEGMENT: Final = re.compile(r"segment://(.+)/([0-9a-f]{4})-([0-9a-f]{4})-[0-9]{1,19}", re.DOTALL)
_HALF: Final = 0xFFFFFFFF


@lru_cache(maxsize=200_000)
def segment_code(topic: str) -> int:
    """The code of *topic*, a full name as brokers write it; NO_SEGMENT if it is no segment.  64 bits, signed."""
    match = _SEGMENT.fullmatch(topic)
    if match is None or match[2] > match[3]:
        return NO_SEGMENT
    code = topic_hash(f"topic://{match[1]}") << 32 | int(match[2], 16) << 16 | int(match[3], 16)
    return code - (1 << 64) if code >= 1 << 63 else code


def places_of(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n,) the positions on the ring of the scalable topics that the segments *codes* (n,) belong to."""
    return (codes >> 32) & _HALF


def key_ranges_of(codes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(n,) the first and the last key hash of the segments *codes* (n,)."""
    return (codes >> 16) & (KEY_HASHES - 1), codes & (KEY_HASHES - 1)

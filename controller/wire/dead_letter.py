"""Dead letters: a refused record, with the reason, its position, and as much of its content as is retained."""

from base64 import b64decode, b64encode
from typing import Final, Literal

from pydantic import Field

from controller.model.errors import WireError
from controller.wire.base import Count, DeadLetterReason, Record

#: Maximum number of bytes of the original that are retained.
KEPT_BYTES: Final = 64 * 1024


class Source(Record):
    """Where the record lay: an offset in a topic's partition, or a line of a file."""

    topic: str | None = None
    file: str | None = None
    partition: int = 0
    offset: Count
    """In a file: the line, from 0."""


class DeadLetter(Record):
    """A refused record."""

    v: Literal[1] = 1
    type: Literal["dead_letter"] = "dead_letter"
    reason: DeadLetterReason
    detail: str
    source: Source
    size: Count
    """Bytes of the original."""
    sha256: str
    """Of the whole original, in hex."""
    head: str = Field(alias="bytes")
    """The first 64 KiB of the original, base64."""

    @property
    def truncated(self) -> bytes:
        """The first 64 KiB of the original."""
        return b64decode(self.head)


def dead_letter(error: WireError, source: Source, *, head: bytes, size: int, digest: str) -> DeadLetter:
    """The dead letter for a record of which this is known: its first bytes, its size, and its SHA-256 in hex."""
    return DeadLetter.model_validate(
        {
            "reason": error.reason,
            "detail": error.detail,
            "source": source,
            "size": size,
            "sha256": digest,
            "head": b64encode(head[:KEPT_BYTES]).decode(),
        }
    )

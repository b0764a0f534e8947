"""Who a process is, as it lies in the election for people who ask: one small JSON object."""

from typing import Final

from controller.model.errors import WireError
from controller.wire.base import Count, Name, Record, encode, reader, refuse_too_large, validate

#: Far above what a host's name and a number come to.
_MAX_BYTES: Final = 4 * 1024


class ProcessDocument(Record):
    """A process, by its host and its number there."""

    host: Name
    process: Count


def encode_process(host: str, process: int) -> bytes:
    """The process number *process* on *host*."""
    return encode(ProcessDocument(host=host, process=process))


def process_in(value: bytes) -> tuple[str, int]:
    """Host and number of the process that *value* names; "" and 0 where it names none."""
    try:
        found = _parsed(value)
    except WireError:
        return "", 0
    return found.host, found.process


@reader
def _parsed(value: bytes) -> ProcessDocument:
    refuse_too_large(value, _MAX_BYTES)
    return validate(ProcessDocument, value)

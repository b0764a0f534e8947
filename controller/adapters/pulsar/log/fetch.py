"""The messages of some entries of one partition, each once, in the order in which they were written.

Nothing of a subscription is left behind: a reader of Pulsar's has none that lasts.
"""

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pulsar

from controller.adapters.network.deadline import Deadline
from controller.adapters.network.waiting import retry
from controller.adapters.pulsar.log.client import PATIENCE_SECONDS, partition_name
from controller.adapters.pulsar.log.connection import is_passing
from controller.adapters.pulsar.log.errors import failure
from controller.adapters.pulsar.log.messages import AS_THEY_ARE, published_ms
from controller.adapters.pulsar.log.positions import BEGINNING, Entry, in_batch, number_of
from controller.model.errors import TrimtabError

log = logging.getLogger(__name__)

#: A block ends with the message that makes it so long, in bytes of values or in messages.
BLOCK_BYTES: Final = 8 << 20
BLOCK_MESSAGES: Final = 20_000
#: Bytes that the client may hold before they are asked for, and what an entry counts for at least.
_AHEAD_BYTES: Final = 16 << 20
_LEAST_BYTES: Final = 1_024
_FEWEST_AHEAD: Final = 4
_MOST_AHEAD: Final = 4_000
_AGAIN_SECONDS: Final = 0.1
#: For a message that is there.
_READ_MILLIS: Final = 2_000
#: What a serialized id calls the first part of a message that was sent in parts.  Pulsar: MessageIdData
_FIRST_PART: Final = 7
_LEDGER, _ENTRY = 1, 2
_VARINT, _LENGTH = 0, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Entries of one partition."""

    #: Full name.
    topic: str
    partition: int
    #: The entries after this one ...
    after: Entry
    #: ... up to this one.
    until: Entry
    #: How many these are.
    entries: int
    #: Where messages may begin that were sent in parts, and whose last part is in the range.
    back: Entry
    #: Of an entry of this partition, on average.
    entry_bytes: int


@dataclass(slots=True)
class Block:
    """Some messages; each list has one element a message."""

    #: See positions.number_of.
    numbers: list[int] = field(default_factory=list)
    #: When the producer says that it sent it, epoch ms.
    publish_ms: list[int] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)


def blocks(client: pulsar.Client, entries: Range, *, seconds: float = PATIENCE_SECONDS) -> Iterator[Block]:
    """The messages of the entries *entries*.  TrimtabError where the brokers give none of them for *seconds*.

    A message that was sent in parts belongs to the entry of its last part.  One that began before the range comes last.
    So do those that the broker asked first did not know yet.
    """
    fetched: set[Entry] = set()
    yield from _in_blocks(_own(client, entries, fetched, seconds))
    if len(fetched) < entries.entries:
        yield from _in_blocks(_missed(client, entries, fetched, seconds))
    if len(fetched) < entries.entries:
        log.info(
            "%s: %d of the %d entries after %s up to %s have no separate message: they are parts of "
            "longer messages, markers of the brokers, or entries that retention has deleted",
            partition_name(entries.topic, entries.partition),
            entries.entries - len(fetched),
            entries.entries,
            entries.after,
            entries.until,
        )


def _own(client: pulsar.Client, entries: Range, fetched: set[Entry], seconds: float) -> Iterator[tuple[int, Any]]:
    """Number and message of all that begins in the range; *fetched* is told their entries."""
    for place, number, message, first in _read(client, entries, entries.after, seconds):
        if place > entries.after and (first is None or first > entries.after):
            fetched.add(place)
            yield number, message


def _missed(client: pulsar.Client, entries: Range, fetched: set[Entry], seconds: float) -> Iterator[tuple[int, Any]]:
    """Number and message of all that ends in the range and is not *fetched*.

    It begins before the range; or a broker that had lost the topic, and did not know it, said that there is no more.
    """
    before = frozenset(fetched)
    for place, number, message, _ in _read(client, entries, entries.back, seconds):
        if place > entries.after and place not in before:
            fetched.add(place)
            yield number, message


def _in_blocks(messages: Iterator[tuple[int, Any]]) -> Iterator[Block]:
    block, size = Block(), 0
    for number, message in messages:
        value = message.data()
        block.numbers.append(number)
        block.publish_ms.append(published_ms(message))
        block.values.append(value)
        size += len(value)
        if size >= BLOCK_BYTES or len(block.numbers) >= BLOCK_MESSAGES:
            yield block
            block, size = Block(), 0
    if block.numbers:
        yield block


def _read(
    client: pulsar.Client, entries: Range, start: Entry, seconds: float
) -> Iterator[tuple[Entry, int, Any, Entry | None]]:
    """Entry, number, message and first part of all messages from *start* on, up to the end of the range."""
    reader = _reader(client, entries, start, seconds)
    last, index, number = Entry(-1, -2), -1, 0
    try:
        while (message := _next(reader, entries, seconds)) is not None:
            message_id = message.message_id()
            place, batch = Entry(message_id.ledger_id(), message_id.entry_id()), message_id.batch_index()
            if place > entries.until:
                return
            if place < last or (place == last and batch <= index):
                continue  # the client was connected anew
            if place != last:
                last, number = place, number_of(*place, 0)
            index = batch
            yield place, in_batch(number, batch), message, first_part(message_id.serialize()) if batch < 0 else None
    finally:
        _close(reader)


def _reader(client: pulsar.Client, entries: Range, start: Entry, seconds: float) -> Any:
    name = partition_name(entries.topic, entries.partition)
    at = pulsar.MessageId.earliest if start == BEGINNING else pulsar.MessageId(entries.partition, *start, -1)
    ahead = _AHEAD_BYTES // max(_LEAST_BYTES, entries.entry_bytes)

    def create() -> Any:
        queue = min(max(ahead, _FEWEST_AHEAD), _MOST_AHEAD)
        return client.create_reader(name, at, receiver_queue_size=queue, **AS_THEY_ARE)

    try:
        return retry(create, seconds, again_after=is_passing, every=_AGAIN_SECONDS)
    except pulsar.PulsarException as error:
        raise failure(name, error, operation="consume") from error


def _next(reader: Any, entries: Range, seconds: float) -> Any:
    """The next message; None where the partition has no more.  TrimtabError after *seconds* without an answer."""
    try:
        return reader.read_next(_READ_MILLIS) if reader.has_message_available() else None
    except pulsar.PulsarException:
        return _patiently(reader, entries, seconds)


def _patiently(reader: Any, entries: Range, seconds: float) -> Any:
    """As ``_next``, after it has failed."""
    deadline = Deadline.after(seconds)
    while True:
        time.sleep(_AGAIN_SECONDS)
        try:
            return reader.read_next(_READ_MILLIS) if reader.has_message_available() else None
        except pulsar.PulsarException as error:
            if deadline.passed or not (is_passing(error) or isinstance(error, pulsar.Timeout)):
                name = partition_name(entries.topic, entries.partition)
                place = f"{name}, entries after {entries.after} up to {entries.until}"
                raise failure(place, error, operation="consume") from error


def _close(reader: Any) -> None:
    try:
        reader.close()
    except pulsar.PulsarException as error:
        log.debug("cannot close a reader: %s", error)  # it ends with its client


def first_part(encoded: bytes) -> Entry | None:
    """Where the first part of a message lies, by its serialized id; None where it was not sent in parts."""
    part = _fields(encoded).get(_FIRST_PART)
    if not isinstance(part, bytes):
        return None
    of = _fields(part)
    ledger, entry = of.get(_LEDGER), of.get(_ENTRY)
    if not isinstance(ledger, int) or not isinstance(entry, int):
        raise TrimtabError(f"the id of a message in parts cannot be read: {encoded.hex():.100}")
    return Entry(ledger, entry)


def _fields(encoded: bytes) -> dict[int, int | bytes]:
    """The fields of a message of Protocol Buffers, by number; the last one of each."""
    fields: dict[int, int | bytes] = {}
    at = 0
    while at < len(encoded):
        tag, at = _varint(encoded, at)
        value, at = _varint(encoded, at)
        if tag & 7 == _VARINT:
            fields[tag >> 3] = value
        elif tag & 7 == _LENGTH:
            fields[tag >> 3], at = encoded[at : at + value], at + value
        else:
            break
    return fields


def _varint(encoded: bytes, at: int) -> tuple[int, int]:
    """The number that begins at *at*, and where it ends."""
    value = shift = 0
    while at < len(encoded):
        byte = encoded[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            break
    return value, at

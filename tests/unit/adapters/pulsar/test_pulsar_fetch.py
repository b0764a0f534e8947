"""The messages of a range of entries, by a reader that behaves as pulsar-client's."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pulsar
import pytest

from controller.adapters.pulsar.log import fetch
from controller.adapters.pulsar.log.fetch import Range, blocks, first_part
from controller.adapters.pulsar.log.positions import BEGINNING, Entry, number_of
from controller.model.errors import TrimtabError

TOPIC = "persistent://public/trimtab/metrics"


class Id(NamedTuple):
    ledger: int
    entry: int
    batch: int = -1
    first: tuple[int, int] | None = None

    def ledger_id(self) -> int:
        return self.ledger

    def entry_id(self) -> int:
        return self.entry

    def batch_index(self) -> int:
        return self.batch

    def serialize(self) -> bytes:
        own = bytes((8, self.ledger, 16, self.entry, 24, 0))
        return own if self.first is None else own + bytes((0x3A, 4, 8, self.first[0], 16, self.first[1]))


@dataclass
class Message:
    id: Id
    value: bytes
    time_ms: int = 77

    def message_id(self) -> Id:
        return self.id

    def data(self) -> bytes:
        return self.value

    def publish_timestamp(self) -> int:
        return self.time_ms


@dataclass
class Partition:
    """A client and a reader of one partition: as Pulsar's own, it may begin with the entry that it is told."""

    messages: Sequence[Message]
    #: What each call raises before it works, in this order.
    errors: list[Exception] = field(default_factory=list)
    starts: list[Any] = field(default_factory=list)
    queues: list[int] = field(default_factory=list)
    at: int = 0
    #: So many messages a broker knows that has lost the topic: the one that the first reader asks.
    stale: int | None = None

    def create_reader(self, topic: str, start: Any, receiver_queue_size: int, **_: Any) -> "Partition":
        assert topic == f"{TOPIC}-partition-3"
        self.starts.append((start.ledger_id(), start.entry_id()))
        self.queues.append(receiver_queue_size)
        # A message in parts is whole only for who begins with its first part.
        begin = Entry(start.ledger_id(), start.entry_id())
        known, self.stale = self.messages[: self.stale], None
        self.left = [each for each in known if Entry(*(each.id.first or each.id[:2])) >= begin]
        return self

    def has_message_available(self) -> bool:
        if self.errors:
            raise self.errors.pop(0)
        return bool(self.left)

    def read_next(self, timeout_millis: int) -> Message:
        assert 0 < timeout_millis < 10_000
        return self.left.pop(0)

    def close(self) -> None:
        pass


def wanted(after: Entry, until: Entry, entries: int, *, back: Entry = BEGINNING, entry_bytes: int = 100) -> Range:
    return Range(
        topic=TOPIC, partition=3, after=after, until=until, entries=entries, back=back, entry_bytes=entry_bytes
    )


def read(partition: Partition, asked: Range, seconds: float = 5.0) -> list[tuple[int, bytes]]:
    found = list(blocks(partition, asked, seconds=seconds))
    assert all(len(block.numbers) == len(block.values) == len(block.publish_ms) for block in found)
    return [pair for block in found for pair in zip(block.numbers, block.values, strict=True)]


def alone(*places: tuple[int, int]) -> list[Message]:
    return [Message(Id(*place), b"%d:%d" % place) for place in places]


def test_messages_after_the_start_and_up_to_the_end_come_once_and_in_order() -> None:
    partition = Partition(alone((3, 0), (3, 1), (3, 2), (4, 0), (4, 1)))
    found = read(partition, wanted(Entry(3, 0), Entry(4, 0), 3))
    assert [value for _, value in found] == [b"3:1", b"3:2", b"4:0"]
    assert [number for number, _ in found] == [number_of(3, 1, -1), number_of(3, 2, -1), number_of(4, 0, -1)]
    assert partition.starts == [(3, 0)]


def test_a_batch_is_read_whole() -> None:
    messages = [Message(Id(3, entry, batch), b"%d" % batch) for entry in range(3) for batch in range(4)]
    found = read(Partition(messages), wanted(Entry(3, 0), Entry(3, 1), 1))
    assert found == [(number_of(3, 1, batch), b"%d" % batch) for batch in range(4)]


def test_what_a_client_gives_again_after_a_new_connection_counts_once() -> None:
    messages = alone((3, 0), (3, 1), (3, 0), (3, 1), (3, 2))
    assert len(read(Partition(messages), wanted(BEGINNING, Entry(3, 2), 3))) == 3


def test_a_message_in_parts_lies_where_its_last_part_lies() -> None:
    messages = [*alone((3, 0), (3, 1)), Message(Id(3, 5, first=(3, 2)), b"long"), *alone((3, 6))]
    before, after = wanted(BEGINNING, Entry(3, 3), 4), wanted(Entry(3, 3), Entry(3, 6), 3)
    assert [value for _, value in read(Partition(messages), before)] == [b"3:0", b"3:1"]
    assert sorted(value for _, value in read(Partition(messages), after)) == [b"3:6", b"long"]


def test_a_message_whose_first_part_is_the_last_entry_read_comes_once() -> None:
    messages = [*alone((3, 0)), Message(Id(3, 3, first=(3, 1)), b"long"), *alone((3, 4))]
    found = read(Partition(messages), wanted(Entry(3, 1), Entry(3, 4), 3))
    assert sorted(value for _, value in found) == [b"3:4", b"long"]


def test_without_a_hole_nobody_looks_for_messages_that_began_before() -> None:
    partition = Partition(alone((3, 0), (3, 1)))
    read(partition, wanted(BEGINNING, Entry(3, 1), 2))
    assert len(partition.starts) == 1


def test_a_range_whose_entries_are_gone_is_empty() -> None:
    assert read(Partition(alone((9, 0))), wanted(Entry(3, 0), Entry(4, 5), 6)) == []
    assert read(Partition([]), wanted(Entry(3, 0), Entry(4, 5), 6)) == []


def test_what_a_broker_that_has_lost_the_topic_does_not_know_is_read_all_the_same() -> None:
    partition = Partition(alone((3, 0), (3, 1), (3, 2), (3, 3)), stale=2)
    found = read(partition, wanted(Entry(3, 0), Entry(3, 2), 2, back=Entry(3, -1)))
    assert [value for _, value in found] == [b"3:1", b"3:2"]


def test_a_publish_time_of_64_bits_is_cut_to_63() -> None:
    [block] = blocks(Partition([Message(Id(3, 0), b"", (1 << 64) - 1)]), wanted(BEGINNING, Entry(3, 0), 1))
    assert block.publish_ms == [(1 << 63) - 1]


def test_a_topic_that_moves_to_another_broker_only_delays() -> None:
    partition = Partition(alone((3, 0)), errors=[pulsar.ServiceUnitNotReady("moving"), pulsar.Timeout("late")])
    assert len(read(partition, wanted(BEGINNING, Entry(3, 0), 1))) == 1


@pytest.mark.parametrize("error", [pulsar.NotConnected("gone"), pulsar.Timeout("late")])
def test_brokers_that_do_not_answer_are_an_error_that_names_topic_and_entries(error: Exception) -> None:
    partition = Partition(alone((3, 0)), errors=[error] * 9)
    with pytest.raises(TrimtabError, match=r"metrics-partition-3, entries after -1:-1 up to 3:0: "):
        read(partition, wanted(BEGINNING, Entry(3, 0), 1), seconds=0)


@pytest.mark.parametrize(
    ("entry_bytes", "messages"), [(0, 4_000), (100, 4_000), (100_000, 167), (5_000_000, 4), (1 << 40, 4)]
)
def test_the_client_holds_a_bounded_number_of_bytes_ahead(entry_bytes: int, messages: int) -> None:
    partition = Partition(alone((3, 0)))
    read(partition, wanted(BEGINNING, Entry(3, 0), 1, entry_bytes=entry_bytes))
    assert partition.queues == [messages]


def test_blocks_end_by_bytes_and_by_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = [Message(Id(3, entry), b"x" * 10) for entry in range(10)]
    monkeypatch.setattr(fetch, "BLOCK_BYTES", 25)
    sizes = [len(block.values) for block in blocks(Partition(messages), wanted(BEGINNING, Entry(3, 9), 10))]
    assert sizes == [3, 3, 3, 1]
    monkeypatch.setattr(fetch, "BLOCK_MESSAGES", 2)
    sizes = [len(block.values) for block in blocks(Partition(messages), wanted(BEGINNING, Entry(3, 9), 10))]
    assert sizes == [2] * 5


def test_the_first_part_is_read_from_an_id_as_pulsar_client_writes_it() -> None:
    # Of a message of three parts, 3:3 to 3:5, and of one of a batch.
    assert first_part(bytes.fromhex("0803100518003a06080310031800")) == Entry(3, 3)
    assert first_part(bytes.fromhex("08031000180020003005")) is None
    assert first_part(b"") is None
    assert first_part(bytes.fromhex("3a08" + "08ac0210e80718" + "00")) == Entry(300, 1000)


def test_an_id_in_parts_without_a_ledger_is_an_error() -> None:
    with pytest.raises(TrimtabError, match="cannot be read"):
        first_part(bytes.fromhex("3a021000"))

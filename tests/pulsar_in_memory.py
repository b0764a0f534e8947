"""A Pulsar in memory, as far as the log's adapters use pulsar-client: exclusive producers, deduplication, readers.

It can do what a real one does once in a thousand times: lose an answer, so that the client sends again and is not told
where the message lies; or let the process die at any message, before or after that is stored.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pulsar
import pytest

from controller.adapters.pulsar.log import connection, topics
from controller.adapters.pulsar.log.positions import BEGINNING, Entry
from controller.adapters.pulsar.log.ranges import Ledgers, LedgerSize
from controller.log.pulsar import claims
from controller.log.pulsar import log as logs
from controller.settings.pulsar_log import PulsarLogSettings

_LEDGER = 7
_NOWHERE = pulsar.MessageId(-1, -1, -1, -1)


class Killed(BaseException):
    """The process is killed here."""


@dataclass
class StoredMessage:
    """What lies in a partition; also what a reader gets."""

    entry: int
    value: bytes
    key: str
    told: Mapping[str, str]
    time_ms: int

    def message_id(self) -> pulsar.MessageId:
        return pulsar.MessageId(-1, _LEDGER, self.entry, -1)

    def data(self) -> bytes:
        return self.value

    def partition_key(self) -> str:
        return self.key

    def properties(self) -> Mapping[str, str]:
        return self.told

    def publish_timestamp(self) -> int:
        return self.time_ms


@dataclass
class Partition:
    """A partition with its producers."""

    messages: list[Any] = field(default_factory=list)
    #: Name -> the highest number that was stored.
    numbers: dict[str, int] = field(default_factory=dict)
    producers: list["Producer"] = field(default_factory=list)


@dataclass
class PulsarInMemory:
    """The brokers."""

    partitions: dict[str, Partition] = field(default_factory=dict)
    #: Called with the running number of each message: before it is stored, and after.
    before_store: Callable[[int], None] = lambda _: None
    after_store: Callable[[int], None] = lambda _: None
    #: Whether the answer to the message of this running number is lost.
    loses_answer: Callable[[int], bool] = lambda _: False
    sent: int = 0
    #: Of whoever made the last reader.
    asked: dict[str, Any] = field(default_factory=dict)
    clock_ms: int = 1_700_000_000_000
    now_ms: Callable[[], int] = lambda: 0
    names: Iterator[int] = field(default_factory=itertools.count)
    #: By the partition's full name, and their own.
    subscriptions: dict[tuple[str, str], "Subscription"] = field(default_factory=dict)

    def create(self, full: str, number: int) -> None:
        for partition in range(number):
            self.partitions.setdefault(f"{full}-partition-{partition}", Partition())

    def values(self, full: str) -> list[bytes]:
        """What lies in all partitions of a topic, without marks."""
        return [
            message.value
            for name, partition in self.partitions.items()
            if name.startswith(f"{full}-partition-")
            for message in partition.messages
            if "trimtab.mark" not in message.told
        ]

    def drop_connections(self) -> None:
        """What brokers do with those of a process that was killed, or hangs."""
        for partition in self.partitions.values():
            for producer in partition.producers:
                producer.state = "closed"
            partition.producers.clear()
        for subscription in self.subscriptions.values():
            subscription.consumers.clear()
            subscription.choose()

    @contextmanager
    def killed_at(self, nth: int, *, stored: bool) -> Iterator[None]:
        """The process is killed at the *nth* message from now, when that is *stored* or before."""
        last = self.sent + nth

        def kill(number: int) -> None:
            if number == last:
                raise Killed

        name = "after_store" if stored else "before_store"
        setattr(self, name, kill)
        try:
            yield
        finally:
            setattr(self, name, lambda _: None)


@dataclass
class Producer:
    """A producer of one partition."""

    broker: PulsarInMemory
    partition: Partition
    name: str
    number: int
    state: str = "open"

    def send(
        self,
        value: bytes,
        properties: Mapping[str, str] | None = None,
        partition_key: str | None = None,
        sequence_id: int | None = None,
    ) -> pulsar.MessageId:
        broker = self.broker
        broker.sent += 1
        nth = broker.sent
        broker.before_store(nth)
        if self.state == "fenced":
            raise pulsar.ProducerFenced("ProducerFenced")
        if self.state == "closed":
            raise pulsar.AlreadyClosed("AlreadyClosed")
        self.number = self.number + 1 if sequence_id is None else sequence_id
        if self.number <= self.partition.numbers.get(self.name, -1):
            return _NOWHERE
        self.partition.numbers[self.name] = self.number
        broker.clock_ms = max(broker.clock_ms + 1, broker.now_ms())
        stored = StoredMessage(
            len(self.partition.messages), value, partition_key or "", dict(properties or {}), broker.clock_ms
        )
        self.partition.messages.append(stored)
        broker.after_store(nth)
        return _NOWHERE if broker.loses_answer(nth) else stored.message_id()

    def send_async(self, value: bytes, told: Callable[[Any, Any], None], **options: Any) -> None:
        told(pulsar.Result.Ok, self.send(value, **options))

    def is_connected(self) -> bool:
        return self.state == "open"

    def last_sequence_id(self) -> int:
        return self.number

    def close(self) -> None:
        self.state = "closed"
        if self in self.partition.producers:
            self.partition.producers.remove(self)


@dataclass
class Reader:
    """A reader of one partition."""

    partition: Partition
    at: int

    def has_message_available(self) -> bool:
        return self.at < len(self.partition.messages)

    def read_next(self, timeout_millis: int | None = None) -> Any:
        assert timeout_millis is not None
        if not self.has_message_available():
            raise pulsar.Timeout("Timeout")
        self.at += 1
        return self.partition.messages[self.at - 1]

    def seek(self, since_ms: int) -> None:
        times = [message.publish_timestamp() for message in self.partition.messages]
        self.at = next((nth for nth, time_ms in enumerate(times) if time_ms >= since_ms), len(times))

    def close(self) -> None:
        """Nothing is left behind."""


@dataclass
class Subscription:
    """A Failover subscription of one partition: one consumer is sent its messages, the brokers choose it by names."""

    partition: Partition
    number: int
    consumers: list["Consumer"] = field(default_factory=list)
    active: "Consumer | None" = None
    #: Entries up to this one are acknowledged; the next one that is sent.
    acknowledged: int = -1
    next: int = 0

    def choose(self) -> None:
        """Pulsar: AbstractDispatcherSingleActiveConsumer.  Who is new gets all that is not acknowledged."""
        self.consumers.sort(key=lambda each: each.name)
        chosen = self.consumers[self.number % len(self.consumers)] if self.consumers else None
        if chosen is not self.active:
            self.active, self.next = chosen, self.acknowledged + 1


@dataclass(eq=False)
class Consumer:
    """A consumer of one partition; what was sent to it waits there, also when others are sent the rest."""

    subscription: Subscription
    name: str
    most_waiting: int
    waiting: list[Any] = field(default_factory=list)

    def receive(self, timeout_millis: int | None = None) -> Any:
        assert timeout_millis is not None
        held = self.subscription
        if held.active is self:
            sent = held.partition.messages[held.next :][: self.most_waiting - len(self.waiting)]
            self.waiting += sent
            held.next += len(sent)
        if not self.waiting:
            raise pulsar.Timeout("Timeout")
        return self.waiting.pop(0)

    def acknowledge_cumulative(self, at: pulsar.MessageId) -> None:
        self.subscription.acknowledged = max(self.subscription.acknowledged, at.entry_id())

    def close(self) -> None:
        if self in self.subscription.consumers:
            self.subscription.consumers.remove(self)
            self.subscription.choose()


class Client:
    """One process's connection."""

    def __init__(self, broker: PulsarInMemory) -> None:
        self._broker = broker
        self._producers: list[Producer] = []
        self._consumers: list[Consumer] = []

    def get_topic_partitions(self, full: str) -> list[str]:
        found = [name for name in self._broker.partitions if name.startswith(f"{full}-partition-")]
        return found or [full]

    def create_producer(
        self,
        full: str,
        producer_name: str | None = None,
        access_mode: Any = pulsar.ProducerAccessMode.Shared,
        **_: Any,
    ) -> Producer:
        broker, partition = self._broker, self._broker.partitions[full]
        name = producer_name or f"standalone-{next(broker.names)}"
        if access_mode == pulsar.ProducerAccessMode.ExclusiveWithFencing:
            for each in partition.producers:
                each.state = "fenced"
            partition.producers.clear()
        elif any(each.name == name for each in partition.producers):
            raise pulsar.ProducerBusy("ProducerBusy")
        made = Producer(broker, partition, name, partition.numbers.get(name, -1))
        partition.producers.append(made)
        self._producers.append(made)
        return made

    def create_reader(self, full: str, start: Any, *, start_message_id_inclusive: bool = False, **asked: Any) -> Reader:
        self._broker.asked = asked
        partition = self._broker.partitions[full]
        entry, end = start.entry_id(), len(partition.messages)
        if entry < 0:
            return Reader(partition, 0)
        if entry >= end:
            return Reader(partition, max(0, end - 1) if start_message_id_inclusive else end)
        return Reader(partition, entry if start_message_id_inclusive else entry + 1)

    def subscribe(
        self, full: str, name: str, *, consumer_name: str = "", receiver_queue_size: int = 1000, **_: Any
    ) -> Consumer:
        broker = self._broker
        fresh = Subscription(broker.partitions[full], int(full.rpartition("-")[2]))
        subscription = broker.subscriptions.setdefault((full, name), fresh)
        made = Consumer(subscription, consumer_name, receiver_queue_size)
        subscription.consumers.append(made)
        subscription.choose()
        self._consumers.append(made)
        return made

    def close(self) -> None:
        for producer in self._producers:
            producer.close()
        for consumer in self._consumers:
            consumer.close()

    shutdown = close


class _Admin:
    def __init__(self, broker: PulsarInMemory) -> None:
        self._broker = broker

    def policies(self, _: str) -> dict[str, Any]:
        return {"deduplicationEnabled": True}

    def create_topic(self, namespace: str, name: str, partitions: int) -> None:
        self._broker.create(f"persistent://{namespace}/{name}", partitions)

    def within(self, _: float) -> "_Admin":
        return self

    def extent(self, topic: str, partition: int) -> Ledgers:
        found = self._broker.partitions[f"{topic}-partition-{partition}"].messages
        return Ledgers(ledgers=(LedgerSize(_LEDGER, len(found)),))

    def since(self, topic: str, partition: int, time_ms: int) -> Entry:
        reader = Reader(self._broker.partitions[f"{topic}-partition-{partition}"], 0)
        reader.seek(time_ms)
        return Entry(_LEDGER, reader.at - 1) if reader.at else BEGINNING

    def active_consumers(self, namespace: str, name: str, subscription: str) -> dict[int, str]:
        prefix = f"persistent://{namespace}/{name}-partition-"
        return {
            each.number: each.active.name
            for (full, of), each in self._broker.subscriptions.items()
            if of == subscription and full.startswith(prefix) and each.active is not None
        }

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> PulsarInMemory:
    """All connections lead to it."""
    return new_broker(monkeypatch)


def new_broker(monkeypatch: pytest.MonkeyPatch) -> PulsarInMemory:
    """A new one, which all connections lead to from now on."""
    made = PulsarInMemory()
    monkeypatch.setattr(connection, "log_client", lambda *_, **__: Client(made))
    for module in (topics, claims):
        monkeypatch.setattr(module, "log_admin", lambda _: _Admin(made))
    monkeypatch.setattr(logs, "log_extents", lambda _: _Admin(made))
    return made


def log_settings(partitions: int = 2) -> PulsarLogSettings:
    return PulsarLogSettings(service_url="pulsar://a:6650", admin_url=("http://a:8080",), partitions=partitions)

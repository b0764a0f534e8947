"""Traffic of known rates on a real Pulsar cluster, by Pulsar's own client: for the demo and for tests.

Every message carries its number within its topic, which is its sequence id, too.  At the end this shows whether
each acknowledged message was received.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pulsar

from controller.adapters.network.deadline import Deadline
from controller.adapters.network.waiting import wait_for

_SUBSCRIPTION: Final = "trimtab-traffic"
_STEP_SECONDS: Final = 0.02
_POLL_SECONDS: Final = 0.1
_PAYLOAD_BYTES: Final = 200


class Traffic:
    """*rates*: topic -> msg/s sent to it; all of it is received and acknowledged by one consumer.

    The client logs to the file *log*; closed connections are no errors here.

    A context manager: traffic flows from its start to its end, or until it is drained.
    """

    def __init__(self, service_url: str, rates: Mapping[str, float], log: Path) -> None:
        self.topics: Sequence[str] = tuple(rates)
        self._rates, self._service_url, self._log = tuple(rates.values()), service_url, log
        #: Messages that should have been sent by now, by topic.
        self._due = [0.0] * len(self.topics)
        #: Numbers of messages, by topic: sent, acknowledged by the brokers, received by the consumer.
        self.sent = [0] * len(self.topics)
        self.acknowledged: list[set[int]] = [set() for _ in self.topics]
        self.received: list[set[int]] = [set() for _ in self.topics]
        self._until = threading.Event()
        self._sending = threading.Thread(target=self._send, name="traffic", daemon=True)

    def __enter__(self) -> Self:
        self._client = pulsar.Client(
            self._service_url, logger=pulsar.FileLogger(pulsar.LoggerLevel.Warn, str(self._log))
        )
        try:
            # First the subscriptions: they keep whatever is sent.
            self._consumer = self._client.subscribe(
                list(self.topics), _SUBSCRIPTION, message_listener=self._receive, receiver_queue_size=100
            )
            self._producers = [
                self._client.create_producer(topic, block_if_queue_full=True, batching_enabled=True)
                for topic in self.topics
            ]
        except BaseException:
            self._client.close()
            raise
        self._sending.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop_sending()
        with suppress(pulsar.PulsarException):  # the cluster may be gone
            self._client.close()

    def drain(self, seconds: float) -> dict[str, list[int]]:
        """Stop sending, wait until all is acknowledged and received, and return ``missing()``.

        Gives up after *seconds*.
        """
        deadline = Deadline.after(seconds)
        self._stop_sending()
        with suppress(TimeoutError):
            wait_for(self._is_drained, deadline.remaining, every=_POLL_SECONDS)
        return self.missing()

    def _is_drained(self) -> bool:
        return [*map(len, self.acknowledged)] == self.sent and not self.missing()

    def missing(self) -> dict[str, list[int]]:
        """Topic -> numbers that the brokers acknowledged and that have not been received yet; only topics with some."""
        # In this order: what is received while this is asked is not missed.
        snapshots = [acknowledged.copy() for acknowledged in self.acknowledged]
        lost = [sorted(numbers - received) for numbers, received in zip(snapshots, self.received, strict=True)]
        return {topic: numbers for topic, numbers in zip(self.topics, lost, strict=True) if numbers}

    @property
    def total_acknowledged(self) -> int:
        """Messages that the brokers acknowledged."""
        return sum(map(len, self.acknowledged))

    def _stop_sending(self) -> None:
        self._until.set()
        if self._sending.is_alive():
            self._sending.join()

    def set_rates(self, rates: Mapping[str, float]) -> None:
        """From now on send *rates*: msg/s of each topic."""
        self._rates = tuple(rates[topic] for topic in self.topics)

    def _send(self) -> None:
        before = time.monotonic()
        while not self._until.wait(_STEP_SECONDS):
            now = time.monotonic()
            seconds, before = now - before, now
            for topic, (producer, rate) in enumerate(zip(self._producers, self._rates, strict=True)):
                self._due[topic] += seconds * rate
                for number in range(self.sent[topic], int(self._due[topic])):
                    self.sent[topic] = number + 1
                    content = f"{topic} {number} ".encode().ljust(_PAYLOAD_BYTES, b".")
                    producer.send_async(content, partial(self._acknowledge, topic, number), sequence_id=number)

    def _acknowledge(self, topic: int, number: int, result: Any, _: Any) -> None:
        if result == pulsar.Result.Ok:
            self.acknowledged[topic].add(number)

    def _receive(self, consumer: Any, message: Any) -> None:
        topic, number, _ = message.data().split(b" ", 2)
        self.received[int(topic)].add(int(number))
        with suppress(pulsar.PulsarException):  # its topic is moving: it comes once more
            consumer.acknowledge(message)

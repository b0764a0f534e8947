"""Many clients of a real Pulsar cluster that send and receive steadily, and the longest gap in what each one does.

It shows what an unload costs clients: producers whose sends are acknowledged late, consumers that receive nothing.
"""

import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pulsar

from controller.adapters.network.deadline import Deadline
from controller.model.errors import TrimtabError

_STEP_SECONDS: Final = 0.002
_POLL_SECONDS: Final = 0.05
#: Subscribing to a topic of a cluster that has just started may wait for its first leader.
_BEGIN_SECONDS: Final = 120
_PAYLOAD: Final = b"." * 200


class LongestGaps:
    """The longest time between two successive events of each of *count* sources, in seconds.

    A gap counts where it ends: one that began before ``restart`` counts in full, one that is still open does not count.
    """

    def __init__(self, count: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = [math.nan] * count
        self._longest = [0.0] * count

    def event(self, source: int) -> None:
        """*source* did something.  Threads may call this at the same time for different sources."""
        now = self._clock()
        gap = now - self._last[source]
        if gap > self._longest[source]:  # false for the first event
            self._longest[source] = gap
        self._last[source] = now

    def restart(self) -> None:
        """Forget the gaps so far."""
        self._longest = [0.0] * len(self._longest)

    def longest(self) -> list[float]:
        """By source, since ``restart``; 0.0 where no gap ended."""
        return list(self._longest)

    def silent_since(self, moment: float) -> int:
        """How many sources have had no event after *moment* of the clock."""
        return sum(not last > moment for last in self._last)


class SteadyClients:
    """For each of *topics* a client with *each* producers and as many consumers, all of subscriptions of their own.

    Every producer sends *rate* messages a second, one by one, without batches.  The clients log to the file *log*;
    closed connections are no errors here.

    A context manager: traffic flows from its start to its end.
    """

    def __init__(self, service_url: str, topics: Sequence[str], *, each: int, rate: float, log: Path) -> None:
        self._service_url, self._topics, self._each, self._rate, self._log = service_url, topics, each, rate, log
        #: Of acknowledged sends, and of receptions; those of the first topic's clients come first.
        self.sent, self.received = LongestGaps(len(topics) * each), LongestGaps(len(topics) * each)
        self._clients: list[pulsar.Client] = []
        self._producers: list[pulsar.Producer] = []
        self._until = threading.Event()
        self._sending = threading.Thread(target=self._send, name="clients", daemon=True)

    def __enter__(self) -> Self:
        try:
            for number, topic in enumerate(self._topics):
                client = pulsar.Client(
                    self._service_url,
                    operation_timeout_seconds=_BEGIN_SECONDS,
                    logger=pulsar.FileLogger(pulsar.LoggerLevel.Warn, str(self._log)),
                )
                self._clients.append(client)
                for nth in range(number * self._each, (number + 1) * self._each):
                    client.subscribe(topic, f"clients-{nth}", message_listener=partial(self._receive, nth))
                    self._producers.append(client.create_producer(topic))
        except BaseException:
            self._close()
            raise
        self._sending.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._until.set()
        self._sending.join()
        self._close()

    def restart(self) -> None:
        """Forget the gaps so far."""
        self.sent.restart()
        self.received.restart()

    def wait_until_all_work(self, seconds: float) -> None:
        """Wait until every client has sent, and received, after now.  TrimtabError after *seconds*."""
        begin, deadline = time.monotonic(), Deadline.after(seconds)
        while silent := self.sent.silent_since(begin) + self.received.silent_since(begin):
            if deadline.passed:
                raise TrimtabError(f"{silent} producers and consumers did nothing for {seconds:.0f} s: see {self._log}")
            self._until.wait(_POLL_SECONDS)

    def _send(self) -> None:
        begin, number, per_second = time.monotonic(), 0, self._rate * len(self._producers)
        while not self._until.wait(_STEP_SECONDS):
            due = int((time.monotonic() - begin) * per_second)
            for turn in range(number, due):
                nth = turn % len(self._producers)
                with suppress(pulsar.PulsarException):  # its queue is full: nothing was acknowledged for long
                    self._producers[nth].send_async(_PAYLOAD, partial(self._acknowledged, nth))
            number = due

    def _acknowledged(self, nth: int, result: Any, _: Any) -> None:
        if result == pulsar.Result.Ok:
            self.sent.event(nth)

    def _receive(self, nth: int, consumer: Any, message: Any) -> None:
        self.received.event(nth)
        with suppress(pulsar.PulsarException):  # its topic is moving: it comes once more
            consumer.acknowledge(message)

    def _close(self) -> None:
        for client in self._clients:
            with suppress(pulsar.PulsarException):  # the cluster may be gone
                client.close()

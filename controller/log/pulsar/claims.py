"""Claims in Pulsar: the executors share a Failover subscription, so each partition of the commands goes to one of them.

An executor writes what it has started and answered to a control topic.  Each partition of that topic has one executor
as its writer at a time: with the first event of a partition of commands the executor takes over the control partition
of the same number, and the brokers fence the executor before it.  Results follow from what is written there, and then
the subscription is acknowledged.

An executor whose partition was taken over continues with its others.  It drops all messages of that partition, which
the other executor may have by now, and reconnects under the same name; the brokers redeliver what is not answered.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, Final, Protocol

import pulsar

from controller.adapters.network.deadline import Deadline
from controller.adapters.pulsar.http import PulsarError
from controller.adapters.pulsar.log.client import partition_name, topic_name, where
from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.errors import DENIED, failure, meaning
from controller.adapters.pulsar.log.messages import AS_THEY_ARE, properties_of
from controller.adapters.pulsar.log.positions import is_shared
from controller.adapters.pulsar.log.topics import LogAdmin, executors_control, log_admin
from controller.log.followed import FollowedClaim, Primitives, unfinished_since
from controller.log.port import LogRecord, Out, PartitionTakenOverError, Position, Start, TakenOverError
from controller.log.pulsar.exclusive import ExclusivePartition
from controller.log.pulsar.reading import PartitionReader, ReadWindows, position_of, record_of
from controller.log.pulsar.writing import close_quietly
from controller.model.errors import AccessDeniedError, LeadershipLostError, TrimtabError

log = logging.getLogger(__name__)

#: Record size, with all that executors have started and answered.
LARGEST_STATE: Final = 1_000_000
#: How often to check for new partitions of the command topic, and of the topics that need as many.
_REFRESH_SECONDS: Final = 10.0
#: For the answer about who has which partition; commands wait meanwhile.
_STATS_SECONDS: Final = 2.0
_IDLE_SECONDS: Final = 0.05
_REMEDY: Final = "stop all executors; then `pulsar-admin topics delete {topic}` clears the record of started commands"
_WAIT_SECONDS: Final = 0.2
#: Events that wait in this process: few, since another executor gets them again when a partition changes hands.
_QUEUE: Final = 20


class PulsarClaim(FollowedClaim):
    """Claim: a partition of the control topic that this executor has taken over."""

    def __init__(
        self,
        system: Primitives,
        cell: "ControlCell",
        partition: int,
        *,
        name: str,
        done: Callable[[Position], None],
        lost: Callable[[], None],
    ) -> None:
        """*done*: acknowledges the commands up to a position.  *lost*: called once another executor has the claim."""
        self._acknowledge, self._lost = done, lost
        super().__init__(system, cell, partition, name=name)
        #: What was done before.
        self.resumed = self.done

    def store(self, state: bytes) -> None:
        """See Claim."""
        with self._noticing():
            super().store(state)

    def finish(self, state: bytes, results: Sequence[Out], upto: Position) -> None:
        """See Claim.  If the process dies before the subscription moves on, the next one knows the answers."""
        with self._noticing():
            super().finish(state, results, upto)
        self._acknowledge(upto)

    @contextmanager
    def _noticing(self) -> Iterator[None]:
        try:
            yield
        except PartitionTakenOverError:
            self._lost()
            raise


class ControlCell:
    """Cell: the last record of a partition of the control topic."""

    def __init__(self, control: ExclusivePartition, place: str) -> None:
        self._control = control
        self.where = f"the last record of {place}"
        self.remedy = _REMEDY.format(topic=place)

    def read(self) -> bytes:
        """See Cell."""
        value = b""
        for record in self._control.before(1):
            value = record.value
        return value

    def write(self, value: bytes) -> None:
        """See Cell."""
        self._control.append([Out("commands", value)])

    def close(self) -> None:
        """See Cell."""
        self._control.leave()


class ClaimsSystem(Primitives, Protocol):
    """What claims are made of."""

    connection: LogConnection
    windows: ReadWindows


class PulsarClaims:
    """Claims: see the module docstring."""

    def __init__(self, system: ClaimsSystem, group: str, *, cluster: str, name: str, patience_seconds: float) -> None:
        """*name* identifies this executor while its process runs: the brokers distribute partitions by name.

        *patience_seconds*: how long to wait for the answers of an executor that has just started commands.
        """
        self._system, self._connection, self._cluster = system, system.connection, cluster
        self._subscription, self._name = f"{group}-{cluster}", name
        self._patience_seconds = patience_seconds
        self._log = self._connection.log
        self._place = where(self._log, self._log.commands_topic)
        self._consumers: dict[int, pulsar.Consumer] = {}
        self._claims: dict[int, PulsarClaim] = {}
        self._admin: LogAdmin = log_admin(self._log)
        #: Partitions that the subscription sends to this executor, as the brokers answered last.
        self._active: set[int] = set()
        self._is_unknown = False
        #: Partitions that another executor has taken over since the last poll.
        self._lost: set[int] = set()
        #: Partition -> position -> a message that was polled and not acknowledged.
        self._unacknowledged: dict[int, dict[Position, pulsar.MessageId]] = {}
        self._next_look = Deadline(0.0)
        self._without_results = 0
        try:
            self._look()
        except BaseException:
            self.close()
            raise

    @property
    def largest_state(self) -> int:
        """See Claims."""
        return LARGEST_STATE

    @property
    def remedy(self) -> str:
        """See Claims."""
        return _REMEDY.format(topic=topic_name(self._log, executors_control(self._log)))

    @property
    def assigned(self) -> int | None:
        """See Claims.  The brokers are asked every ten seconds: the client library does not tell what is taken away."""
        return len(self._active)

    def poll(self, limit: int, timeout_seconds: float) -> list[LogRecord]:
        """See Claims."""
        self._reconnect_lost()
        self._look()
        deadline, records = Deadline.after(timeout_seconds), list[LogRecord]()
        while True:
            for partition in sorted(self._consumers):
                records += self._poll_partition(partition, limit - len(records))
            if records or deadline.passed:
                return records
            time.sleep(min(_IDLE_SECONDS, deadline.remaining))

    def claim(self, partition: int) -> PulsarClaim:
        """See Claims."""
        if partition not in self._claims:
            self._claims[partition] = self._take_over(partition)
            self._active.add(partition)
            log.info("reading the commands of partition %d", partition)
        return self._claims[partition]

    def close(self) -> None:
        """See Claims."""
        for claim in self._claims.values():
            claim.close()
        for consumer in self._consumers.values():
            close_quietly(consumer)
        self._admin.close()

    def _poll_partition(self, partition: int, limit: int) -> list[LogRecord]:
        """Up to *limit* records of *partition* that are at hand."""
        records: list[LogRecord] = []
        while len(records) < limit:
            message = self._receive(partition)
            if message is None:
                break
            try:
                claim = self.claim(partition)
            except PartitionTakenOverError:
                self._lost.add(partition)
                return []
            position = position_of(message)
            self._unacknowledged.setdefault(partition, {})[position] = message.message_id()
            # A batch that is finished in part comes again whole.
            is_done = position <= claim.resumed and not is_shared(position)
            record = None if is_done else record_of(partition, position, message, properties_of(message))
            records += [] if record is None else [record]
        return records

    def _receive(self, partition: int) -> Any:
        try:
            return self._consumers[partition].receive(timeout_millis=1)
        except pulsar.Timeout:
            return None
        except DENIED as error:
            raise failure(self._place, error, operation="consume") from error
        except pulsar.PulsarException as error:
            raise TakenOverError(f"{self._place}, partition {partition}: {meaning(error)}") from error

    def _take_over(self, partition: int) -> PulsarClaim:
        name = executors_control(self._log)
        try:
            self._wait_for_results(name, partition)
            control = ExclusivePartition(
                self._connection, self._system.windows, name, partition, writer=f"trimtab-executor-{self._cluster}"
            )
            control.take_over(b"")
        except AccessDeniedError:
            raise
        except LeadershipLostError as error:
            raise PartitionTakenOverError(f"{self._place}, partition {partition}: another executor has it") from error
        except TrimtabError as error:
            raise TakenOverError(f"{self._place}, partition {partition}: {error}") from error
        cell = ControlCell(control, partition_name(topic_name(self._log, name), partition))
        return PulsarClaim(
            self._system,
            cell,
            partition,
            name=f"results-{self._cluster}",
            done=partial(self._acknowledge, partition),
            lost=partial(self._lost.add, partition),
        )

    def _wait_for_results(self, name: str, partition: int) -> None:
        """Wait for the answers of the executor that has the partition: a takeover makes its running command unknown."""
        deadline = Deadline.after(self._patience_seconds)  # its clock may be ahead
        while not deadline.passed:
            with closing(PartitionReader(self._connection, name, partition, Start(last=True), queue=1)) as reader:
                newest = next(map(reader.record, reader.messages()), None)
            started_ms = None if newest is None else unfinished_since(newest.value)
            if started_ms is None or time.time_ns() // 1_000_000 - started_ms >= self._patience_seconds * 1000:
                return
            time.sleep(_WAIT_SECONDS)

    def _acknowledge(self, partition: int, upto: Position) -> None:
        waiting = self._unacknowledged.get(partition, {})
        finished = [position for position in waiting if position <= upto]
        last = [waiting.pop(position) for position in sorted(finished)][-1:]
        try:
            for message in last:
                self._consumers[partition].acknowledge_cumulative(message)
        except pulsar.PulsarException as error:
            # They are redelivered, and the state says that they are finished.
            log.debug("%s, partition %d: cannot acknowledge: %s", self._place, partition, meaning(error))

    def _reconnect_lost(self) -> None:
        """Drop all state of the lost partitions, and reconnect to them."""
        for partition in sorted(self._lost):
            log.info("partition %d of the commands: another executor has it now", partition)
            if partition in self._claims:
                self._claims.pop(partition).close()
            self._unacknowledged.pop(partition, None)
            self._active.discard(partition)
            close_quietly(self._consumers[partition])
            self._consumers[partition] = self._subscribe(partition)
        self._lost.clear()

    def _look(self) -> None:
        """Subscribe to the partitions that the command topic has by now, as far as the other topics have them."""
        if not self._next_look.passed:
            return
        self._next_look = Deadline.after(_REFRESH_SECONDS)
        commands = self._connection.existing(self._log.commands_topic)
        if commands != len(self._consumers):
            self._subscribe_to_new(commands)
        self._ask_who_is_active()

    def _ask_who_is_active(self) -> None:
        """Update ``assigned``.  A failure is only logged, since executing does not depend on it."""
        name, namespace = self._log.commands_topic, self._log.namespace
        try:
            consumers = self._admin.within(_STATS_SECONDS).active_consumers(namespace, name, self._subscription)
        except PulsarError as error:
            if not self._is_unknown:
                log.warning("%s: cannot determine the assigned partitions: %s", self._place, error)
            self._is_unknown = True
            return
        self._is_unknown = False
        self._active = {partition for partition, consumer in consumers.items() if consumer == self._name}

    def _subscribe_to_new(self, commands: int) -> None:
        settings, connection = self._log, self._connection
        others = {name: connection.existing(name) for name in (settings.results_topic, executors_control(settings))}
        usable = min(commands, *others.values())
        if commands > usable and commands != self._without_results:
            log.error(
                "%s has %d partitions, and %s: commands of partitions %s are not carried out until those have them",
                settings.commands_topic,
                commands,
                ", ".join(f"{name} {number}" for name, number in others.items()),
                list(range(usable, commands)),
            )
            self._without_results = commands
        for partition in range(len(self._consumers), usable):
            self._consumers[partition] = self._subscribe(partition)

    def _subscribe(self, partition: int) -> pulsar.Consumer:
        full = partition_name(topic_name(self._log, self._log.commands_topic), partition)
        return self._connection.patiently(
            lambda: self._connection.client.subscribe(
                full,
                self._subscription,
                consumer_type=pulsar.ConsumerType.Failover,
                consumer_name=self._name,
                initial_position=pulsar.InitialPosition.Earliest,
                receiver_queue_size=_QUEUE,
                **AS_THEY_ARE,
            ),
            self._log.commands_topic,
            "consume",
        )

"""Inbox in Pulsar: the executors share a Failover subscription, so each partition of the commands goes to one of them.

What an executor has begun and answered it writes to a control topic, whose partition of the same number one executor
at a time writes: with the first event of a partition it takes that partition over, and the brokers fence whoever had
it.  A command is begun once that is written; it is answered once that is written.  Results follow from it, and then
the subscription moves on.  Whoever takes a partition over writes the last results again: those that are there are
dropped.

An executor whose partition was taken over goes on with its others.  Of that partition it forgets all that it had taken,
and connects to it anew, under the same name: what waits for it in this process may be the other's by now, and the
brokers send again what nobody has answered.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final
from uuid import uuid4

import pulsar

from controller.adapters.network.deadline import Deadline
from controller.adapters.pulsar.http import PulsarError
from controller.adapters.pulsar.log.client import partition_name, topic_name, where
from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.messages import AS_THEY_ARE, properties_of
from controller.adapters.pulsar.log.owned import OwnedPartition
from controller.adapters.pulsar.log.reader import MARK, place_of
from controller.adapters.pulsar.log.topics import create_topics, executors_control, log_admin
from controller.adapters.pulsar.log.words import DENIED, failure, meaning
from controller.adapters.pulsar.log.writer import close_quietly
from controller.model.errors import SettingsError
from controller.ports.inbox import AnswerRecord, Delivery, PartitionMemory, PartitionTakenOverError, TakenOverError
from controller.settings.pulsar_log import PulsarLogSettings
from controller.settings.trimtab_toml import ExecutorSettings

log = logging.getLogger(__name__)

#: How often to check for new partitions of the command topic, and of the topics that need as many.
_REFRESH_SECONDS: Final = 10.0
#: For the answer about who has which partition; commands wait meanwhile.
_STATS_SECONDS: Final = 2.0
_IDLE_SECONDS: Final = 0.05
#: Events that wait in this process: few, since another executor gets them again when a partition changes hands.
_QUEUE: Final = 20


class PulsarInbox:
    """See the module docstring."""

    def __init__(
        self, settings: PulsarLogSettings, executor: ExecutorSettings, *, cluster: str, name: str = ""
    ) -> None:
        """*name* is this executor's for as long as its process runs: the brokers share the partitions out by names.

        "": one of its own.
        """
        self._log, self._cluster = settings, cluster
        self._subscription = f"{executor.group}-{cluster}"
        self._patience_seconds = float(executor.session_timeout_seconds)
        self._name = name or str(uuid4())
        self._connection = LogConnection(settings)
        self._consumers: dict[int, pulsar.Consumer] = {}
        self._owned: dict[int, OwnedPartition] = {}
        self._admin = log_admin(settings)
        #: Partitions that the subscription sends to this executor, as the brokers said last.
        self._active: set[int] = set()
        self._told_unknown = False
        #: Those that another executor has taken over since the last take.
        self._gone: set[int] = set()
        #: Partition -> the last event taken that is not answered.
        self._taken: dict[int, pulsar.MessageId] = {}
        self._next_look = Deadline(0.0)
        self._without_results = 0
        try:
            names = (settings.commands_topic, settings.results_topic, executors_control(settings))
            found = create_topics(self._connection, *names)
            commands, results, control = (found[name] for name in names)
            if commands > min(results, control):
                raise SettingsError(
                    f"{names[0]} has {commands} partitions, {names[1]} {results} and {names[2]} {control}: the others"
                    " need at least as many, since a result goes to the partition with the number of its command's"
                )
            self._look()
        except BaseException:
            self._admin.close()
            self._connection.close()
            raise

    @property
    def assigned(self) -> int | None:
        """See Inbox.  The brokers are asked every ten seconds: the client library does not tell what is taken away."""
        return len(self._active)

    def take(self, most: int, timeout_seconds: float) -> list[Delivery]:
        """See Inbox."""
        self._begin_anew()
        self._look()
        deadline, taken = Deadline.after(timeout_seconds), list[Delivery]()
        while True:
            for partition in sorted(self._consumers):
                taken += self._take(partition, most - len(taken))
            if taken or deadline.passed:
                return taken
            time.sleep(min(_IDLE_SECONDS, deadline.left))

    def memory(self, partition: int) -> PartitionMemory:
        """See Inbox."""
        with self._ours(partition) as owned:
            return owned.memory

    def newest_epoch(self, partition: int) -> int:
        """See Inbox.  The end of the partition is read once a second at most."""
        with self._ours(partition) as owned:
            return owned.newest_epoch()

    def begin(self, partition: int, command: str) -> None:
        """See Inbox."""
        with self._ours(partition) as owned:
            owned.memory.begun.add(command)
            owned.store()

    def answer(self, answers: Sequence[AnswerRecord]) -> None:
        """See Inbox.  If the process dies before the subscription moves on, the next one knows the answers."""
        for partition in sorted(self._taken.keys() - self._gone):
            with suppress(PartitionTakenOverError), self._ours(partition) as owned:
                owned.memory.settle()
                own = [answer for answer in answers if answer.partition == partition]
                owned.answer(own, place_of(self._taken[partition]))
        for partition in sorted(self._taken.keys() - self._gone):
            try:
                self._consumers[partition].acknowledge_cumulative(self._taken[partition])
            except pulsar.PulsarException as error:
                # It comes again, and is known by its result.
                log.debug("%s: not acknowledged: %s", self._place(partition), meaning(error))
        self._taken.clear()
        if self._gone:
            place, gone = where(self._log, self._log.commands_topic), sorted(self._gone)
            raise PartitionTakenOverError(f"{place}: another executor has partitions {gone} now")

    def close(self) -> None:
        """See Inbox."""
        for owned in self._owned.values():
            owned.close()
        self._admin.close()
        self._connection.close()

    @contextmanager
    def _ours(self, partition: int) -> Iterator[OwnedPartition]:
        """What this executor has of *partition*, which is remembered as gone where another one has it now."""
        if partition in self._gone or partition not in self._owned:
            raise PartitionTakenOverError(f"{self._place(partition)}: another executor has it now")
        try:
            yield self._owned[partition]
        except PartitionTakenOverError:
            self._gone.add(partition)
            raise

    def _begin_anew(self) -> None:
        """Forget all of the partitions that are gone, and connect to them as if they were new."""
        for partition in sorted(self._gone):
            log.info("partition %d of the commands: another executor has it now", partition)
            owned = self._owned.pop(partition, None)
            if owned is not None:
                owned.close()
            self._taken.pop(partition, None)
            self._active.discard(partition)
            close_quietly(self._consumers[partition])
            self._consumers[partition] = self._subscribe(partition)
        self._gone.clear()

    def _take(self, partition: int, most: int) -> list[Delivery]:
        """Up to *most* events of *partition* that are at hand."""
        taken: list[Delivery] = []
        while len(taken) < most:
            try:
                message = self._consumers[partition].receive(timeout_millis=1)
            except pulsar.Timeout:
                break
            except DENIED as error:
                raise failure(self._place(partition), error, operation="consume") from error
            except pulsar.PulsarException as error:
                raise TakenOverError(f"{self._place(partition)}: {meaning(error)}") from error
            if partition not in self._owned and not self._takes_over(partition, message):
                return []
            at = message.message_id()
            self._taken[partition] = at
            # A batch that is answered in part comes again whole.
            if MARK not in properties_of(message) and place_of(at) > self._owned[partition].done:
                taken.append(Delivery(partition, message.data()))
        return taken

    def _takes_over(self, partition: int, message: pulsar.Message) -> bool:
        """Whether *partition* is this executor's now, of which *message* came; another one may be faster."""
        try:
            self._owned[partition] = OwnedPartition(
                self._connection, partition, cluster=self._cluster, patience_seconds=self._patience_seconds
            )
        except PartitionTakenOverError:
            self._gone.add(partition)
            return False
        self._active.add(partition)
        log.info("reading the commands of partition %d from %s", partition, message.message_id())
        return True

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
        """For ``assigned`` alone: what is unknown keeps nobody from work."""
        name, namespace = self._log.commands_topic, self._log.namespace
        try:
            found = self._admin.within(_STATS_SECONDS).active_consumers(namespace, name, self._subscription)
        except PulsarError as error:
            if not self._told_unknown:
                log.warning("%s: how many partitions this executor has is not known: %s", where(self._log, name), error)
            self._told_unknown = True
            return
        self._told_unknown = False
        self._active = {partition for partition, consumer in found.items() if consumer == self._name}

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

    def _place(self, partition: int) -> str:
        return f"{where(self._log, self._log.commands_topic)}, partition {partition}"

"""Commands in Pulsar that several executors share: what becomes of those that an executor holds when it loses them."""

from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.topics import create_topics
from controller.executor.loop import Executor
from controller.log.factory import log_system
from controller.log.inbox import AnswerRecord, Delivery, Inbox
from controller.log.port import PartitionTakenOverError
from controller.log.pulsar.log import PulsarLog
from controller.model.decision import Command
from controller.settings.trimtab_toml import ExecutorSettings, Settings
from controller.wire.commands import command_event, command_key, parse_event
from controller.wire.results import answered_command
from tests.commands import T, unload
from tests.pulsar_in_memory import Client, PulsarInMemory, broker, log_settings
from tests.records import CLUSTER, as_bytes, result
from tests.unit.executor.test_executor_loop import Owners

__all__ = ["broker"]

LOG = log_settings()
#: By partition.
COMMANDS = [
    [
        unload(f"tenant/ns-{partition}/0x{low}0000000_0x{high}0000000", cluster=CLUSTER)
        for low, high in ("04", "48", "8c")
    ]
    for partition in range(2)
]


@pytest.fixture
def opened(broker: PulsarInMemory) -> Iterator[ExitStack]:
    with closing(LogConnection(LOG)) as connection:
        create_topics(connection)
    issue(broker, *COMMANDS[0][:2], partition=0)
    issue(broker, *COMMANDS[1][:2], partition=1)
    with ExitStack() as stack:
        yield stack


def issue(broker: PulsarInMemory, *commands: Command, partition: int) -> None:
    full = f"persistent://{LOG.namespace}/{LOG.commands_topic}-partition-{partition}"
    with closing(Client(broker).create_producer(full)) as producer:
        for command in commands:
            producer.send(command_event(command, 1, T), partition_key=command_key(command))


def inbox(opened: ExitStack, name: str) -> Inbox:
    log = PulsarLog(LOG, cluster=CLUSTER, executor=name, claim_seconds=0.0)
    made = Inbox(log, group="executors", cluster=CLUSTER)
    return opened.enter_context(closing(made))


def ids(taken: list[Delivery]) -> list[str]:
    return [parse_event(each.value).id for each in taken]


def answers(taken: list[Delivery]) -> list[AnswerRecord]:
    return [AnswerRecord(each.partition, "key", as_bytes(result(id=parse_event(each.value).id))) for each in taken]


def answered(broker: PulsarInMemory) -> list[str]:
    return [answered_command(value) for value in broker.values(f"persistent://{LOG.namespace}/{LOG.results_topic}")]


def names(*commands: Command) -> list[str]:
    return [command.id for command in commands]


def test_an_executor_that_loses_a_partition_begins_and_answers_nothing_of_it_and_all_of_its_others(
    broker: PulsarInMemory, opened: ExitStack
) -> None:
    first = inbox(opened, "a")
    held = first.poll(16, 0.0)
    assert ids(held) == names(*COMMANDS[0][:2], *COMMANDS[1][:2])
    second = inbox(opened, "b")  # by its name the brokers give it partition 1
    theirs = second.poll(16, 0.0)
    assert ids(theirs) == names(*COMMANDS[1][:2])
    for _ in range(2):  # also when it is asked again
        with pytest.raises(PartitionTakenOverError, match="another executor has it now"):
            first.begin(1, COMMANDS[1][0].id)
    first.begin(0, COMMANDS[0][0].id)
    with pytest.raises(PartitionTakenOverError, match=r"another executor has partitions \[1\] now"):
        first.answer(answers(held))
    assert answered(broker) == names(*COMMANDS[0][:2])
    second.answer(answers(theirs))
    assert answered(broker) == names(*COMMANDS[0][:2], *COMMANDS[1][:2])


def test_the_loss_that_only_the_answer_finds_costs_no_answer_of_other_partitions(
    broker: PulsarInMemory, opened: ExitStack
) -> None:
    first = inbox(opened, "b")
    held = first.poll(16, 0.0)
    second = inbox(opened, "a")  # gets partition 0, which is answered first
    theirs = second.poll(16, 0.0)
    with pytest.raises(PartitionTakenOverError):
        first.answer(answers(held))
    assert answered(broker) == names(*COMMANDS[1][:2])
    second.answer(answers(theirs))
    assert sorted(answered(broker)) == sorted(names(*COMMANDS[0][:2], *COMMANDS[1][:2]))


def test_what_waits_in_the_process_of_a_partition_that_was_lost_is_forgotten_and_comes_again_with_it(
    broker: PulsarInMemory, opened: ExitStack
) -> None:
    first = inbox(opened, "a")
    held = first.poll(3, 0.0)  # one more of partition 1 waits in the process
    assert ids(held) == names(*COMMANDS[0][:2], COMMANDS[1][0])
    with ExitStack() as while_there:
        second = inbox(while_there, "b")
        theirs = second.poll(16, 0.0)
        with pytest.raises(PartitionTakenOverError):
            first.answer(answers(held))
        assert first.poll(16, 0.0) == []
        second.answer(answers(theirs))
    issue(broker, COMMANDS[1][2], partition=1)
    again = first.poll(16, 0.0)
    assert ids(again) == names(COMMANDS[1][2])
    assert set(first.memory(1).answered) == set(names(*COMMANDS[1][:2]))
    first.answer(answers(again))
    assert answered(broker) == names(*COMMANDS[0][:2], *COMMANDS[1])


def test_an_executor_acts_on_what_it_has_left_and_the_other_one_on_the_rest_each_once(
    broker: PulsarInMemory, opened: ExitStack
) -> None:
    acted = list[str]()

    class Shared(Owners):
        """The first act lets another executor have partition 1."""

        def act(self, command: Command) -> None:
            super().act(command)
            acted.append(command.id)
            if len(acted) == 1:
                other.append(inbox(opened, "b"))
                theirs.extend(other[0].poll(16, 0.0))

    other, theirs = list[Inbox](), list[Delivery]()
    settings = ExecutorSettings(max_per_second=1000.0, max_concurrent=1)
    first = Executor(inbox(opened, "a"), Shared(), settings, name=CLUSTER, now_ms=lambda: T)
    assert first.step() == 4
    assert acted == names(*COMMANDS[0][:2])
    assert answered(broker) == names(*COMMANDS[0][:2])
    assert ids(theirs) == names(*COMMANDS[1][:2])
    other[0].close()  # it has begun nothing: what it had taken comes to the first one again
    assert first.step() == 2
    assert acted == names(*COMMANDS[0][:2], *COMMANDS[1][:2])
    assert answered(broker) == acted


def test_an_inbox_that_is_opened_anew_has_the_name_that_its_process_had_before(
    broker: PulsarInMemory, opened: ExitStack
) -> None:
    settings = Settings.model_validate(
        {
            "cluster": {"name": CLUSTER},
            "log": {"kind": "pulsar", "pulsar": LOG.model_dump()},
            "election": {"kind": "file", "path": "election"},
            "checkpoint": {"path": "checkpoint"},
        }
    )
    system, found = log_system(settings), list[set[str]]()
    for _ in range(2):
        with closing(system.inbox()):
            found.append({each.name for held in broker.subscriptions.values() for each in held.consumers})
    assert found[0] == found[1]
    assert len(found[0]) == 1
    with closing(log_system(settings).inbox()):
        assert {each.name for held in broker.subscriptions.values() for each in held.consumers} != found[0]
    opened.close()

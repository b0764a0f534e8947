"""Commands through a real Kafka: shared out, answered once, and never acted on by an executor that was replaced."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace

import confluent_kafka as ck
import pytest

from controller.adapters.kafka.names import executor_group
from controller.adapters.kafka.topics import delete_before
from controller.adapters.kafka.writer import Producer
from controller.adapters.network.waiting import wait_for
from controller.executor.loop import Executor
from controller.lab.servers import KafkaServer
from controller.log.inbox import Inbox
from controller.model.decision import Command
from controller.settings.log import KafkaLogSettings
from controller.settings.trimtab_toml import ExecutorSettings
from controller.wire.commands import command_event, command_key, epoch_event
from controller.wire.results import Result, decode_result
from tests.commands import T, unload
from tests.kafka_log import PARTITIONS, inbox_in, own_topics, read_all
from tests.unit.executor.test_executor_loop import Owners

pytestmark = pytest.mark.integration

COMMANDS = [unload(f"tenant/ns-{nth}/0x40000000_0x80000000") for nth in range(8)]


@pytest.fixture
def log(kafka: KafkaServer) -> KafkaLogSettings:
    """Topics and a consumer group of the test's own."""
    return own_topics(kafka.bootstrap)


def settings(log: KafkaLogSettings, *, batch: int = 16) -> ExecutorSettings:
    return ExecutorSettings(group=log.commands_topic, session_timeout_seconds=6, max_per_second=1000.0, batch=batch)


def issue(log: KafkaLogSettings, commands: Sequence[Command] = COMMANDS, *, epoch: int = 1) -> None:
    producer = Producer(log.bootstrap)
    for partition in range(PARTITIONS):
        producer.send(log.commands_topic, epoch_event("standalone", epoch, T), partition=partition)
    for command in commands:
        producer.send(log.commands_topic, command_event(command, epoch, T), key=command_key(command).encode())
    producer.flush()


@contextmanager
def inbox(log: KafkaLogSettings) -> Iterator[Inbox]:
    opened = inbox_in(log, settings(log), cluster="standalone")
    try:
        yield opened
    finally:
        opened.close()


def executor(
    opened: Inbox, log: KafkaLogSettings, cluster: Owners, *, batch: int = 16, name: str = "standalone"
) -> Executor:
    return Executor(opened, cluster, settings(log, batch=batch), name=name, now_ms=lambda: T)


def work(works: Executor, *, until_seen: int = 0, quiet_seconds: float = 0.0) -> int:
    """Steps until *until_seen* events came, or nothing for *quiet_seconds*; returns how many came."""
    seen, since = 0, time.monotonic()
    while seen < until_seen or (quiet_seconds and time.monotonic() - since < quiet_seconds):
        events = works.step()
        seen += events
        since = time.monotonic() if events else since
        assert time.monotonic() - since < 60, f"{seen} events, and then none for a minute"
    return seen


def answers(log: KafkaLogSettings) -> dict[str, list[tuple[str, int]]]:
    found: dict[str, list[tuple[str, int]]] = {}
    for partition in range(PARTITIONS):
        for record in read_all(log.bootstrap, log.results_topic, partition):
            result = decode_result(record.value, cluster="standalone", period_ms=60_000)
            assert isinstance(result, Result)
            found.setdefault(result.id, []).append((result.status, partition))
    return found


def commit(log: KafkaLogSettings, places: dict[int, int]) -> None:
    """The executors' group is done up to *places*, by partition."""
    group = executor_group(log.commands_topic, "standalone")
    with closing(ck.Consumer({"bootstrap.servers": log.bootstrap, "group.id": group})) as consumer:
        offsets = [ck.TopicPartition(log.commands_topic, *each) for each in places.items()]
        consumer.commit(offsets=offsets, asynchronous=False)


EVERYTHING = len(COMMANDS) + PARTITIONS


def test_commands_of_a_leader_that_knows_less_than_was_read_do_not_come_again(
    log: KafkaLogSettings, caplog: pytest.LogCaptureFixture
) -> None:
    """So answers a broker that comes back as the leader that it was: its end lies before what is committed."""
    issue(log)
    read = {each: len(list(read_all(log.bootstrap, log.commands_topic, each))) for each in range(PARTITIONS)}
    commit(log, {each: count + 1 for each, count in read.items()})
    more = [replace(command, id=f"more {command.id}") for command in COMMANDS]
    cluster = Owners()
    with inbox(log) as opened:
        works = executor(opened, log, cluster)
        assert work(works, quiet_seconds=6.0) == 0
        told = [each.getMessage() for each in caplog.records if "has no record at offset" in each.getMessage()]
        assert len(told) == PARTITIONS, "once each, however long it lasts"
        issue(log, more, epoch=2)  # of each partition the first one lies before the place: the epoch
        assert work(works, until_seen=len(more)) == len(more)
    assert sorted(answers(log)) == sorted(each.id for each in more)


def test_commands_behind_deleted_ones_are_carried_out(log: KafkaLogSettings) -> None:
    issue(log)
    for partition in range(PARTITIONS):
        delete_before(log.bootstrap, log.commands_topic, partition, 1)
    commit(log, dict.fromkeys(range(PARTITIONS), 0))
    with inbox(log) as opened:
        assert work(executor(opened, log, Owners()), until_seen=len(COMMANDS)) == len(COMMANDS)
    assert sorted(answers(log)) == sorted(each.id for each in COMMANDS)


#: An executor that stops in the middle of its batch; prints when it is there and how it ended.
_HUNG = """
import sys, time
from controller.log.port import TakenOverError
from controller.settings.log import KafkaLogSettings
from tests.commands import T
from tests.integration.test_kafka_inbox import executor, settings, work
from tests.kafka_log import inbox_in
from tests.unit.executor.test_executor_loop import Owners

log = KafkaLogSettings.model_validate_json(sys.argv[1])
inbox = inbox_in(log, settings(log), cluster="standalone")

class Slow(Owners):
    def look(self, command):
        print("looking", flush=True)
        time.sleep(1.5)
        return super().look(command)

cluster = Slow()
try:
    work(executor(inbox, log, cluster), until_seen=10)
except TakenOverError:
    print(f"taken over, acted on {len(cluster.acted)}", flush=True)
"""


def test_an_executor_that_hung_and_comes_back_acts_no_more(log: KafkaLogSettings) -> None:
    issue(log)
    command = [sys.executable, "-c", _HUNG, log.model_dump_json()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ}) as hung:
        assert hung.stdout is not None
        assert hung.stdout.readline() == "looking\n"
        hung.send_signal(signal.SIGSTOP)
        cluster = Owners()
        with inbox(log) as opened:
            work(executor(opened, log, cluster), until_seen=EVERYTHING)
            hung.send_signal(signal.SIGCONT)
            said = hung.stdout.read().splitlines()
    assert said[-1] == "taken over, acted on 0"
    found = answers(log)
    assert sorted(found) == sorted(each.id for each in COMMANDS)
    assert all(len(each) == 1 for each in found.values())


def test_executors_that_come_and_go_in_the_middle_of_batches_do_everything_once(log: KafkaLogSettings) -> None:
    class Slow(Owners):
        def act(self, command: Command) -> None:
            super().act(command)
            time.sleep(0.2)

    cluster, more = Slow(), [replace(command, id=f"more {command.id}") for command in COMMANDS]
    issue(log)
    with running(log, cluster) as first:
        wait_until(lambda: len(cluster.acted) >= 1)
        with running(log, cluster):
            wait_until(lambda: len(answers(log)) == len(COMMANDS))
            issue(log, more, epoch=2)
            # The first one leaves behind the batch that it is at; the rest is the other one's.
            first.set()
            wait_until(lambda: len(answers(log)) == 2 * len(COMMANDS))
    found = answers(log)
    assert {name: len(each) for name, each in found.items()} == {each.id: 1 for each in (*COMMANDS, *more)}
    assert {found[command.id][0][0] for command in COMMANDS} == {"done"}
    assert {found[command.id][0][0] for command in more} == {"already_done"}
    assert sorted(cluster.acted) == sorted(each.id for each in COMMANDS)


@contextmanager
def running(log: KafkaLogSettings, cluster: Owners) -> Iterator[threading.Event]:
    """An executor in a thread, which ends with the block, or when the event is set."""
    until = threading.Event()

    def work() -> None:
        with inbox(log) as opened:
            executor(opened, log, cluster, batch=4).run(until)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield until
    finally:
        until.set()
        thread.join(30)


def wait_until(holds: Callable[[], bool]) -> None:
    wait_for(holds, 60, every=0.1)


def test_every_command_is_answered_once_in_the_partition_it_came_from(log: KafkaLogSettings) -> None:
    issue(log)
    cluster = Owners()
    with inbox(log) as opened:
        work(executor(opened, log, cluster), until_seen=EVERYTHING)
    found = answers(log)
    assert {name: [status for status, _ in each] for name, each in found.items()} == {
        command.id: ["done"] for command in COMMANDS
    }
    commands = {
        json.loads(record.value)["id"]: partition
        for partition in range(PARTITIONS)
        for record in read_all(log.bootstrap, log.commands_topic, partition)
    }
    assert {name: each[0][1] for name, each in found.items()}.items() <= commands.items()
    with inbox(log) as opened:
        assert work(executor(opened, log, cluster), quiet_seconds=5) == 0
    assert len(cluster.acted) == len(COMMANDS)

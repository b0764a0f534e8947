"""Commands through a real Pulsar: shared out, answered once, and never acted on by an executor that was replaced."""

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace

import pytest

from controller.adapters.network.waiting import wait_for
from controller.adapters.pulsar.log.inspect import subscriptions_on
from controller.executor.loop import Executor
from controller.lab.pulsar_server import PulsarCluster
from controller.log.inbox import AnswerRecord, Delivery, Inbox
from controller.log.port import Out, PartitionTakenOverError, TakenOverError
from controller.log.pulsar import claims
from controller.log.pulsar.log import PulsarLog
from controller.model.decision import Command
from controller.settings.pulsar_log import PulsarLogSettings
from controller.settings.trimtab_toml import ExecutorSettings
from controller.wire.commands import command_event, command_key, epoch_event, parse_event
from controller.wire.results import Result, decode_result
from tests.commands import T, unload
from tests.integration.pulsar_log import PARTITIONS, own_topics
from tests.records import as_bytes, result
from tests.unit.executor.test_executor_loop import Owners

pytestmark = pytest.mark.integration

COMMANDS = [unload(f"tenant/ns-{nth}/0x40000000_0x80000000") for nth in range(8)]


@pytest.fixture
def log(pulsar: PulsarCluster) -> PulsarLogSettings:
    """Topics of the test's own, with commands in them."""
    settings = own_topics(pulsar)
    issue(settings, COMMANDS)
    return settings


def issue(log: PulsarLogSettings, commands: Sequence[Command], *, epoch: int = 1) -> None:
    outs = [Out("commands", epoch_event("standalone", epoch, T), partition=each) for each in range(PARTITIONS)]
    outs += [Out("commands", command_event(each, epoch, T), key=command_key(each).encode()) for each in commands]
    with closing(PulsarLog(log, cluster="standalone")) as writer:
        writer.append(outs, within_seconds=30.0)


def inbox(log: PulsarLogSettings, *, name: str = "", group: str = "executors") -> Inbox:
    opened = PulsarLog(log, cluster="standalone", executor=name, claim_seconds=6.0)
    return Inbox(opened, group=group, cluster="standalone")


def settings(batch: int = 16) -> ExecutorSettings:
    return ExecutorSettings(session_timeout_seconds=6, max_per_second=1000.0, batch=batch)


def executor(opened: Inbox, cluster: Owners, *, batch: int = 16) -> Executor:
    return Executor(opened, cluster, settings(batch), name="standalone", now_ms=lambda: T)


@contextmanager
def running(log: PulsarLogSettings, cluster: Owners) -> Iterator[threading.Event]:
    """An executor in a thread, which ends with the block, or when the event is set."""
    until = threading.Event()

    def work() -> None:
        with closing(inbox(log)) as opened:
            executor(opened, cluster, batch=4).run(until)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield until
    finally:
        until.set()
        thread.join(30)


def answers(log: PulsarLogSettings) -> dict[str, list[str]]:
    """Command -> the statuses of its results."""
    found: dict[str, list[str]] = {}
    with closing(PulsarLog(log, cluster="standalone")) as opened:
        for record in opened.read("results").read_to_end():
            result = decode_result(record.value, cluster="standalone", period_ms=60_000)
            assert isinstance(result, Result)
            found.setdefault(result.id, []).append(result.status)
    return found


def all_are_answered(log: PulsarLogSettings) -> bool:
    return len(answers(log)) == len(COMMANDS)


def test_the_subscriptions_of_executors_at_work_are_seen_and_those_of_others_are_not(log: PulsarLogSettings) -> None:
    def seen() -> tuple[str, ...]:
        return subscriptions_on(log, log.commands_topic, ending="-standalone", answer_seconds=5.0)

    assert seen() == ()
    with ExitStack() as stack:
        for group, cluster in (("one", "standalone"), ("two", "standalone"), ("one", "elsewhere")):
            opened = Inbox(PulsarLog(log, cluster=cluster), group=group, cluster=cluster)
            stack.enter_context(closing(opened)).poll(1, 0.1)
        wait_for(lambda: seen() == ("one-standalone", "two-standalone"), 30, every=0.2)
    wait_for(lambda: seen() == (), 30, every=0.2)


def test_an_executor_tells_which_partitions_it_has_now(pulsar: PulsarCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "_REFRESH_SECONDS", 0.2)
    log = own_topics(pulsar)

    def are(*assigned: int) -> bool:
        return [each.assigned for each in opened if not each.poll(1, 0.0)] == list(assigned)

    with closing(inbox(log)) as first:
        opened = [first]
        wait_for(lambda: are(PARTITIONS), 30, every=0.1)
        with closing(inbox(log)) as second:
            opened.append(second)
            wait_for(lambda: are(PARTITIONS // 2, PARTITIONS // 2), 30, every=0.1)
        opened.pop()
        wait_for(lambda: are(PARTITIONS), 30, every=0.1)


def test_an_executor_whose_partition_another_one_has_neither_acts_nor_answers(log: PulsarLogSettings) -> None:
    with closing(inbox(log)) as old, closing(PulsarLog(log, cluster="standalone", claim_seconds=0.0)) as other:
        taken = wait_for(lambda: [each for each in old.poll(16, 0.5) if b"epoch/" not in each.value], 30, every=0.1)
        partition = taken[0].partition
        old.begin(partition, "one")
        # As for an executor that hangs: it hears nothing of it.
        with closing(other.claims("executors")) as theirs:
            theirs.claim(partition)
            with pytest.raises(TakenOverError):
                old.begin(partition, "another")
            with pytest.raises(TakenOverError):
                old.answer([AnswerRecord(partition, "key", b"{}")])
    assert answers(log) == {}


def test_an_executor_that_loses_a_partition_answers_its_others_and_goes_on(
    log: PulsarLogSettings,
) -> None:
    def opened(name: str) -> "closing[Inbox]":
        return closing(inbox(log, name=name))

    def of_commands(taken: Sequence[Delivery]) -> list[Delivery]:
        return [each for each in taken if b"epoch/" not in each.value]

    def answer(inbox: Inbox, taken: Sequence[Delivery]) -> None:
        inbox.answer([AnswerRecord(each.partition, "key", done(parse_event(each.value).id)) for each in taken])

    def take_all(inbox: Inbox, number: int) -> list[Delivery]:
        found: list[Delivery] = []

        def has_all() -> bool:
            found.extend(of_commands(inbox.poll(16, 0.2)))
            return len(found) >= number

        wait_for(has_all, 30, every=0.05)
        return found

    with opened("a") as first:
        held = take_all(first, len(COMMANDS))
        lost = [each for each in held if each.partition == 1]
        with opened("b") as second:
            theirs = take_all(second, len(lost))
            assert sorted(each.value for each in theirs) == sorted(each.value for each in lost)
            with pytest.raises(PartitionTakenOverError):
                answer(first, held)
            assert len(answers(log)) == len(held) - len(lost)
            assert of_commands(first.poll(16, 0.2)) == []
            answer(second, theirs)
        issue(log, [replace(each, id=f"{each.id} again") for each in COMMANDS])
        answer(first, take_all(first, len(COMMANDS)))
    assert {len(each) for each in answers(log).values()} == {1}
    assert len(answers(log)) == 2 * len(COMMANDS)


def done(command: str) -> bytes:
    return as_bytes(result(id=command, cluster="standalone"))


def test_what_a_killed_executor_had_begun_is_looked_at_and_the_rest_carried_out(log: PulsarLogSettings) -> None:
    class Dies(Owners):
        def act(self, command: Command) -> None:
            raise KeyboardInterrupt

    cluster = Dies()
    opened = PulsarLog(log, cluster="standalone", claim_seconds=6.0)
    works = executor(Inbox(opened, group="executors", cluster="standalone"), cluster, batch=1)
    with pytest.raises(KeyboardInterrupt):
        wait_for(lambda: not works.step() and False, 60, every=0.05)
    opened.connection.client.shutdown()  # as a kill does: nothing is given back
    survivor = Owners()
    with running(log, survivor):
        wait_for(lambda: all_are_answered(log), 60, every=0.2)
    found = answers(log)
    assert Counter(status for each in found.values() for status in each) == {"done": len(COMMANDS) - 1, "unknown": 1}
    assert sorted(survivor.acted) == sorted(name for name, [status] in found.items() if status == "done")


def test_executors_that_come_and_go_do_everything_once(log: PulsarLogSettings) -> None:
    class Slow(Owners):
        def act(self, command: Command) -> None:
            super().act(command)
            time.sleep(0.2)

    cluster = Slow()
    with running(log, cluster) as first:
        wait_for(lambda: len(cluster.acted) >= 1, 30, every=0.05)
        with running(log, cluster):
            first.set()
            wait_for(lambda: all_are_answered(log), 60, every=0.2)
    assert {name: len(each) for name, each in answers(log).items()} == {each.id: 1 for each in COMMANDS}
    assert sorted(cluster.acted) == sorted(each.id for each in COMMANDS)

from controller.model.decision import Command, Reason, Verdict
from controller.model.records import CommandResult
from controller.simulator.cluster import ClusterShape, ModelledCluster
from controller.simulator.lock_step import ModelledExecutor, result_record
from controller.wire.commands import command_event, epoch_event
from controller.wire.results import Result, decode_result

NOW = 1_735_689_600_000


def cluster() -> ModelledCluster:
    return ModelledCluster(ClusterShape(brokers=3, namespaces=1, bundles=4, topics=40), seed=1)


def unload(of: ModelledCluster, *, name: str = "demo") -> Command:
    bundle = next(iter(of.bundle_loads()))
    return Command(
        id="an-id",
        action="unload",
        cluster=name,
        bundle=bundle,
        interval=NOW,
        expires_at_ms=NOW + 1,
        mode="active",
        source=of.owner(bundle),
        destination=of.brokers[2],
        why=Verdict(subject=of.owner(bundle), reason=Reason.OVERLOADED),
    )


def test_an_event_is_carried_out_and_answered() -> None:
    modelled = cluster()
    command = unload(modelled)
    answer = ModelledExecutor(modelled).obey(command_event(command, 1, NOW), now_ms=NOW)
    assert answer is not None
    assert answer[0] == command
    assert (answer[1].id, answer[1].status, answer[1].owner_after) == ("an-id", "done", modelled.brokers[2])
    assert modelled.owner(command.bundle) == modelled.brokers[2]


def test_an_event_that_comes_again_is_already_done() -> None:
    modelled = cluster()
    executor, event = ModelledExecutor(modelled), command_event(unload(modelled), 1, NOW)
    answers = [executor.obey(event, now_ms=NOW) for _ in range(2)]
    assert [answer[1].status for answer in answers if answer] == ["done", "already_done"]


def test_events_of_an_epoch_that_is_over_are_fenced_and_change_nothing() -> None:
    modelled = cluster()
    executor, command = ModelledExecutor(modelled), unload(modelled)
    assert executor.obey(epoch_event("demo", 2, NOW), now_ms=NOW) is None
    late = executor.obey(command_event(command, 1, NOW), now_ms=NOW)
    assert late is not None
    assert (late[1].status, late[1].detail) == ("fenced", "epoch 1 is over: 2 leads")
    assert modelled.owner(command.bundle) == command.source
    current = executor.obey(command_event(command, 2, NOW), now_ms=NOW)
    assert current is not None
    assert current[1].status == "done"


def test_an_event_for_another_cluster_is_ignored_and_does_not_fence() -> None:
    modelled = cluster()
    executor, ours = ModelledExecutor(modelled), unload(modelled)
    assert executor.obey(command_event(unload(modelled, name="other"), 9, NOW), now_ms=NOW) is None
    assert modelled.owner(ours.bundle) == ours.source
    answer = executor.obey(command_event(ours, 1, NOW), now_ms=NOW)
    assert answer is not None
    assert answer[1].status == "done"


def test_a_result_is_a_record_of_the_result_topic_keyed_by_namespace() -> None:
    modelled = cluster()
    result = CommandResult(id="an-id", status="done", owner_before="a:1", owner_after="b:1")
    key, value = result_record(unload(modelled), result, now_ms=NOW)
    read = decode_result(value, cluster="demo", period_ms=60_000)
    assert isinstance(read, Result)
    assert key == modelled.namespaces[0]
    assert (read.id, read.status, read.owner_before, read.owner_after) == ("an-id", "done", "a:1", "b:1")
    assert (read.started_at, read.finished_at, read.attempts) == (NOW, NOW, 1)

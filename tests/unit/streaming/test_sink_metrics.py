"""What a controller's metrics show of the intervals that its sink decides."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from prometheus_client.parser import text_string_to_metric_families

from controller.adapters.metrics.audits import AuditWatch
from controller.adapters.metrics.controller import ControllerMetrics
from controller.aggregate.snapshot import Snapshot
from controller.audit.auditor import MoveAuditor
from controller.cycle.limits import Budget, Limits
from controller.model.controls import Controls
from controller.model.decision import Decision
from controller.model.journal import JournalEntry
from controller.model.memory import Breaker, Memory, OwnBalancing
from controller.model.records import CommandResult
from controller.model.resource_usage import ResourceWeights
from tests.batches import batch, sink, snapshots
from tests.folders import entries_in
from tests.logs import PERIOD, Shape, located, log

CLOSED = snapshots([*located(log(Shape()))])


class Shown(dict[str, float]):
    """The samples of a page, by name and labels."""

    def __init__(self, metrics: ControllerMetrics) -> None:
        families = text_string_to_metric_families(metrics.page().decode())
        super().__init__(
            (sample.name + "".join(f" {key}={value}" for key, value in sorted(sample.labels.items())), sample.value)
            for family in families
            for sample in family.samples
        )

    def total(self, name: str) -> float:
        return sum(value for key, value in self.items() if key.split()[0] == name)


@pytest.fixture
def metrics() -> ControllerMetrics:
    return ControllerMetrics()


def test_commands_are_counted_by_action_reason_and_mode(tmp_path: Path, metrics: ControllerMetrics) -> None:
    sink(tmp_path, metrics=metrics)(batch(CLOSED), 0)
    issued = [command for entry in entries_in(tmp_path) for command in entry.decision.commands]
    assert issued
    shown = Shown(metrics)
    for command in issued:
        alike = [(each.action, each.why.reason, each.mode) for each in issued].count(
            (command.action, command.why.reason, command.mode)
        )
        labels = f"action={command.action} mode={command.mode} reason={command.why.reason}"
        assert shown[f"trimtab_commands_total {labels}"] == alike
    assert shown.total("trimtab_commands_total") == len(issued)
    unloads = [command for command in issued if command.action == "unload"]
    assert shown["pulsar_lb_unload_bundle_total metric=bundleUnloading"] == len(unloads)
    assert shown["pulsar_lb_bundles_split_total metric=bundlesSplit"] == len(issued) - len(unloads)


def test_pulsars_own_counters_do_not_count_a_dry_run(tmp_path: Path, metrics: ControllerMetrics) -> None:
    sink(tmp_path, metrics=metrics, controls=lambda _: Controls(mode="dry_run"))(batch(CLOSED), 0)
    shown = Shown(metrics)
    assert shown.total("trimtab_commands_total") > 0
    assert shown.total("pulsar_lb_unload_bundle_total") == shown.total("pulsar_lb_bundles_split_total") == 0
    assert [shown[f"trimtab_mode mode={mode}"] for mode in ("active", "dry_run", "observe")] == [0, 1, 0]


def test_moves_of_decided_intervals_are_audited_once(tmp_path: Path, metrics: ControllerMetrics) -> None:
    audits = AuditWatch(MoveAuditor(period_ms=PERIOD, weights=ResourceWeights()), metrics.audits)
    decides = sink(tmp_path, metrics=metrics, audits=audits)
    decides(batch(CLOSED), 0)
    decides(batch(CLOSED), 0)
    last = max(each.interval for each in CLOSED)
    old = [
        command.id
        for entry in entries_in(tmp_path)
        for command in entry.decision.commands
        if command.action == "unload" and command.interval <= last - 2 * PERIOD
    ]
    assert old
    assert Shown(metrics).total("trimtab_audited_moves_total") == len(old)
    assert Shown(metrics)["trimtab_stage_seconds_count stage=audit"] == 2


def test_a_batch_that_comes_again_counts_nothing_twice(tmp_path: Path, metrics: ControllerMetrics) -> None:
    deciding = sink(tmp_path, metrics=metrics)
    deciding(batch(CLOSED), 0)
    once = Shown(metrics)
    deciding(batch(CLOSED), 0)
    again = Shown(metrics)
    for name in ("trimtab_commands_total", "trimtab_interval_delay_seconds_count", "trimtab_results_total"):
        assert again.total(name) == once.total(name)
    assert again["trimtab_stage_seconds_count stage=decide"] == 2


def test_commands_that_end_are_counted_by_status_and_lost_ones_as_lost(
    tmp_path: Path, metrics: ControllerMetrics
) -> None:
    first = next(nth for nth, closed in enumerate(CLOSED) if _issues(tmp_path / "trial", CLOSED[: nth + 1]))
    deciding = sink(tmp_path, metrics=metrics)
    deciding(batch(CLOSED[: first + 1]), 0)
    [*_, last] = entries_in(tmp_path)
    command = last.decision.commands[0]
    result = CommandResult(id=command.id, status="failed", detail="no")
    unknown = CommandResult(id="of nobody", status="done", detail="")
    answered = replace(CLOSED[first], interval=CLOSED[first].interval + 60_000, results=(result, unknown))
    deciding(batch([answered]), 1)
    shown = Shown(metrics)
    assert shown[f"trimtab_results_total action={command.action} status=failed"] == 1
    assert shown.total("trimtab_results_total") == 1
    deciding(batch([replace(answered, interval=answered.interval + 86_400_000, results=())]), 2)
    # By then everything else is lost.
    assert sum(Shown(metrics)[f"trimtab_results_total action={a} status=lost"] for a in ("unload", "split")) > 0


def _issues(folder: Path, closed: Sequence[Snapshot]) -> bool:
    """Whether the last of *closed* issues commands."""
    folder.mkdir(exist_ok=True)
    sink(folder)(batch(closed), 0)
    [*_, last] = entries_in(folder)
    return bool(last.decision.commands)


def test_the_delay_of_an_interval_is_from_its_begin_and_that_of_a_decision_from_its_tick(tmp_path: Path) -> None:
    clock = Mock(return_value=100.0)
    metrics, interval = ControllerMetrics(clock), CLOSED[0].interval
    for seconds in (100.0, 101.0):  # the tick is seen once, and looked at again
        clock.return_value = seconds
        metrics.tick_came(interval)
    clock.return_value = 107.0
    sink(tmp_path, metrics=metrics, now_ms=lambda: interval + 42_000)(batch(CLOSED[:1]), 0)
    shown = Shown(metrics)
    assert shown["trimtab_interval_delay_seconds_sum"] == 42
    assert shown["trimtab_tick_to_decision_seconds_sum"] == 7
    assert shown["trimtab_last_interval_timestamp_seconds"] == interval / 1000
    assert shown["trimtab_bundles"] == len(CLOSED[0].names)
    assert shown["trimtab_brokers"] == len(CLOSED[0].roster)


def test_intervals_too_old_to_act_on_have_no_delay(tmp_path: Path, metrics: ControllerMetrics) -> None:
    last = CLOSED[-1].interval
    sink(tmp_path, metrics=metrics, controls=lambda t: Controls(mode="active", stale=t < last))(batch(CLOSED), 0)
    assert Shown(metrics)["trimtab_interval_delay_seconds_count"] == 2  # the last old one is journalled, too


def decided(memory: Memory, controls: Controls) -> SimpleNamespace:
    decision = SimpleNamespace(commands=(), verdicts=())
    entry = SimpleNamespace(
        interval=60_000, memory=memory, controls=controls, decision=decision, waits_for_brokers=memory.balancing.why
    )
    return SimpleNamespace(entry=entry, journalled=True, dropped_rows=3, dropped_states=4, bundles=5, settled=())


def test_guardrails_are_those_of_the_last_decision(metrics: ControllerMetrics) -> None:
    metrics.limit_by(Limits(window=Budget(unloads=7), in_flight=9))
    memory = Memory(breaker=Breaker(in_a_row=4, tripped_at=60_000), failures={"a": 60_000, "b": 60_000})
    controls = Controls(mode="observe", paused=True, unknown="ZooKeeper is away", maintenance="frozen")
    metrics.decided(decided(memory, controls), now_ms=60_000)  # type: ignore[arg-type]
    shown = Shown(metrics)
    assert shown["trimtab_breaker_tripped"] == 1
    assert shown["trimtab_breaker_failures_in_a_row"] == 4
    assert shown["trimtab_breaker_failures_in_window"] == 2
    assert shown["trimtab_paused"] == shown["trimtab_controls_unknown"] == shown["trimtab_maintenance"] == 1
    assert shown["trimtab_stale"] == 0
    assert shown["trimtab_dropped_rows"] == 3
    assert shown["trimtab_dropped_states"] == 4
    assert (
        shown["trimtab_budget_left budget=window.unloads"] == shown["trimtab_budget_limit budget=window.unloads"] == 7
    )
    assert shown["trimtab_budget_left budget=in_flight"] == 9
    assert "ZooKeeper" not in metrics.page().decode().replace("election (ZooKeeper)", "")


SHEDS = OwnBalancing(why="loadBalancerSheddingEnabled=true on broker-1:8080", on=1)


def entry_of(balancing: OwnBalancing, mode: str = "active") -> JournalEntry:
    decision = Decision(interval=60_000, summary="")
    return JournalEntry(
        cluster="lab", decision=decision, memory=Memory(balancing=balancing), controls=Controls(mode=mode)
    )


def told_of(metrics: ControllerMetrics, balancing: OwnBalancing, mode: str = "active") -> tuple[float, ...]:
    """What the metrics show of an interval decided with *balancing*: brokers on, brokers unknown, whether it waits."""
    played = decided(Memory(), Controls(mode=mode))
    played.entry = entry_of(balancing, mode)
    metrics.decided(played, now_ms=60_000)  # type: ignore[arg-type]
    shown = Shown(metrics)
    names = ("trimtab_brokers_balancing", "trimtab_brokers_balancing_unknown", "trimtab_waits_for_brokers")
    return tuple(shown[name] for name in names)


def test_a_leader_is_not_ready_while_it_waits_for_the_brokers_balancing_to_be_off(metrics: ControllerMetrics) -> None:
    metrics.leads(3)
    assert told_of(metrics, OwnBalancing()) == (0, 0, 0)
    assert metrics.health.now == (True, "leads: it reads the log, epoch 3")
    assert told_of(metrics, SHEDS) == (1, 0, 1)
    is_ready, why = metrics.health.now
    assert not is_ready
    assert "the brokers' own balancing is on (brokers: 1); `trimtab status` names them" in why
    assert told_of(metrics, OwnBalancing(why="unread", unknown={"a": 0, "b": 0})) == (0, 2, 1)
    assert "nobody knows whether brokers balance by themselves (brokers: 2)" in metrics.health.now[1]
    assert told_of(metrics, OwnBalancing()) == (0, 0, 0)
    assert metrics.health.now[0]


def test_what_the_server_shows_of_it_names_no_broker(metrics: ControllerMetrics) -> None:
    metrics.leads(3)
    told_of(metrics, SHEDS)
    assert "broker-1" not in metrics.page().decode() + metrics.health.now[1]


def test_who_takes_over_from_a_leader_that_waited_is_not_ready_before_it_has_decided(
    metrics: ControllerMetrics,
) -> None:
    metrics.leads(4, entry_of(SHEDS).waits_for_brokers)
    assert not metrics.health.now[0]
    metrics.leads_no_more()
    assert "does not lead" in metrics.health.now[1]


def test_issued_commands_leave_less_of_the_budgets(tmp_path: Path, metrics: ControllerMetrics) -> None:
    metrics.limit_by(Limits(window=Budget(unloads=1000, splits=1000), in_flight=1000))
    sink(tmp_path, metrics=metrics)(batch(CLOSED), 0)
    [*_, last] = entries_in(tmp_path)
    used = [each.action for each in last.memory.issued.values()]
    shown = Shown(metrics)
    assert shown["trimtab_budget_left budget=window.unloads"] == 1000 - used.count("unload")
    assert shown["trimtab_budget_left budget=window.splits"] == 1000 - used.count("split")
    assert shown["trimtab_budget_left budget=in_flight"] == 1000 - len(last.memory.in_flight)
    assert shown["trimtab_in_flight"] == len(last.memory.in_flight) > 0


def test_of_sparks_report_the_rows_the_phases_and_the_state_are_shown(metrics: ControllerMetrics) -> None:
    state = {"memoryUsedBytes": 4096, "numRowsTotal": 16}
    report = {"batchId": 8, "numInputRows": 400, "durationMs": {"addBatch": 1500}, "stateOperators": [state]}
    metrics.batch_finished(report)
    shown = Shown(metrics)
    assert (shown["trimtab_batch"], shown["trimtab_batch_rows"]) == (8, 400)
    assert shown["trimtab_batch_seconds phase=addBatch"] == 1.5
    assert (shown["trimtab_state_bytes"], shown["trimtab_state_rows"]) == (4096, 16)
    metrics.batch_finished({"batchId": 9, "numInputRows": None, "durationMs": {"of our own": 1}, "stateOperators": []})
    shown = Shown(metrics)
    assert shown["trimtab_batch_seconds phase=addBatch"] == shown["trimtab_state_bytes"] == 0
    assert not any("of our own" in name for name in shown)


def test_a_standby_is_ready_once_it_is_prepared(metrics: ControllerMetrics) -> None:
    during: list[bool] = []
    metrics.stands_by(lambda: during.append(metrics.health.now[0]))
    assert during == [False]
    assert metrics.health.now[0]
    metrics.takes_over()
    assert not metrics.health.now[0]


def test_no_label_has_the_name_of_a_bundle_a_namespace_or_a_broker(tmp_path: Path, metrics: ControllerMetrics) -> None:
    metrics.limit_by(Limits(window=Budget(unloads_per_source=5, unloads_per_namespace=5), in_flight_per_broker=5))
    sink(tmp_path, metrics=metrics)(batch(CLOSED), 0)
    page = metrics.page().decode()
    for name in (*CLOSED[0].names, *(name.rpartition("/")[0] for name in CLOSED[0].names), *CLOSED[0].roster):
        assert name not in page


def test_a_log_that_ticks_for_ever_undecided_fills_no_memory(metrics: ControllerMetrics) -> None:
    for interval in range(0, 60_000 * 1000, 60_000):
        metrics.tick_came(interval)
    metrics.tick_came(None)
    assert len(metrics.__dict__["_ticks"]) <= 64


def test_a_dry_run_is_ready_beside_brokers_that_balance(metrics: ControllerMetrics) -> None:
    metrics.leads(3)
    assert told_of(metrics, SHEDS, mode="dry_run") == (1, 0, 0)
    assert metrics.health.now[0]

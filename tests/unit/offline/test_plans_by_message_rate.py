"""Plans where usage does not follow the load, as on shared hosts: bundles are spread by message rate."""

import json
from pathlib import Path

import numpy as np
import pytest

from controller.cli.shared.console import captured
from controller.cli.texts.planned import print_plan
from controller.offline.plans.answer import plan_answer
from controller.offline.plans.planner import PlannedCluster, PlanRequest, planned_cluster
from controller.offline.plans.rightsizing import rightsizing
from controller.offline.plans.source import PlanSource, source_of_load
from controller.offline.plans.today import today
from controller.planning.plans.plan import BALANCE, DRAIN, JOIN, RESTART, broker_changes
from controller.wire.plan import encode_plan, parse_plan

T = 1_800_000_000_000
ALL = ("bandwidth in", "bandwidth out", "cpu")


def shared_hosts(
    folder: Path, rates: dict[str, list[float]], *, cpu: float = 400.0, limit: float = 400.0, first: str = "acme/n0"
) -> PlanSource:
    """Brokers that all report this CPU usage, with bundles of so many messages/s."""
    lines: list[dict[str, object]] = []
    number = 0
    for broker, of in rates.items():
        stats = []
        for rate in of:
            name = f"acme/n{number}" if number else first
            number += 1
            state = {"boundaries": ["0x00000000", "0xffffffff"], "isolationPolicies": []}
            lines.insert(
                0,
                {"v": 1, "cluster": "lab", "type": "namespace_state", "namespace": name, "version": T, **state},
            )
            load = {"msgRateIn": rate, "msgRateOut": 0.0, "msgThroughputIn": 100 * rate, "msgThroughputOut": 0.0}
            totals = {**load, "producerCount": 1, "consumerCount": 1, "topics": 1}
            topics: dict[str, list[object]] = {key: [value] for key, value in totals.items() if key != "topics"}
            topics["topic"] = [f"persistent://{name}/t"]
            stats.append({"bundle": f"{name}/0x00000000_0xffffffff", "totals": totals, **topics})
        sums = {key: sum(each["totals"][key] for each in stats) for key in ("msgRateIn", "msgThroughputIn")}  # type: ignore[index]
        lines.append(
            {
                "v": 1,
                "cluster": "lab",
                "type": "broker_sweep",
                "broker": broker,
                "interval": T,
                "sweepId": broker,
                "chunk": 0,
                "chunks": 1,
                "lastUpdate": T,
                "cpu": {"usage": cpu, "limit": 400.0},
                **{name: {"usage": 1000, "limit": 4000} for name in ("memory", "directMemory")},
                **{name: {"usage": 50.0, "limit": 10_000_000} for name in ("bandwidthIn", "bandwidthOut")},
                "msgRateOut": 0.0,
                "msgThroughputOut": 0.0,
                **sums,
                "bundleStats": stats,
                **dict.fromkeys(("numTopics", "numBundles", "numProducers", "numConsumers"), len(of)),
            }
        )
    file = folder / "load.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    return source_of_load([file], None, cluster=None, period_ms=60_000)


def rates_after(found: PlannedCluster) -> dict[str, float]:
    return {each.broker: each.msg_rate_after for each in broker_changes(found.plan)}


UNEVEN = {"b0:8080": [100.0] * 6, "b1:8080": [50.0] * 4, "b2:8080": [50.0] * 4}


@pytest.mark.parametrize("own", [ALL, ("cpu",)])
def test_a_drain_on_shared_hosts_spreads_by_message_rate(tmp_path: Path, own: tuple[str, ...]) -> None:
    source = shared_hosts(tmp_path, UNEVEN, cpu=399.0)
    found = planned_cluster(source, PlanRequest(kind=DRAIN, brokers=("b0:8080",), own=own))
    assert found.stays == {}
    assert rates_after(found) == {"b0:8080": 0.0, "b1:8080": 500.0, "b2:8080": 500.0}


def test_a_low_ceiling_is_one_of_usage_and_not_of_messages(tmp_path: Path) -> None:
    source = shared_hosts(tmp_path, {"b0:8080": [100.0] * 6, "b1:8080": []}, cpu=40.0)
    found = planned_cluster(source, PlanRequest(kind=DRAIN, brokers=("b0:8080",), own=ALL, ceiling=0.3))
    assert found.stays == {}
    assert rightsizing(source, headroom=0.5, added=0, own=ALL).resource in ("cpu", "direct memory", *ALL)


@pytest.mark.slow
def test_a_balance_is_by_message_rate_where_usage_does_not_follow_the_load(tmp_path: Path) -> None:
    source = shared_hosts(tmp_path, UNEVEN)
    found = planned_cluster(source, PlanRequest(kind=BALANCE, to=1.1))
    after = np.array(list(rates_after(found).values()))
    assert after.max() <= 1.1 * after.mean()
    assert any("planned by message rate" in note for note in found.notes)
    now = today(parse_plan(encode_plan(found.plan))[0], 0, source, tolerance=0.25)  # `trimtab apply` counts alike
    assert now.changed == ()
    assert sum(map(len, now.waves)) == len(found.plan.moves)


def test_by_message_rate_each_broker_shows_the_share_of_bundles_that_cannot_move(tmp_path: Path) -> None:
    source = shared_hosts(tmp_path, UNEVEN, first="pulsar/system")
    found = planned_cluster(source, PlanRequest(kind=BALANCE, to=1.1, own=ALL))
    first, *others = broker_changes(found.plan)
    assert first.resource == "share of the message rate"
    assert first.fixed == pytest.approx(first.before / 6)
    assert [each.fixed for each in others] == [0.0, 0.0]
    header = captured(
        200, lambda out: print_plan(out, plan_answer(found, file="", now_ms=0, deadline_ms=None), Path("c"))
    )
    assert "cannot move" in header


@pytest.mark.parametrize("share", [1.0, 1e-9])
def test_a_plan_by_message_rate_is_told_in_shares_of_all_messages(tmp_path: Path, share: float) -> None:
    """In a drain the search counts messages least, so a share of them is tiny."""
    source = shared_hosts(tmp_path, {"a:8080": [100.0], "b:8080": [100.0], "c:8080": [100.0, 100.0]})
    answer = plan_answer(
        planned_cluster(source, PlanRequest(kind=DRAIN, brokers=("a:8080",), own=ALL)),
        file="",
        now_ms=0,
        deadline_ms=None,
    )
    usages = {"a:8080": (0.25, 0.0), "b:8080": (0.25, 0.5), "c:8080": (0.5, 0.5)}
    brokers = [
        each.model_copy(update={"resource": "share of the message rate", "before": share * old, "after": share * new})
        for each, (old, new) in zip(answer.brokers, usages.values(), strict=True)
    ]
    by_rate = answer.model_copy(update={"brokers": brokers, "before": share * 0.5, "after": share * 0.5})
    text = captured(200, lambda out: print_plan(out, by_rate, Path("c")))
    assert "highest 50.0% before, 50.0% after of all messages" in text
    assert "25.0%" in text
    assert "of all messages" not in captured(200, lambda out: print_plan(out, answer, Path("c")))


@pytest.mark.slow
def test_a_balance_takes_the_resources_that_a_person_says_do_not_follow(tmp_path: Path) -> None:
    source = shared_hosts(tmp_path, UNEVEN, cpu=200.0)
    found = planned_cluster(source, PlanRequest(kind=BALANCE, to=1.1, own=ALL))
    after = np.array(list(rates_after(found).values()))
    assert after.max() <= 1.1 * after.mean()
    assert not any("planned by message rate" in note for note in found.notes)


def test_a_join_and_a_restart_on_shared_hosts_spread_by_message_rate(tmp_path: Path) -> None:
    source = shared_hosts(tmp_path, {"b0:8080": [100.0] * 4, "b1:8080": [100.0] * 4, "b2:8080": []})
    found = planned_cluster(source, PlanRequest(kind=JOIN, brokers=("b2:8080",), own=ALL))
    assert rates_after(found)["b2:8080"] == pytest.approx(800 / 3, abs=100)
    restarted = planned_cluster(source, PlanRequest(kind=RESTART, own=ALL))
    assert max(rates_after(restarted).values()) <= 400

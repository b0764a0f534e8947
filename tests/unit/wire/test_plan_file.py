"""Plans as files: what is read is what was written, any change changes the hash, and hostile files are refused."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from controller.model.errors import PlanRefusedError
from controller.planning.objective import disturbance
from controller.planning.plans.plan import Plan
from controller.planning.plans.plan_steps import PlanLimits, empty_step, restart_steps, spread_step
from controller.planning.plans.waves import WaveLimits
from controller.wire.plan import encode_plan, hash_of, parse_plan
from tests.plans import plan_of, some_problem

LIMITS: Final = PlanLimits(waves=WaveLimits(max_moves=3), effort=1000)


def _made(seed: int = 16) -> Plan:
    one = some_problem(seed, 0.4)
    rate = np.arange(len(one.owner), dtype=np.float64)
    one = replace(one, disturbance=disturbance(one.connections, rate))
    return plan_of(one, [empty_step(one, [0], LIMITS)])


PLAN: Final = _made()
#: Written before plans said what reconnects at once.
OLD: Final = (Path(__file__).parents[2] / "data" / "plan_without_burst.json").read_bytes()


def written() -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(encode_plan(PLAN))
    return fields


def refusal(fields: Any, *, rehash: bool = True) -> str:
    """What is said of the file of *fields*; its hash is right, unless it is not to be."""
    value = json.dumps(fields).encode()
    if rehash:
        told = json.dumps(fields["plan"], sort_keys=True, separators=(",", ":"))
        value = json.dumps({**fields, "sha256": hashlib.sha256(told.encode()).hexdigest()}).encode()
    with pytest.raises(PlanRefusedError) as refused:
        parse_plan(value)
    assert refused.value.exit_code == 2
    assert len(str(refused.value)) < 5000
    return str(refused.value)


def test_what_is_read_is_what_was_written() -> None:
    plan, sha256 = parse_plan(encode_plan(PLAN))
    assert sha256 == hash_of(PLAN) == hash_of(plan)
    assert encode_plan(plan) == encode_plan(PLAN)
    assert plan.steps[0].waves == PLAN.steps[0].waves


@pytest.mark.slow
def test_plans_of_every_kind_come_back() -> None:
    for seed in range(30):
        one = some_problem(seed, 0.4)
        one = replace(one, disturbance=disturbance(one.connections, np.arange(len(one.owner), dtype=np.float64)))
        groups = [[row] for row in range(len(one.capacity))]
        for steps in ([spread_step(one, LIMITS, 1.05)], restart_steps(one, groups, LIMITS)[1]):
            plan = plan_of(one, steps)
            assert encode_plan(parse_plan(encode_plan(plan))[0]) == encode_plan(plan)


def test_the_layout_of_the_file_does_not_change_the_hash() -> None:
    fields = written()
    turned = {"plan": dict(reversed(fields["plan"].items())), "sha256": fields["sha256"]}
    assert parse_plan(json.dumps(turned, indent=4).encode())[1] == hash_of(PLAN)


def test_a_file_that_says_nothing_of_a_burst_keeps_its_hash_and_has_the_rate_until_the_next_wave() -> None:
    plan, sha256 = parse_plan(OLD)
    assert sha256 == json.loads(OLD)["sha256"] == hash_of(plan)
    assert encode_plan(plan) == OLD
    # Its first wave has 5,120 connections, its second one bundle with 7,000.
    assert plan.pace.max_connections == 6000.0
    fields = json.loads(OLD)
    fields["plan"]["burstSeconds"] = 60.0
    assert refusal(fields) == "the checker refuses the plan: step 1: wave 1: 5120 connections at once, 3000 are allowed"


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """One path to each field, and of lists to the first item."""
    if isinstance(value, dict):
        return [leaf for key, one in value.items() for leaf in _leaves(one, (*path, key))]
    if isinstance(value, list):
        return _leaves(value[0], (*path, 0)) if value else []
    return [path]


@pytest.mark.parametrize("path", _leaves(written()["plan"]), ids=lambda path: ".".join(map(str, path)))
def test_any_change_of_any_field_is_refused(path: tuple[Any, ...]) -> None:
    fields = written()
    at: Any = fields["plan"]
    for key in path[:-1]:
        at = at[key]
    before = at[path[-1]]
    at[path[-1]] = {"v": 2, "type": "other", "kind": "balance", "task": "fill"}.get(path[-1], before)
    if at[path[-1]] == before:
        at[path[-1]] = before + 1 if isinstance(before, int | float) else f"x{before}"
    assert refusal(fields, rehash=False)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda plan: plan["capacity"][0].__setitem__(0, float("nan")), "capacity"),
        (lambda plan: plan["size"][0].__setitem__(0, float("inf")), "size"),
        (lambda plan: plan["size"][0].__setitem__(0, -1.0), "size"),
        (lambda plan: plan["capacity"][0].__setitem__(0, 0.0), "a capacity is 0"),
        (lambda plan: plan["size"].pop(), "size is not"),
        (lambda plan: plan["capacity"][0].append(1.0), "capacity is not"),
        (lambda plan: plan["msgRate"].pop(), "unequal length"),
        (lambda plan: plan["owner"].__setitem__(0, 99), "not in the plan"),
        (lambda plan: plan["brokers"].pop(), "is not"),
        (lambda plan: plan["brokers"].__setitem__(1, plan["brokers"][0]), "named twice"),
        (lambda plan: plan["brokers"].__setitem__(1, "a\nb"), "brokers.1"),
        (lambda plan: plan["bundles"].__setitem__(0, "acme/orders"), "impossible_bundle"),
        (lambda plan: plan["steps"][0]["waves"][0][0].__setitem__(2, 77), "not in the plan"),
        (lambda plan: plan["steps"][0]["waves"][0][0].__setitem__(0, 999), "not in the plan"),
        (lambda plan: plan["steps"][0]["waves"].append([]), "is empty"),
        (lambda plan: plan["steps"][0]["certificate"].update(bound=1.1), "bound 1.1"),
        (lambda plan: plan["steps"][0]["certificate"].update(reached=0.01), "the plan reaches"),
        (lambda plan: plan["steps"][0]["certificate"].update(kind="prices"), "not proved by prices"),
        (lambda plan: plan["steps"][0]["certificate"].update(trust="me"), "trust"),
        (lambda plan: plan.update(ceiling=2.0), "ceiling"),
        (lambda plan: plan.update(waveSeconds=0.0), "time of a wave"),
        (lambda plan: plan.update(burstSeconds=0.0), "period of the connections"),
        (lambda plan: plan.update(connectionsPerSecond=0.01), "connections at once"),
        (lambda plan: plan.update(more=1), "more"),
        (lambda plan: plan.update(v=True), ""),
        (lambda plan: plan.pop("fixed"), "fixed"),
        (lambda plan: plan.update(asked="x" * 1001), "asked"),
        (lambda plan: plan.update(resources=["r"] * 17), "resources"),
    ],
)
def test_a_hostile_plan_is_refused_although_its_hash_is_right(change: Callable[[Any], object], said: str) -> None:
    fields = written()
    change(fields["plan"])
    assert said in refusal(fields)


def test_a_plan_that_moves_a_bundle_of_pulsar_itself_is_refused() -> None:
    moved = PLAN.steps[0].moves[0].bundle
    fields = written()
    fields["plan"]["bundles"][moved] = "pulsar/system/0x00000000_0xffffffff"
    assert "belongs to Pulsar itself" in refusal(fields)


@pytest.mark.parametrize(
    "value", [b"", b"[]", b"{}", b"\xff", b"null", b'{"sha256": 1, "plan": 2}', b"[" * 100_000, b"9" * 10_000]
)
def test_what_is_no_plan_is_refused(value: bytes) -> None:
    with pytest.raises(PlanRefusedError, match="not a valid plan"):
        parse_plan(value)


def test_a_plan_that_no_file_may_hold_is_refused_in_words() -> None:
    plan = _made()
    [step, *rest] = plan.steps
    absurd = replace(step, certificate=replace(step.certificate, reached=1e30))
    with pytest.raises(PlanRefusedError, match=r"reached: .*found 1e\+30; a usage or a limit of a broker"):
        encode_plan(replace(plan, steps=(absurd, *rest)))


def test_a_file_of_too_many_values_is_refused_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controller.wire.plan._MOST_VALUES", 100)
    with pytest.raises(PlanRefusedError, match="too_large: 101 values, allowed: 100"):
        parse_plan(b'{"plan":[' + b"[]," * 101 + b"[]]}")


def test_a_file_with_a_number_of_very_many_digits_is_refused() -> None:
    with pytest.raises(PlanRefusedError, match="not_json: a number of 4000 digits, allowed: 1000"):
        parse_plan(b'{"plan":' + b"1" * 4000 + b"}")


def test_a_file_that_is_too_large_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controller.wire.plan.MAX_BYTES", 100)
    with pytest.raises(PlanRefusedError, match="too_large"):
        parse_plan(encode_plan(PLAN))


@pytest.mark.parametrize(("wrong", "more"), [(5, ""), (6, "; and 1 more"), (8, "; and 3 more")])
def test_five_things_that_are_wrong_are_said_and_how_many_more_there_are(wrong: int, more: str) -> None:
    fields = written()
    fields["plan"]["steps"][0]["waves"] += [[]] * wrong
    first = len(PLAN.steps[0].waves) + 1
    said = "; ".join(f"step 1: wave {number} is empty" for number in range(first, first + 5))
    assert refusal(fields) == f"the checker refuses the plan: {said}{more}"

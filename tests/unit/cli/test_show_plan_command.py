"""``trimtab show-plan``: what is in a plan's file, and which files it refuses."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from controller.cli.app import app
from controller.model.errors import PlanRefusedError
from controller.planning.plans.plan import Plan
from controller.planning.plans.plan_steps import PlanLimits, empty_step
from controller.planning.plans.waves import WaveLimits
from controller.wire.plan import encode_plan, hash_of
from tests.balance_problems import problem
from tests.folder_settings import write_settings
from tests.plans import plan_of


def plan_for(cluster: str) -> Plan:
    one = problem([[100.0]] * 3, [(0, [1.0])] * 4)
    step = empty_step(one, [0], PlanLimits(waves=WaveLimits(max_moves=2)))
    return replace(plan_of(one, [step]), cluster=cluster)


def show_plan(folder: Path, content: bytes, *words: str) -> Result:
    file = folder / "plan.json"
    file.write_bytes(content)
    conf = write_settings(folder, cluster="east")
    return CliRunner().invoke(app, ["show-plan", str(file), "--conf", str(conf), *words])


def test_it_prints_the_hash_the_waves_and_the_command_that_applies_the_file(tmp_path: Path) -> None:
    plan = plan_for("east")
    result = show_plan(tmp_path, encode_plan(plan))
    assert result.exit_code == 0, (result.output, result.exception)
    assert hash_of(plan) in result.stdout
    assert f"trimtab apply {tmp_path / 'plan.json'}" in " ".join(result.stdout.split())


def test_its_json_has_the_time_of_each_wave_and_no_path_of_this_machine(tmp_path: Path) -> None:
    plan = plan_for("east")
    result = show_plan(tmp_path, encode_plan(plan), "--json")
    answer = json.loads(result.stdout)
    assert answer["sha256"] == hash_of(plan)
    assert answer["file"] == ""
    for step in answer["steps"]:
        assert len(step["waveTimes"]) == len(step["waves"])
        ends = [each["ends"] for each in step["waveTimes"]]
        assert ends == sorted(ends)
        assert ends[-1] == step["seconds"]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"{}", "is not a valid plan"),
        (b"[" * 100_000, "is not a valid plan"),
        (b"\x00\xff", "is not a valid plan"),
        (encode_plan(plan_for("west")), "the plan is for cluster 'west'"),
        (encode_plan(replace(plan_for("east"), period_ms=1)), "the plan is for intervals of"),
        (encode_plan(plan_for("east")).replace(b'"kind":"drain"', b'"kind":"join"', 1), "the plan was changed"),
    ],
)
def test_what_is_no_plan_of_this_cluster_is_refused_by_name(tmp_path: Path, content: bytes, why: str) -> None:
    result = show_plan(tmp_path, content)
    assert isinstance(result.exception, PlanRefusedError)
    assert why in str(result.exception)

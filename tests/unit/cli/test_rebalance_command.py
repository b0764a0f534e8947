"""``trimtab rebalance`` on groups described in files."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from controller.cli.rebalance import NotBalancedError, Protocol, rebalance
from controller.model.errors import SettingsError, TrimtabError
from tests.command_runs import runner_of

EXAMPLE = Path(__file__).parents[3] / "conf" / "scenarios" / "rebalance.toml"
GROUP = """
protocol = "cooperative-2.6.3"
connectors = { orders = 3 }
members = [{ name = "a", connectors = ["orders"], tasks = ["orders:0", "orders:1", "orders:2"] }]
changes = [{ join = ["b"] }]
"""

run = runner_of(rebalance)


@pytest.fixture
def group(tmp_path: Path) -> Path:
    path = tmp_path / "group.toml"
    path.write_text(GROUP, encoding="utf-8")
    return path


def records(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def refusal(path: Path, *arguments: object) -> str:
    result = run(path, *arguments)
    assert isinstance(result.exception, TrimtabError)
    assert isinstance(result.exception, SettingsError)
    assert result.exception.exit_code == 2
    assert result.stdout == ""
    message = str(result.exception)
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


def test_a_rebalance_is_one_json_object_on_one_line(group: Path) -> None:
    first, second = records(run(group, "--json"))
    assert first == {
        "protocol": "cooperative-2.6.3",
        "change": 1,
        "step": 1,
        "atMs": 0,
        "generation": 1,
        "leader": "a",
        "because": "b joins",
        "delayMs": 0,
        "balanced": False,
        "missing": {"connectors": [], "tasks": ["orders:0"]},
        "unconfigured": {"connectors": [], "tasks": []},
        "members": {
            "a": {
                "starts": {"connectors": [], "tasks": []},
                "stops": {"connectors": [], "tasks": ["orders:0"]},
                "runs": {"connectors": ["orders"], "tasks": ["orders:1", "orders:2"]},
            },
            "b": {key: {"connectors": [], "tasks": []} for key in ("starts", "stops", "runs")},
        },
    }
    assert (second["step"], second["balanced"]) == (2, True)
    assert second["members"]["b"]["runs"] == {"connectors": [], "tasks": ["orders:0"]}


def test_the_table_has_a_row_for_each_member_and_says_what_runs_nowhere_and_what_stopped_in_all(group: Path) -> None:
    result = run(group)
    assert result.exit_code == 0
    rows = [re.split(r"  +", line.strip()) for line in result.stdout.splitlines()[3:-1]]
    assert rows == [
        ["1.1", "0 s", "b joins", "a", "-", "0 + 1", "1 + 2"],
        ["b", "-", "-", "-"],
        ["0 + 1 run nowhere"],
        [""],
        ["1.2", "0 s", "what stopped is free", "a", "-", "-", "1 + 2"],
        ["b", "0 + 1", "-", "0 + 1"],
    ]
    assert result.stdout.endswith("2 rebalances: 1 stopped, 1 started\n")


def test_another_protocol_can_be_tried_on_the_same_file(group: Path) -> None:
    (only,) = records(run(group, "--json", "--protocol", "eager"))
    assert only["protocol"] == "eager"
    assert only["members"]["a"]["stops"]["connectors"] == ["orders"]


def test_json_describes_a_group_as_well(tmp_path: Path) -> None:
    path = tmp_path / "group.json"
    path.write_text(json.dumps({"members": [{"name": "a"}], "changes": [{"create": {"ct": 1}}]}), encoding="utf-8")
    (only,) = records(run(path, "--json"))
    assert only["members"]["a"]["runs"] == {"connectors": ["ct"], "tasks": ["ct:0"]}


def test_the_files_delay_is_how_long_lost_work_waits(tmp_path: Path) -> None:
    path = tmp_path / "group.toml"
    path.write_text(
        'scheduled_rebalance_max_delay_ms = 7000\nconnectors = {ct = 2}\nmembers = [{name = "a"}, {name = "b"}]\n'
        'changes = [{}, {leave = ["b"]}]',
        encoding="utf-8",
    )
    assert [(one["atMs"], one["delayMs"]) for one in records(run(path, "--json"))] == [(0, 0), (0, 7000), (7000, 0)]


def test_asked_for_balance_it_fails_with_what_each_member_runs(group: Path) -> None:
    assert run(group, "--require-balance").exit_code == 0
    result = run(group, "--require-balance", "--protocol", "eager")
    assert result.exit_code == 0
    removed = GROUP.replace('join = ["b"]', 'delete = ["orders"], does_not_stop = ["a"]')
    group.write_text(removed, encoding="utf-8")
    result = run(group, "--require-balance", "--protocol", "eager")
    assert isinstance(result.exception, NotBalancedError)
    assert result.exception.exit_code == 1
    message = f"{group}: not balanced after the last rebalance: a runs 1 + 3; 1 + 3 run and are not configured"
    assert str(result.exception) == message


def test_a_change_during_a_rebalance_takes_part_in_the_next_one(group: Path) -> None:
    changes = 'rebalance_ms = 3000\nchanges = [{ join = ["b"] }, { after_ms = 1000, join = ["c"] }]'
    group.write_text(GROUP.replace('changes = [{ join = ["b"] }]', changes), encoding="utf-8")
    assert [(one["atMs"], one["because"]) for one in records(run(group, "--json"))][:2] == [
        (0, "b joins"),
        (3000, "c joins"),
    ]


def test_the_committed_scenario_ends_balanced_but_by_eager_which_never_learns_what_did_not_stop() -> None:
    codes = {protocol: run(EXAMPLE, "--require-balance", "--protocol", protocol).exit_code for protocol in Protocol}
    assert codes == dict.fromkeys(Protocol, 0) | {Protocol.EAGER: 1}


@pytest.mark.slow
def test_the_example_compares_a_protocol_with_eager() -> None:
    last = run("--example").stdout.splitlines()[-1]
    assert last.split() == ["altogether", "0", "81,000", "900"]
    rows = records(run("--example", "--json", "--protocol", "cooperative"))
    assert len(rows) == 180
    assert rows[89] == {"change": "start connector-90", "tasks": 900, "stopped": {"eager": 890, "cooperative": 0}}


@pytest.mark.parametrize("arguments", [(), ("--example", EXAMPLE), ("--example", "--protocol", "eager")])
def test_what_makes_no_sense_together_is_refused(arguments: tuple[object, ...]) -> None:
    assert run(*arguments).exit_code == 2


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("orders = 3", "orders = -1", "connectors.orders = -1: Input should be greater than or equal to 0"),
        ('"cooperative-2.6.3"', '"fair"', "protocol = 'fair': Input should be 'eager', 'cooperative',"),
        ("protocol =", "protocoll =", "protocoll = 'cooperative-2.6.3': unknown key"),
        ('name = "a", ', "", "members.0.name is missing"),
        ('"orders:1"', '"orders"', "members.0.tasks.1 = 'orders': a task is connector:number, for example orders:0"),
        ('["orders"]', '["orders", "orders"]', "members.0.connectors = ['orders', 'orders']: 'orders' is listed twice"),
        ('join = ["b"]', 'join = ["a"]', "changes.0.join = 'a': is a member already"),
        ('join = ["b"]', 'leave = ["b"]', "changes.0.leave = 'b': no such member then; there are: a"),
        ('join = ["b"]', 'leave = ["a"]', "changes.0.leave = ['a']: nobody would be left"),
        ('join = ["b"]', 'delete = ["x"]', "changes.0.delete = 'x': no such connector then; there are: orders"),
        ('join = ["b"]', 'does_not_stop = ["b"]', "changes.0.does_not_stop = 'b': no such member then; there are: a"),
        ('join = ["b"]', "after_ms = -5", "changes.0.after_ms = -5: Input should be greater than or equal to 0"),
        (
            'changes = [{ join = ["b"] }]',
            "",
            "changes = [] causes no rebalance; give at least one change, which may be {}",
        ),
        ("connectors = {", "connectors = ", "not TOML: "),
    ],
)
def test_a_flaw_is_named_with_file_key_and_value(group: Path, old: str, new: str, said: str) -> None:
    assert old in GROUP
    group.write_text(GROUP.replace(old, new, 1), encoding="utf-8")
    assert refusal(group).startswith(said)


def test_two_members_of_one_name_are_refused(group: Path) -> None:
    group.write_text('members = [{name = "a"}, {name = "a"}]', encoding="utf-8")
    assert refusal(group) == "members.1.name = 'a': there is another member of that name"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.toml").startswith("cannot be read: ")


def test_json_that_is_none_is_called_so(tmp_path: Path) -> None:
    path = tmp_path / "group.json"
    path.write_text("{", encoding="utf-8")
    assert refusal(path).startswith("not JSON: ")

"""What all commands have in common: groups in the help, --version, --quiet, completion."""

import re
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from controller.adapters import long_work
from controller.cli import app as cli


def test_commands_stand_in_groups_and_by_name_in_each() -> None:
    told = CliRunner().invoke(cli.app, ["--help"]).output
    places = [told.index(f"{group}:") for group in (cli.OPERATE, cli.LOOK, cli.TRY)]
    assert places == sorted(places)
    order = [(listed.group, name) for name, listed in cli.COMMANDS.items()]
    groups = list(dict.fromkeys(group for group, _ in order))
    assert groups == [cli.OPERATE, cli.LOOK, cli.TRY]
    assert order == sorted(order, key=lambda each: (groups.index(each[0]), each[1]))


def test_the_version_is_that_of_the_installed_package_and_names_the_commit_and_spark() -> None:
    told = CliRunner().invoke(cli.app, ["--version"]).output
    commit = r"(unknown|[0-9a-f]{12}(-dirty)?)"
    expected = rf"trimtab {re.escape(version('trimtab'))} \(commit {commit}, Spark {re.escape(version('pyspark'))}\)\n"
    assert re.fullmatch(expected, told)


@pytest.mark.parametrize("words", [["--quiet", "rebalance", "--help"], ["rebalance", "-q", "none.toml"]])
def test_quiet_may_stand_before_and_behind_the_command(words: list[str]) -> None:
    CliRunner().invoke(cli.app, words)
    assert long_work.is_quiet()
    CliRunner().invoke(cli.app, ["rebalance", "--help"])
    assert not long_work.is_quiet()


def _paths(name: str, command: Any) -> Iterator[tuple[str, Any, list[str]]]:
    """Every command of *command* with the words that give it an empty path, for each of the paths that it takes."""
    for below, one in getattr(command, "commands", {}).items():
        yield from _paths(f"{name} {below}", one)
    for each in command.params:
        if "Path" in str(each.type_descriptor.annotation):
            yield name, command, ["" if each.param_type_name == "argument" else f"{each.opts[0]}="]


def test_no_command_takes_an_empty_path_for_the_current_folder() -> None:
    calls = [call for name in cli.COMMANDS for call in _paths(name, cli.loaded(name))]
    named = {(name, *words) for name, _, words in calls}
    assert {("init", ""), ("init", "--state="), ("decide", ""), ("incident make", "--output=")} <= named
    for name, command, words in calls:
        with pytest.raises(typer.BadParameter, match="an empty path"):
            command.make_context(name, words)


def test_an_empty_name_of_a_scenario_is_not_the_current_folder() -> None:
    answer = CliRunner().invoke(cli.app, ["compare", "", "--strategies", "OverloadShedder,ThresholdShedder"])
    assert str(answer.exception).startswith("'': no scenario of that name")


@pytest.mark.parametrize(
    ("typed", "offered"), [("st", {"status", "stop-all", "strategies"}), ("doctor --g", {"--grants"})]
)
def test_the_shell_completes_commands_and_their_options(typed: str, offered: set[str]) -> None:
    asked = {
        "_TRIMTAB_COMPLETE": "complete_bash",
        "COMP_WORDS": f"trimtab {typed}",
        "COMP_CWORD": str(len(typed.split())),
    }
    answer = CliRunner().invoke(cli.app, [], prog_name="trimtab", env=asked)
    assert set(answer.output.split()) == offered

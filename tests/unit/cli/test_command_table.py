import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from controller.cli import app as cli
from controller.cli.main import UNTIL_TOLD
from controller.cli.shared.examples import EXAMPLES
from controller.model.errors import TrimtabError
from controller.wire.schemas import FOLDER

_HEAVY = {"confluent_kafka", "kazoo", "numpy", "pandas", "pulsar", "pyarrow", "pydantic", "pyspark"}


def test_help_lists_every_command_without_loading_any() -> None:
    program = (
        "import sys; from controller.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print('LOADED', *sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    run = subprocess.run([sys.executable, "-c", program, "--help"], capture_output=True, text=True, check=True)
    told, _, loaded = run.stdout.partition("LOADED")
    assert all(f" {name} " in told for name in cli.COMMANDS)
    assert not _HEAVY & set(loaded.split())


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_of_the_table_is_there_and_tells_its_options(name: str) -> None:
    answer = CliRunner().invoke(cli.app, [name, "--help"])
    assert answer.exit_code == 0, answer.output
    assert f"Usage: root {name}" in " ".join(answer.output.split())


def test_every_file_beside_the_table_is_a_command_or_known() -> None:
    files = {path.stem for path in Path(cli.__file__).parent.glob("*.py")}
    shared = {"__init__", "__main__", "main", "manual", "app", "reference"}
    assert files - shared == {one.module for one in cli.COMMANDS.values()} - {"controller.bench.command"}


def _all_commands() -> Iterator[tuple[str, Any]]:
    """Every command, and those of the groups, by the words that call it."""
    for name in cli.COMMANDS:
        command = cli.loaded(name)
        if hasattr(command, "commands"):
            yield from ((f"{name} {below}", each) for below, each in command.commands.items())
        else:
            yield name, command


def test_every_command_that_prints_an_answer_prints_json_too_and_names_its_schema() -> None:
    without = set()
    for name, command in _all_commands():
        helps = [option.help for option in command.params if "--json" in option.opts]
        if not helps:
            without.add(name)
            continue
        (stem, several) = re.findall(r"docs/schemas/([\w.*]+)(?:\{([\w,]+)\})?\.json", helps[0])[0]
        for each in several.split(","):
            assert list(FOLDER.glob(f"{stem}{each}.json")), (name, helps)
    asking = {"take-over", "hand-back"}  # step by step, for a person
    services = {"demo", "run", "collect", "execute", "serve"}  # collect --dry-run prints JSON only
    assert without == {*services, "init", "token", *asking}


def test_no_help_is_cut_at_80_columns_and_brackets_are_printed() -> None:
    for name, _ in _all_commands():
        answer = CliRunner().invoke(cli.app, [*name.split(), "--help"], env={"COLUMNS": "80"})
        assert answer.exit_code == 0, name
        assert not [line for line in answer.output.splitlines() if len(line) > 80 or "…" in line], name
    told = CliRunner().invoke(cli.app, ["lookup", "--help"], env={"COLUMNS": "80"}).output
    assert "brokers in [pulsar] of --conf" in " ".join(told.split())
    decide = CliRunner().invoke(cli.app, ["decide", "--help"], env={"COLUMNS": "80"}).output
    assert "MessageRateDeviationShedder," in decide.split()


@pytest.mark.parametrize("columns", [40, 80])
def test_the_commands_of_a_group_are_listed_with_whole_sentences(columns: int) -> None:
    for words in ([], ["bench"], ["commands"], ["strategies"]):
        answer = CliRunner().invoke(cli.app, words, env={"COLUMNS": str(columns)})
        assert answer.exit_code == 2
        assert "Usage: root" in answer.output
        lines = answer.output.splitlines()
        assert not [line for line in lines if len(line) > columns or (line.endswith("...") and "ARGS" not in line)]
    told = " ".join(CliRunner().invoke(cli.app, ["bench"], env={"COLUMNS": str(columns)}).output.split())
    assert "Measure every shedder, placement and split check, and the update of the averages." in told


def test_a_wrong_choice_is_told_in_plain_words() -> None:
    answer = CliRunner().invoke(cli.app, ["mode", "sleep"])
    assert answer.exit_code == 2
    assert "Error: Invalid value for 'value': 'sleep' is not one of 'active'," in " ".join(answer.output.split())


def test_every_command_has_examples_at_the_end_of_its_help() -> None:
    known = {name for name, _ in _all_commands()}
    assert known - {"bench pipeline"} == set(EXAMPLES)
    for words, lines in EXAMPLES.items():
        told = CliRunner().invoke(cli.app, [*words.split(), "--help"], env={"COLUMNS": "80"}).output
        assert told.endswith("\n\n  Examples:\n" + "".join(f"    {line}\n" for line in lines)), told


def test_a_mistyped_command_is_refused_with_the_nearest_one() -> None:
    answer = CliRunner().invoke(cli.app, ["lokup"])
    assert answer.exit_code == 2
    assert "No such command 'lokup'. Did you mean 'lookup'?" in " ".join(answer.output.split())


def test_commands_that_run_until_told_are_in_the_table() -> None:
    assert set(UNTIL_TOLD) <= set(cli.COMMANDS)


@pytest.mark.parametrize("words", [["bench", "decisions"], ["demo", "--pulsar"]])
def test_what_the_wheel_lacks_is_said_to_need_a_checkout(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("controller.bench.command", "controller.lab.pulsar_demo"):
        monkeypatch.setitem(sys.modules, module, None)
    cli.loaded.cache_clear()
    error = CliRunner().invoke(cli.app, words).exception
    cli.loaded.cache_clear()
    assert isinstance(error, TrimtabError)
    assert str(error).endswith("is not part of the installed package: run it in a checkout of trimtab")


@pytest.mark.parametrize("name", ["balance", "frontier", "moves"])
def test_a_bench_that_became_a_script_is_refused_with_the_script(name: str) -> None:
    answer = CliRunner().invoke(cli.app, ["bench", name, "--json"])
    assert answer.exit_code == 2
    assert f"{name} was removed: run `scripts/measure {name}` in a checkout" in " ".join(answer.output.split())

"""``trimtab simulate`` and ``trimtab compare``: what they print, and how they end."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from controller.cli.compare import compare_strategies
from controller.cli.simulate import simulate_scenario
from controller.cli.texts.figures import mean_text
from controller.cli.texts.judged import NotMetError
from controller.model.errors import SettingsError
from controller.offline.scenarios.compare import FigureOverSeeds
from controller.settings.scenario_parts import Cure

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
SMALL = """
title = "an uneven load"
text = "One broker has more than the others."
intervals = 8
expect = ["moves <= 100"]
brokers = [{ count = 1, load = 3 }, { count = 2 }]
namespaces = [{ name = "acme/orders", bundles = 30, topics = 60, zipf = 0 }]
hardware = { cpu_percent = 40 }
load = { message_bytes = 8192 }

[decisions]
split = false

[cure]
text = "shed"
expect = ["moves >= 1"]
broker_conf = { loadBalancerLoadSheddingStrategy = "UniformLoadShedder" }

[broker_conf]
loadBalancerLoadSheddingStrategy = "OverloadShedder"
"""

app = typer.Typer()
app.command("simulate")(simulate_scenario)
app.command("compare")(compare_strategies)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "80"})


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL, encoding="utf-8")
    return path


def record(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    (line,) = result.stdout.splitlines()
    answer: dict[str, Any] = json.loads(line)
    return answer


def test_it_prints_what_the_cure_sets_as_the_files_have_it() -> None:
    """Lines to copy, not prose: the option, its file and its value."""
    several = Cure.model_validate(
        {
            "text": "several",
            "expect": ["moves >= 1"],
            "broker_conf": {"lowerBoundarySheddingEnabled": True, "minUnloadMessage": 0},
            "decisions": {"excluded": ["acme/quiet"], "split": False},
            "guardrails": {"freeze_intervals": 5, "interval": {"unloads": "unlimited"}},
            "true_limits": True,
        }
    )
    assert several.changes() == [
        "broker.conf: lowerBoundarySheddingEnabled=true",
        "broker.conf: minUnloadMessage=0",
        "trimtab.toml: decisions.split = false",
        'trimtab.toml: decisions.excluded = ["acme/quiet"]',
        "trimtab.toml: guardrails.freeze_intervals = 5",
        'trimtab.toml: guardrails.interval.unloads = "unlimited"',
        "trimtab.toml: collector.capacity_overrides = a file with the true limits",
    ]


def test_the_cures_settings_stand_below_it(small: Path) -> None:
    result = run("simulate", small, "--seeds", "1")
    assert "its settings  broker.conf: loadBalancerLoadSheddingStrategy=UniformLoadShedder\n" in result.stdout
    told = record(run("simulate", small, "--seeds", "1", "--json"))
    assert told["cureSettings"] == ["broker.conf: loadBalancerLoadSheddingStrategy=UniformLoadShedder"]


def test_show_prints_the_file_byte_for_byte(small: Path) -> None:
    assert run("simulate", small, "--show").stdout == SMALL
    shipped = ROOT / "conf" / "scenarios" / "simulated" / "idle-broker.toml"
    assert run("simulate", "idle-broker", "--show").stdout == shipped.read_text(encoding="utf-8")


@pytest.mark.parametrize("words", [("small", "--json"), ("--list",), ("kept.tar",)])
def test_show_is_of_scenarios_in_toml_alone(words: tuple[str, ...], small: Path) -> None:
    result = run("simulate", *(small if word == "small" else word for word in words), "--show")
    assert result.exit_code == 2
    assert "--show" in result.stderr


def test_it_prints_each_expectation_with_its_figure_in_80_columns(small: Path) -> None:
    result = run("simulate", small, "--seeds", "2")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    (line,) = [line for line in lines if line.startswith("moves >= 1")]
    assert line.split()[3:5] == ["fails:", "0"]
    assert line.split()[-1] == "yes"
    assert "2 of 2 expectations met" in lines


def test_an_expectation_that_is_not_met_ends_it_with_1_and_is_named(small: Path) -> None:
    small.write_text(SMALL.replace("moves <= 100", "moves <= 0"), encoding="utf-8")
    result = run("simulate", small, "--seeds", "1")
    assert isinstance(result.exception, NotMetError)
    assert result.exception.exit_code == 1
    assert str(result.exception) == f"{small}: 1 of 2 expectations not met: moves <= 0"
    assert "holds: 0" in result.stdout
    assert "NO" in result.stdout


def test_a_cure_that_is_not_needed_is_no_cure(small: Path) -> None:
    small.write_text(SMALL.replace('"moves >= 1"', '"moves >= 0"'), encoding="utf-8")
    assert isinstance(run("simulate", small, "--seeds", "1").exception, NotMetError)


def test_the_json_has_the_figures_of_every_seed(small: Path) -> None:
    answer = record(run("simulate", small, "--seeds", "2", "--json"))
    assert (answer["scenario"], answer["seeds"], answer["held"], answer["cure"]) == ("small", [1, 2], True, "shed")
    by_text = {each["text"]: each for each in answer["expectations"]}
    assert by_text["moves >= 1"]["withoutCure"] == [0, 0]
    assert by_text["moves >= 1"]["heldWithCure"] == 2
    assert by_text["moves >= 1"]["withCure"] == answer["withCure"]["moves"]


def test_a_scenario_without_a_cure_has_one_result(small: Path) -> None:
    small.write_text(SMALL.partition("[cure]")[0], encoding="utf-8")
    result = run("simulate", small, "--seeds", "1")
    assert result.exit_code == 0, result.output
    assert "cure" not in result.stdout
    assert record(run("simulate", small, "--seeds", "1", "--json"))["withCure"] == {}


def test_all_scenarios_are_listed() -> None:
    listed = [json.loads(line) for line in run("simulate", "--list", "--json").stdout.splitlines()]
    assert {each["scenario"] for each in listed} == {
        path.stem for path in (ROOT / "conf" / "scenarios" / "simulated").glob("*.toml")
    }
    shown = run("simulate", "--list").stdout
    assert all(each["scenario"] in shown for each in listed)
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("arguments", [(), ("idle-broker", "--list")])
def test_either_a_scenario_or_the_list(arguments: tuple[str, ...]) -> None:
    assert run("simulate", *arguments).exit_code == 2


def test_an_unknown_name_says_where_names_come_from() -> None:
    error = run("simulate", "idle-brokers").exception
    assert isinstance(error, SettingsError)
    assert "no scenario of that name comes with trimtab" in str(error)


def test_the_list_is_the_same_in_every_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = run("simulate", "--list").stdout
    monkeypatch.chdir(tmp_path)
    assert run("simulate", "--list").stdout == listed


# ---- compare ----

TWO = ("--strategies", "OverloadShedder,UniformLoadShedder")


def test_comparison_fits_80_columns_and_says_who_wins(small: Path) -> None:
    result = run("compare", small, *TWO, "--seeds", "6")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "A  OverloadShedder" in lines
    beats = next(line for line in lines if "A beats" in line)
    won = [line for line in lines if line.startswith("balance sd ")][-1]
    assert won.rstrip().endswith("A*")
    assert won.index("A*") == beats.index("B beats")
    assert any(line.startswith("The same in all runs: time over limit 0, ") for line in lines)


def test_four_strategies_fit_80_columns_as_a_table(small: Path) -> None:
    small.write_text(SMALL.replace("message_bytes = 8192", "message_bytes = 8192, drift_percent = 9"), "utf-8")
    four = "OverloadShedder,UniformLoadShedder,AvgShedder,MessageRateDeviationShedder"
    result = run("compare", small, "--strategies", four, "--seeds", "3")
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    (header,) = [line for line in lines if line.split()[:1] == ["figure"] and "beats" not in line]
    assert header.split() == ["figure", "A", "B", "C", "D"]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ((1.179, 1.181), "1.180 ±0.013"),
        ((592.0, 627.0), "609.5 ±222.4"),
        ((80_752.0, 81_752.0), "81.3k ±6.4k"),
        ((3e9, 3e9), "3e+03M"),
        ((2e6, 3e6), "2.50M ±6.35M"),
        ((0.0, 0.0), "0"),
        ((12_345.0,), "12.3k"),
        ((0.00001, 0.00003), "0.000 ±0.000"),
    ],
)
def test_numbers_are_short_and_as_exact_as_their_margin(values: tuple[float, ...], told: str) -> None:
    assert mean_text(FigureOverSeeds(values=values)) == told


def test_the_json_has_every_figure_and_every_pair(small: Path) -> None:
    answer = record(run("compare", small, *TWO, "--seeds", "2", "--json"))
    assert list(answer["figures"]) == ["OverloadShedder", "UniformLoadShedder"]
    moves = answer["figures"]["UniformLoadShedder"]["moves"]
    assert moves["mean"] == sum(moves["values"]) / 2
    (duel,) = [each for each in answer["duels"] if each["figure"] == "moves"]
    assert (duel["winner"], duel["firstWins"], duel["probability"]) == ("OverloadShedder", 2, 0.5)


def test_with_one_seed_there_is_no_interval(small: Path) -> None:
    answer = record(run("compare", small, *TWO, "--seeds", "1", "--json"))
    assert answer["figures"]["OverloadShedder"]["moves"]["margin"] is None


def test_a_file_of_options_is_a_strategy(small: Path, tmp_path: Path) -> None:
    conf = tmp_path / "ours.conf"
    conf.write_text("loadBalancerLoadSheddingStrategy=UniformLoadShedder\n", encoding="iso-8859-1")
    answer = record(run("compare", small, "--strategies", f"{conf},UniformLoadShedder", "--seeds", "1", "--json"))
    assert {duel["equal"] for duel in answer["duels"]} == {1}


def test_several_scenarios_are_compared_one_after_the_other(small: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text(SMALL, encoding="utf-8")
    result = run("compare", small, other, *TWO, "--seeds", "1", "--json")
    assert [json.loads(line)["scenario"] for line in result.stdout.splitlines()] == ["small", "other"]


@pytest.mark.parametrize("strategies", ["", "OverloadShedder", "OverloadShedder,OverloadShedder", ",,"])
def test_one_strategy_is_no_comparison(small: Path, strategies: str) -> None:
    refused = run("compare", small, "--strategies", strategies)
    assert refused.exit_code == 2
    assert "give 2 to 26 different strategies" in " ".join(refused.output.split())


def test_an_unknown_strategy_is_refused_with_those_that_there_are(small: Path) -> None:
    error = run("compare", small, "--strategies", "OverloadShedder,Best").exception
    assert isinstance(error, SettingsError)
    assert str(error).startswith("Best: no such strategy; allowed: AvgShedder, ")


def test_a_report_for_which_there_is_no_folder_is_refused_before_anything_is_simulated(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.cli.compare.compare", None)
    where = small.parent / "none" / "report.html"
    result = run("compare", small, "--strategies", "AvgShedder,ThresholdShedder", "--html", where)
    assert isinstance(result.exception, SettingsError)
    assert f"--html {where}: {where.parent}: no such folder" in str(result.exception)

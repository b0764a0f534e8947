"""``trimtab what-if`` on the log of a modelled cluster and a real controller, and on a recording of it."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from controller.cli.app import app
from controller.wire.answers.simulate import CompareAnswer
from controller.wire.answers.what_if import WhatIfAnswer
from tests.command_runs import output_of
from tests.modelled_log import played, settings_in
from tests.recordings import recording_of

pytestmark = pytest.mark.slow

CONF = """loadBalancerLoadSheddingStrategy=UniformLoadShedder
loadBalancerNamespaceBundleMaxMsgRate=6000
"""


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The settings of a controller that has balanced a cluster for some intervals."""
    made = settings_in(tmp_path_factory.mktemp("controller"), broker_conf=CONF)
    played(made, 8)
    return made


@pytest.fixture(scope="module")
def recording(conf: Path) -> Path:
    """A recording of its log."""
    return recording_of(conf)


def run(*words: object, code: int = 0) -> str:
    return output_of("what-if", *words, code=code)


def answer(*words: object) -> WhatIfAnswer:
    said: dict[str, Any] = json.loads(run(*words, "--json"))
    return WhatIfAnswer.model_validate(said)


@pytest.mark.parametrize("conf_given", [True, False])
def test_all_recorded_moves_are_reproduced_from_a_log_and_from_a_recording(
    conf: Path, recording: Path, conf_given: bool
) -> None:
    found = answer(conf.parent / "log", "--conf", conf) if conf_given else answer(recording)
    assert found.reproduction is not None
    assert found.reproduction.recorded > 3
    assert found.reproduction.share == 1
    assert found.reproduction.only_replayed == 0
    assert (found.intervals, found.decided, found.notes) == (8, 8, [])


def test_strategies_stand_beside_what_happened(conf: Path, recording: Path) -> None:
    other = conf.parent / "other.conf"
    other.write_text("loadBalancerLoadSheddingStrategy=ThresholdShedder\n", encoding="utf-8")
    found = answer(recording, "--strategy", "OverloadShedder", "--strategy", other, "--limit-percent", 50)
    assert list(found.strategies) == ["OverloadShedder", str(other)]
    assert found.happened["moves"] > 0
    assert found.strategies["OverloadShedder"].figures["moves"] < found.happened["moves"]
    assert found.strategies["OverloadShedder"].figures.keys() == found.happened.keys()
    assert {fit.resource for fit in found.model} >= {"cpu", "bandwidth in", "bandwidth out"}


def test_two_settings_are_compared_decision_by_decision(recording: Path) -> None:
    found = answer(recording, "--diff", "OverloadShedder", "UniformLoadShedder").difference
    assert found is not None
    assert (found.first, found.second) == ("OverloadShedder", "UniformLoadShedder")
    assert found.only_second == sum(len(each.only_second) for each in found.listed) > 0
    assert found.different_intervals == len(found.listed)


def test_tables_say_what_is_left_out(recording: Path) -> None:
    shown = run(recording, "--strategy", "UniformLoadShedder", "--most", 1)
    assert "recorded moves and splits with the recorded settings (100.0 %)" in shown
    assert "UniformLoadShedder would have done" in shown
    assert "--most" in shown
    assert "differ:" in run(recording, "--diff", "OverloadShedder", "UniformLoadShedder")


def test_compare_prints_the_same_figures_for_recordings(recording: Path) -> None:
    found = answer(recording, "--strategy", "OverloadShedder", "--strategy", "UniformLoadShedder")
    words = ["compare", str(recording), "--strategies", "OverloadShedder,UniformLoadShedder"]
    said = CliRunner().invoke(app, [*words, "--json"])
    compared = CompareAnswer.model_validate(json.loads(said.stdout))
    figures = {name: {figure: one.mean for figure, one in of.items()} for name, of in compared.figures.items()}
    assert figures == {
        "what happened": found.happened,
        **{name: strategy.figures for name, strategy in found.strategies.items()},
    }
    assert (compared.scenario, compared.intervals) == ("recording", 8)
    assert "moves" in {duel.figure for duel in compared.duels if duel.winner}
    shown = CliRunner().invoke(app, words).stdout
    assert "Over 8 intervals, one run each; smaller is better" in shown
    assert "what happened" in shown
    assert "beats" not in shown


def test_the_report_shows_what_happened_beside_the_replays(recording: Path, tmp_path: Path) -> None:
    words = ["compare", str(recording), "--strategies", "OverloadShedder,UniformLoadShedder", "--json"]
    said = CliRunner().invoke(app, [*words, "--html", str(tmp_path / "x.html")])
    compared = CompareAnswer.model_validate(json.loads(said.stdout))
    page = (tmp_path / "x.html").read_text()
    (shown,) = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    assert (shown["name"], shown["intervals"], len(shown["times"])) == ("recording", 8, 8)
    assert [run["strategy"] for run in shown["runs"]] == list(compared.figures)
    for run in shown["runs"]:
        assert len(run["moves"]) == compared.figures[run["strategy"]]["moves"].mean
        assert len(run["ratio"]) == 8
    happened = shown["runs"][0]
    assert happened["moves"]
    decided_in, reasons = happened["moves"][0][1], happened["reasons"]
    assert int(happened["decided"][str(decided_in)][0].split()[0]) > 0, "so many commands were recorded then"
    assert any("UniformLoadShedder" not in each and ": " in each for each in reasons)


def test_a_part_of_the_recording_can_be_replayed(recording: Path) -> None:
    found = answer(recording, "--from", "2025-01-01T00:02:00Z", "--to", "2025-01-01T00:04:00Z")
    assert found.intervals == 3
    assert found.reproduction is not None
    assert found.reproduction.share in (1, None)


def test_a_log_without_settings_is_replayed_with_defaults_and_says_so(conf: Path) -> None:
    found = answer(conf.parent / "log", "--strategy", "UniformLoadShedder")
    assert found.reproduction is None
    assert "--conf" in found.notes[0]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--strategy", "Nonsense"], "no such strategy"),
        (["--diff", "AvgShedder", "Nonsense"], "no such strategy"),
        (["--from", "noon"], "is not a time"),
        (["--from", "2025-01-02T00:00:00Z", "--to", "2025-01-01T00:00:00Z"], "later than --to"),
        (["--from", "2035-01-02T00:00:00Z"], "no closed interval"),
        (["--most", "-1"], "--most"),
    ],
)
def test_what_cannot_be_is_refused_with_exit_code_2(recording: Path, words: list[str], says: str) -> None:
    assert says in run(recording, *words, code=2)


def test_a_folder_that_is_no_recording_is_refused(tmp_path: Path) -> None:
    assert "neither a recording" in run(tmp_path, code=2)
    (tmp_path / "metrics").mkdir()
    assert "no record names a cluster" in run(tmp_path, code=2)
    (tmp_path / "metrics" / "1-1.jsonl").write_bytes(b'{"cluster":"x"}\n\xff\xfe\n[[[[\n')
    assert "no closed interval" in run(tmp_path, code=2)

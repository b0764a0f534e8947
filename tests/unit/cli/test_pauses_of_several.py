"""Pauses of several people stand side by side, end by themselves where they are told to, and leave a history."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from controller.adapters.controls_in_force import ControlsInForce
from controller.adapters.folder.controls import FileControls
from controller.cli import app as cli
from controller.cycle import decide
from controller.model.controls import MAX_HISTORY, MAX_PAUSES, ControlChange, Controls, OperatorControls, Pause
from controller.model.decision import Reason
from controller.settings.standing_controls import standing_controls
from controller.settings.trimtab_toml import read_settings
from controller.wire.controls import MAX_BYTES, encode_controls, parse_controls
from tests.cluster import INTERVAL
from tests.folder_settings import write_settings
from tests.unit.cycle.test_guardrails_grace import POLICY, VIEW, WARM

HOUR = 3_600_000


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    return write_settings(tmp_path, cluster="lab")


def run(conf: Path, *words: str) -> Result:
    return CliRunner().invoke(cli.app, [*words, "--conf", str(conf)], env={"COLUMNS": "500"})


def stored(conf: Path) -> OperatorControls:
    return FileControls(conf.parent / "election", cluster="lab").read()[0]


def pausers(conf: Path) -> list[str]:
    return [each.by for each in stored(conf).pauses]


@pytest.fixture
def paused_by_two(conf: Path) -> Path:
    run(conf, "pause", "--by", "alice", "--reason", "bookie upgrade")
    told = run(conf, "pause", "--by", "bob", "--reason", "tests").output
    assert "Also paused by alice: bookie upgrade." in told
    return conf


def test_one_s_resume_leaves_the_pause_of_the_other(paused_by_two: Path) -> None:
    told = run(paused_by_two, "resume", "--by", "bob").output
    assert "Ended the pause of bob: tests" in told
    assert "Still paused: by alice: bookie upgrade." in told
    assert pausers(paused_by_two) == ["alice"]


@pytest.mark.parametrize("words", [[], ["--of", "carol"], ["--of", "alice", "--of", "carol"]])
def test_a_resume_of_nobody_s_pause_is_refused_and_changes_nothing(paused_by_two: Path, words: list[str]) -> None:
    before = stored(paused_by_two)
    refused = run(paused_by_two, "resume", "--by", "carol", *words)
    assert refused.exit_code == 1
    assert "there is no pause of carol" in str(refused.exception)
    assert "alice: bookie upgrade; bob: tests" in str(refused.exception)
    assert stored(paused_by_two) == before


@pytest.mark.parametrize(("words", "left"), [(["--all"], []), (["--of", "alice"], ["bob"])])
def test_pauses_of_others_end_by_name_or_all_at_once(paused_by_two: Path, words: list[str], left: list[str]) -> None:
    assert run(paused_by_two, "resume", "--by", "carol", *words).exit_code == 0
    assert pausers(paused_by_two) == left


def test_status_and_verdict_show_every_pause(paused_by_two: Path) -> None:
    row = " ".join(run(paused_by_two, "status").output.split())
    assert "set by alice at" in row
    assert ": bookie upgrade" in row
    assert "set by bob at" in row
    assert ": tests" in row
    answer = json.loads(run(paused_by_two, "status", "--json").stdout)
    assert [each["by"] for each in answer["guardrails"]["paused"]["pauses"]] == ["alice", "bob"]
    controls = Controls(mode="active", paused=True, pauses=stored(paused_by_two).pauses)
    found, _ = decide(VIEW, (), WARM, controls, POLICY)
    (verdict,) = [each for each in found.verdicts if each.reason is Reason.PAUSED]
    assert verdict.detail == "alice: bookie upgrade; bob: tests"


def test_stop_all_does_not_end_the_pause_of_somebody_else(paused_by_two: Path) -> None:
    run(paused_by_two, "stop-all", "--by", "carol", "--reason", "wrong bundles")
    run(paused_by_two, "resume", "--by", "carol")
    assert pausers(paused_by_two) == ["alice", "bob"]


def test_a_pause_ends_by_itself_after_its_time(conf: Path) -> None:
    told = run(conf, "pause", "--for", "2h", "--by", "alice").output
    (pause,) = stored(conf).pauses
    assert "Z, or `trimtab resume" in told
    assert pause.until_ms - pause.at_ms == 2 * HOUR
    settings, store = read_settings(conf), FileControls(conf.parent / "election", cluster="lab")
    for now_ms, paused in ((pause.until_ms - 1, True), (pause.until_ms, False)):
        found = ControlsInForce(standing_controls(settings), store, lambda now=now_ms: now).at(now_ms)  # type: ignore[misc]
        assert (found.paused, len(found.pauses)) == (paused, int(paused))


@pytest.mark.parametrize("text", ["0m", "2", "-1h", "2 h", "forever", "999999d"])
def test_what_is_no_length_of_time_is_refused(conf: Path, text: str) -> None:
    refused = run(conf, "pause", f"--for={text}")
    assert refused.exit_code == 2
    assert not (conf.parent / "election" / "controls.json").exists()


def test_a_pause_of_another_that_ends_does_not_end_one_that_stands() -> None:
    controls = OperatorControls(
        pauses=(Pause(by="a", reason="", at_ms=1, until_ms=5), Pause(by="b", reason="", at_ms=2))
    )
    assert controls.is_paused(9, paused=False)
    assert [each.by for each in controls.pauses_at(9)] == ["b"]


def test_a_further_pause_always_works_and_their_number_is_bounded() -> None:
    controls = OperatorControls()
    for number in range(2 * MAX_PAUSES):
        controls = controls.with_pause(Pause(by=f"p{number}", reason="", at_ms=number))
    assert len(controls.pauses) == MAX_PAUSES
    assert controls.pauses[-1].by == f"p{2 * MAX_PAUSES - 1}"


def test_the_history_says_who_did_what_when_and_why(paused_by_two: Path) -> None:
    run(paused_by_two, "resume", "--by", "bob", "--reason", "tests done")
    run(paused_by_two, "mode", "observe", "--by", "root", "--reason", "take over")
    lines = run(paused_by_two, "controls").output.splitlines()
    assert [line.split("Z  ")[1] for line in lines] == [
        "mode observe, by root: take over",
        "resume ends the pause of bob: tests, by bob: tests done",
        "pause, by bob: tests",
        "pause, by alice: bookie upgrade",
    ]
    newest = json.loads(run(paused_by_two, "controls", "--json", "--limit", "1").stdout)
    assert (newest["action"], newest["detail"], newest["by"]) == ("mode", "observe", "root")


def test_the_history_is_bounded_in_number_and_in_bytes() -> None:
    controls = OperatorControls()
    for number in range(3 * MAX_HISTORY):
        smile = "\U0001f600"
        worst = ControlChange(at_ms=number, by=smile * 100, action="mode", detail=smile * 500, reason=smile * 500)
        controls = controls.with_change(worst)
    assert len(controls.history) == MAX_HISTORY
    value = encode_controls(controls)
    assert len(value) <= MAX_BYTES
    assert parse_controls(value).history[-1].at_ms == 3 * MAX_HISTORY - 1


def test_the_log_says_who_did_what(conf: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    run(conf, "mode", "observe", "--by", "root", "--reason", "take over")
    controller = ControlsInForce(
        standing_controls(read_settings(conf)), FileControls(conf.parent / "election", cluster="lab"), lambda: INTERVAL
    )
    controller.at(INTERVAL)
    run(conf, "pause", "--by", "alice", "--reason", "upgrade")
    controller.at(INTERVAL)
    run(conf, "resume", "--by", "alice", "--reason", "done")
    caplog.clear()
    controller.at(INTERVAL)
    assert caplog.messages == [
        "resume ends the pause of alice: upgrade, by alice: done",
        "mode observe, set by root; not paused",
    ]


def test_a_pause_that_was_stored_as_the_only_one_still_stands() -> None:
    old = b'{"v":1,"type":"controls","pause":{"reason":"upgrade","by":"ben","atMs":7,"value":"paused"}}'
    assert parse_controls(old).pauses == (Pause(by="ben", reason="upgrade", at_ms=7),)
    running = parse_controls(old.replace(b'"paused"}', b'"running"}'))
    assert not running.is_paused(9, paused=True)

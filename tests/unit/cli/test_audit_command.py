"""``trimtab audit`` on the log of a modelled cluster and a real controller, live and as a recording of it."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from controller.cli.app import app
from controller.wire.answers.audit import AuditAnswer
from tests.command_runs import output_of
from tests.modelled_log import played, settings_in
from tests.recordings import recording_of

pytestmark = pytest.mark.slow

CONF = "loadBalancerLoadSheddingStrategy=UniformLoadShedder\n"


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The settings of a controller that has balanced a cluster for some intervals."""
    made = settings_in(tmp_path_factory.mktemp("controller"), broker_conf=CONF)
    played(made, 6)
    return made


@pytest.fixture(scope="module")
def recording(conf: Path) -> Path:
    """A recording of its log."""
    return recording_of(conf)


def run(*words: object, code: int = 0) -> str:
    return output_of("audit", *words, code=code)


def answer(*words: object) -> AuditAnswer:
    said: dict[str, Any] = json.loads(run(*words, "--json"))
    return AuditAnswer.model_validate(said)


def test_a_recording_its_log_and_the_live_log_tell_the_same(
    conf: Path, recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_recording = answer(recording)
    assert of_recording.total.moves > 0
    assert of_recording.notes == []
    assert answer(conf.parent / "log", "--conf", conf) == of_recording
    monkeypatch.chdir(conf.parent)
    assert answer("--conf", conf, "--from", "2025-01-01T00:00:00Z") == of_recording


def test_an_incident_is_audited_as_the_log_that_it_was_made_of(conf: Path, tmp_path: Path) -> None:
    file, log = tmp_path / "incident.tar", conf.parent / "log"
    words = ["incident", "make", "--around", "2025-01-01T00:04:00Z", "-o", str(file), "--conf", str(conf), str(log)]
    made = CliRunner().invoke(app, words)
    assert file.exists(), made.output + made.stderr
    found, whole = answer(file), answer(log, "--conf", conf)
    assert found.moves == whole.moves
    assert found.total == whole.total


def test_intervals_that_are_not_as_long_as_assumed_are_noted(conf: Path) -> None:
    found = answer(conf.parent / "log", "--period-seconds", 20)
    assert {each.outcome for each in found.moves} <= {"not_recorded", "not_yet"}
    assert "intervals are at least 60 s apart, and 20 s are assumed" in found.notes[-1]


def test_json_says_percent_and_tables_fit_names_and_numbers(recording: Path) -> None:
    found = answer(recording)
    move = found.moves[0]
    assert move.source.before is not None
    assert move.source.before.usage is not None
    assert 1 < move.source.before.usage < 101
    shown = run(recording, "--most", 1)
    for text in (
        move.bundle,
        "By strategy",
        "By namespace",
        "By hour",
        "UniformLoadShedder",
        "not by trimtab",
        "--most",
    ):
        assert text in shown
    assert f"{found.total.moves}: " in shown
    assert found.moves[-1].bundle not in shown.replace(move.bundle, "")


def test_moves_are_filtered_by_bundle_namespace_and_time(recording: Path) -> None:
    found = answer(recording)
    one = found.moves[0]
    assert {each.bundle for each in answer(recording, "--bundle", one.bundle).moves} == {one.bundle}
    assert set(answer(recording, "--namespace", one.namespace).namespaces) == {one.namespace}
    part = answer(recording, "--from", "2025-01-01T00:02:00Z", "--to", "2025-01-01T00:03:00Z")
    assert part.intervals == 2
    assert "none" in run(recording, "--bundle", "no/such/0x00000000_0xffffffff")


def test_a_log_without_settings_is_weighed_with_defaults_and_says_so(conf: Path) -> None:
    found = answer(conf.parent / "log")
    assert found.total.moves > 0
    assert "--conf" in found.notes[0]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--from", "noon"], "is not a time"),
        (["--from", "2025-01-02T00:00:00Z", "--to", "2025-01-01T00:00:00Z"], "later than --to"),
        (["--from", "2035-01-02T00:00:00Z"], "no closed interval"),
        (["--most", "-1"], "--most"),
        (["--bundle", "acme/orders"], "is not a bundle name"),
        (["--namespace", "acme"], "is not a namespace"),
        (["--namespace", "acme/\x07"], "is not a namespace"),
        (["--period-seconds", "0"], "--period-seconds"),
    ],
)
def test_what_cannot_be_is_refused_with_exit_code_2(recording: Path, words: list[str], says: str) -> None:
    assert says in run(recording, *words, code=2)


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    assert "neither a recording" in run(tmp_path, code=2)
    (tmp_path / "metrics").mkdir()
    assert "no record names a cluster" in run(tmp_path, code=2)
    (tmp_path / "metrics" / "1-1.jsonl").write_bytes(b'{"cluster":"x"}\n\xff\xfe\n[[[[\n')
    assert "no closed interval" in run(tmp_path, code=2)
    file = tmp_path / "file"
    file.write_bytes(b"\x00" * 1000)
    assert "file" in run(file, code=1)

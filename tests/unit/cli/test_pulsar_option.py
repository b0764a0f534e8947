"""The version of Pulsar in offline commands: from load reports, from recordings, or by --pulsar."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from controller.adapters.recordings.manifest import RecordedSettings
from controller.cli.app import app
from tests.records import load_report

pytestmark = pytest.mark.slow

RECORDING = Path(__file__).parents[2] / "data" / "pulsar_recordings" / "changing"


def told(*words: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, [*words, "--json"])
    assert result.exit_code in (0, 1, 3), result.output
    return dict(json.loads(result.stdout.splitlines()[-1]))


def reports(folder: Path, *versions: Any) -> Path:
    path = folder / "reports.jsonl"
    lines = [json.dumps(load_report(n, brokerVersionString=text)) for n, text in enumerate(versions, start=1)]
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize(
    ("versions", "version", "source"),
    [
        (("4.0.8", "4.0.8"), "4.0.8", "brokers"),
        (("5.0.1", "5.0.1"), "5.0.1", "brokers"),
        (("5.0.1", "4.2.4"), "4.2.4", "oldest"),
        (("5.0.1", None), "5.0.1", "brokers"),
        ((5, ["5.0.1"]), "4.0", "nobody"),
        (("", "trunk"), "4.0", "nobody"),
    ],
)
def test_load_reports_say_the_version_that_decides(
    tmp_path: Path, versions: tuple[Any, ...], version: str, source: str
) -> None:
    answer = told("decide", "--load", str(reports(tmp_path, *versions)), "--strategy", "AvgShedder")
    assert (answer["pulsar"]["version"], answer["pulsar"]["source"]) == (version, source)


def test_the_option_decides_as_another_version_than_the_reports_say(tmp_path: Path) -> None:
    load = str(reports(tmp_path, "4.0.8", "4.0.8"))
    answer = told("decide", "--load", load, "--strategy", "ThresholdShedder", "--pulsar", "5.0")
    assert (answer["pulsar"]["version"], answer["placement"]) == ("5.0", "LeastLongTermMessageRate")
    explained = told("explain", "--load", load, "--pulsar", "5.0.1")
    assert explained["pulsar"]["version"] == "5.0.1"


@pytest.mark.parametrize("text", ["5", "6.0", "latest", ""])
def test_a_version_that_is_not_known_is_refused(text: str) -> None:
    result = CliRunner().invoke(app, ["options", "--pulsar", text])
    assert result.exit_code == 2
    assert "5.0" in result.output


def test_options_are_printed_with_the_defaults_of_a_version() -> None:
    lines = CliRunner().invoke(app, ["options", "--pulsar", "5.0", "--json"]).output.splitlines()
    rows = {row["key"]: row["default"] for row in map(json.loads, lines)}
    assert (rows["loadBalancerLoadSheddingStrategy"], rows["maxUnloadPercentage"]) == ("AvgShedder", "0.5")


def test_a_recording_of_an_earlier_release_is_replayed_as_it_was_decided_and_as_another_version_on_demand() -> None:
    assert told("replay", str(RECORDING), "--fast")["firstDifference"] is None
    other = told("replay", str(RECORDING), "--fast", "--pulsar", "5.0")
    assert other["firstDifference"]["what"].startswith("pulsar: live None")


def test_the_recorded_settings_may_be_tried_as_another_version() -> None:
    answer = told("what-if", str(RECORDING), "--pulsar", "5.0")
    assert [*answer["strategies"]] == ["Pulsar 5.0"]


def test_a_version_in_a_manifest_is_one_that_is_known() -> None:
    manifest = json.loads((RECORDING / "manifest.json").read_text())
    assert RecordedSettings.model_validate_json(json.dumps(manifest["settings"])).pulsar is None
    with pytest.raises(ValueError, match="allowed is a version of Pulsar"):
        RecordedSettings.model_validate_json(json.dumps({**manifest["settings"], "pulsar": "9.9"}))

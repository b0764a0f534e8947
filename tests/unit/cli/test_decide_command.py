"""``trimtab decide`` on load reports, recordings and logs."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from controller.adapters.recordings.reading import Recording
from controller.cli.decide import decide
from controller.model.errors import SettingsError
from controller.wire.metrics import TickRecord
from controller.wire.results import decode_result
from tests.modelled_log import played, settings_in
from tests.recordings import recording_of
from tests.records import LEFT, RIGHT, SAMPLES, T, broker_sweep, bundle_stats

pytestmark = pytest.mark.slow

REPORTS = SAMPLES / "loadbalance_brokers.jsonl"
RECORDING = Path(__file__).parents[2] / "data" / "pulsar_recordings" / "changing"
app = typer.Typer()
app.command()(decide)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def answer(*arguments: object) -> tuple[int, Any]:
    result = run(*arguments, "--json")
    return result.exit_code, json.loads(result.stdout)


def conf(tmp_path: Path, **options: object) -> Path:
    path = tmp_path / "broker.conf"
    path.write_text("".join(f"{key}={value}\n" for key, value in options.items()))
    return path


def uneven(tmp_path: Path, **options: object) -> Path:
    """Options by which the sample's brokers, at 54 to 127 msg/s, are uneven enough for UniformLoadShedder."""
    return conf(tmp_path, minUnloadMessage=1, minUnloadMessageThroughput=1, **options)


def test_a_balanced_cluster_is_left_alone_with_a_verdict_on_every_broker() -> None:
    code, said = answer("--load", REPORTS, "--strategy", "ThresholdShedder")
    assert code == 0
    assert (said["brokers"], said["commands"], said["round"]) == (3, [], 1)
    assert [v["reason"] for v in said["verdicts"] if v["subject"].startswith("127.0.0.1")] == ["Balanced"] * 3


def test_what_would_be_moved_is_told_with_its_reason_and_exit_code_3(tmp_path: Path) -> None:
    code, said = answer("--load", REPORTS, "--strategy", "UniformLoadShedder", "--broker-conf", uneven(tmp_path))
    assert code == 3
    first = said["commands"][0]
    assert (first["action"], first["broker"], first["why"]["reason"]) == ("unload", "127.0.0.1:18082", "Overloaded")
    assert first["destination"] in ("127.0.0.1:18080", "127.0.0.1:18081")


def test_tables_say_the_same_as_json(tmp_path: Path) -> None:
    asked = ("--load", REPORTS, "--strategy", "UniformLoadShedder", "--broker-conf", uneven(tmp_path))
    result = run(*asked)
    assert result.exit_code == 3
    _, said = answer(*asked)
    for one in said["commands"]:
        assert one["bundle"] in result.stdout
        assert one["destination"] in result.stdout
    moved = [one["bundle"] for one in said["commands"]]
    assert result.stdout.endswith(f"8 bundles on 3 brokers: {len(moved)} unload{'s' * (len(moved) != 1)}\n")


def test_nothing_that_holds_a_controller_back_hides_the_answer(tmp_path: Path) -> None:
    observing = uneven(tmp_path, loadBalancerEnabled="false", loadBalancerSheddingIntervalMinutes=7)
    code, said = answer("--load", REPORTS, "--strategy", "UniformLoadShedder", "--broker-conf", observing)
    assert code == 3
    assert said["interval"] % (7 * 60_000) == 0


def test_a_strategy_that_counts_hits_moves_in_the_round_that_suffices(tmp_path: Path) -> None:
    options = conf(
        tmp_path,
        loadBalancerBrokerLoadTargetStd=0.00001,
        loadBalancerBundleUnloadMinThroughputThreshold=0,
        loadBalancerBandwidthInResourceWeight=1,
    )
    asked = ("--load", REPORTS, "--strategy", "TransferShedder", "--broker-conf", options)
    code, said = answer(*asked)
    assert (code, said["round"]) == (0, 1)
    assert "HitCount" in [verdict["reason"] for verdict in said["verdicts"]]
    _, said = answer(*asked, "--rounds", 9)
    hits = [v for v in said["verdicts"] if v["reason"] == "HitCount"]
    assert said["round"] >= 4
    assert not hits


def test_a_split_is_looked_for_only_when_asked(tmp_path: Path) -> None:
    small = conf(tmp_path, loadBalancerNamespaceBundleMaxTopics=2)
    asked = ("--load", REPORTS, "--strategy", "ThresholdShedder", "--broker-conf", small)
    assert answer(*asked)[1]["commands"] == []
    code, said = answer(*asked, "--split")
    assert code == 3
    assert {one["action"] for one in said["commands"]} == {"split"}
    assert {one["why"]["reason"] for one in said["commands"]} == {"Topics"}


def test_a_folder_of_reports_counts_as_one_load(tmp_path: Path) -> None:
    for name in ("load_report_1.json", "load_report_2.json"):
        (tmp_path / name).write_bytes((SAMPLES / name).read_bytes())
    code, said = answer("--load", tmp_path, "--strategy", "OverloadShedder")
    assert code in (0, 3)
    assert said["brokers"] == 2
    assert any(v["reason"] == "Overloaded" for v in said["verdicts"])


def test_one_report_alone_says_that_one_broker_is_too_few() -> None:
    code, said = answer("--load", SAMPLES / "load_report_1.json", "--strategy", "ThresholdShedder")
    assert code == 0
    assert "NoBrokers" in [verdict["reason"] for verdict in said["verdicts"]]
    (note,) = said["notes"]
    assert note.startswith("a decision needs the reports of all brokers, and this load has that of ")
    assert note.endswith(" alone: give the other files with --load, too, or a folder that holds all")


def test_several_files_count_as_one_load(tmp_path: Path) -> None:
    one, two = (SAMPLES / f"load_report_{number}.json" for number in (1, 2))
    _, together = answer("--load", one, "--load", two, "--strategy", "OverloadShedder")
    assert (together["brokers"], together["notes"]) == (2, [])
    assert answer("--load", one, two, "--strategy", "OverloadShedder")[1] == together, "as a shell expands *.json"


def test_a_folder_without_any_says_which_names_count(tmp_path: Path) -> None:
    (tmp_path / "report.txt").write_bytes((SAMPLES / "load_report_1.json").read_bytes())
    error = run("--load", tmp_path, "--strategy", "OverloadShedder").exception
    assert isinstance(error, SettingsError)
    assert str(error) == (
        f"{tmp_path} holds no file whose name counts: *.json, a load report each, or *.jsonl, a record on each line"
    )


def test_the_last_interval_of_a_recording_is_decided_as_that_of_the_log_that_it_is_of(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    last = played(settings, 3)[-1]
    on_log = answer("--load", tmp_path / "log", "--strategy", "UniformLoadShedder")[1]
    assert answer("--load", recording_of(settings), "--strategy", "UniformLoadShedder")[1] == on_log
    assert on_log["interval"] == last.interval
    assert (on_log["brokers"], on_log["notes"]) == (6, [])


def test_a_recording_of_several_partitions_is_decided_where_it_ends_whatever_its_period_is() -> None:
    code, said = answer("--load", RECORDING, "--strategy", "ThresholdShedder")
    ends = json.loads((RECORDING / "manifest.json").read_text())
    newest = Recording(RECORDING)
    ticks = [
        tick.interval
        for each in newest.read("results", newest.extents("results"))
        if isinstance(tick := decode_result(each.value, cluster=ends["cluster"], period_ms=1), TickRecord)
    ]
    assert (code in (0, 3), said["cluster"]) == (True, ends["cluster"])
    assert said["interval"] - max(ticks) < 60_000, "the next time that bundles are unloaded"


def test_a_recording_is_one_cluster_alone() -> None:
    for words, told in (
        (("--load", RECORDING, "--load", REPORTS), "it has ticks, and all brokers; --load takes it alone"),
        (("--load", RECORDING, "--cluster", "other"), "not 'other': leave out --cluster"),
    ):
        error = run(*words, "--strategy", "OverloadShedder").exception
        assert isinstance(error, SettingsError)
        assert told in str(error)


def test_a_broker_heard_of_long_before_the_others_is_told(tmp_path: Path) -> None:
    early, *others = [json.loads(line) for line in REPORTS.read_text().splitlines()]
    early["lastUpdate"] -= 3_600_000
    path = tmp_path / "reports.jsonl"
    path.write_text("".join(json.dumps(report) + "\n" for report in (early, *others)))
    _, said = answer("--load", path, "--strategy", "ThresholdShedder")
    assert said["brokers"] == 2
    (note,) = said["notes"]
    assert note.startswith("127.0.0.1:18080 is not counted: its last report is 60 min older")


def test_a_record_that_cannot_be_used_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "reports.jsonl"
    path.write_bytes(REPORTS.read_bytes().rstrip() + b'\n{"v": 1\n')
    _, said = answer("--load", path, "--strategy", "ThresholdShedder")
    (note,) = said["notes"]
    assert note.startswith(f"not used: {path}, line 4: ")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--strategy", "Mine"), "loadBalancerLoadSheddingStrategy=Mine: allowed: AvgShedder, "),
        (
            ("--strategy", "ThresholdShedder", "--placement", "Mine"),
            "LoadPlacementStrategy=Mine: allowed: AvgShedder, ",
        ),
        (("--strategy", "AvgShedder", "--placement", "RoundRobinBrokerSelector"), "does not go with"),
    ],
)
def test_a_strategy_that_is_not_there_is_refused_with_those_that_are(options: tuple[str, ...], said: str) -> None:
    error = run("--load", REPORTS, *options).exception
    assert isinstance(error, SettingsError)
    assert said in str(error)
    assert error.exit_code == 2


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty: give load reports"),
        (b"no json\n", "the first of 1 that cannot be used is"),
        (
            b'{"v": 1, "type": "broker_load", "cluster": "other"}\n',
            "of cluster 'lab'; it holds records of 'other': name one with --cluster",
        ),
    ],
)
def test_a_load_that_says_nothing_is_refused_with_its_file(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "load.jsonl"
    path.write_bytes(content)
    error = run("--load", path, "--strategy", "ThresholdShedder", "--cluster", "lab").exception
    assert isinstance(error, SettingsError)
    assert str(error).startswith(str(path))
    assert said in str(error)


def test_a_document_that_is_nested_too_deep_is_refused_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "load.json"
    path.write_bytes(b"[" * 100_000)
    error = run("--load", path, "--strategy", "ThresholdShedder", "--cluster", "lab").exception
    assert isinstance(error, SettingsError)
    assert f"the first of 1 that cannot be used is {path}" in str(error)


def test_a_strategys_own_companions_are_taken_along(tmp_path: Path) -> None:
    assert answer("--load", REPORTS, "--strategy", "AvgShedder")[1]["placement"] == "AvgShedder"
    said = answer("--load", REPORTS, "--strategy", "TransferShedder")[1]
    assert said["placement"] == "ExtLeastResourceUsageWithWeight"
    modular = conf(tmp_path, loadManagerClassName="ModularLoadManagerImpl")
    error = run("--load", REPORTS, "--strategy", "TransferShedder", "--broker-conf", modular).exception
    assert "only the extensible load manager knows it" in str(error)


def test_the_environment_overrides_the_file(tmp_path: Path) -> None:
    asked = ["--load", str(REPORTS), "--strategy", "UniformLoadShedder", "--broker-conf", str(uneven(tmp_path))]
    result = CliRunner().invoke(app, asked, env={"PULSAR_PREFIX_minUnloadMessage": "1000000"})
    assert result.exit_code == 0


def test_load_may_come_through_a_pipe() -> None:
    """/dev/stdin, and what a shell makes of <(command)."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as pipe:
        pipe.write(json.dumps(json.loads((SAMPLES / "load_report_1.json").read_bytes()), indent=2))
    result = run("--load", f"/dev/fd/{reading}", "--strategy", "ThresholdShedder")
    os.close(reading)
    assert result.exit_code == 0, result.output
    assert "on 1 broker" in result.output


@pytest.mark.parametrize(("minutes", "is_outdated"), [("15", True), ("90", False)])
def test_a_report_that_stands_still_is_no_load_data(tmp_path: Path, minutes: str, is_outdated: bool) -> None:
    sweeps = []
    for number, (age_hours, bundle) in enumerate([(0, LEFT), (0, RIGHT), (3, "tenant/other/0x00000000_0xffffffff")]):
        said: dict[str, Any] = {
            "broker": f"broker-{number}:8080",
            "sweepId": f"s{number}",
            "lastUpdate": T - age_hours * 3_600_000,
        }
        stats = [{"bundle": bundle, "totals": bundle_stats()["totals"]}]
        sweeps.append(json.dumps(broker_sweep(**said, interval=T, bundleStats=stats)))
    load = tmp_path / "load.jsonl"
    load.write_text("\n".join(sweeps))
    options = conf(tmp_path, loadBalancerReportUpdateMaxIntervalMinutes=minutes)
    _, said = answer("--load", load, "--strategy", "ThresholdShedder", "--broker-conf", options)
    outdated = [verdict for verdict in said["verdicts"] if verdict["reason"] == "OutDatedData"]
    assert said["missing"] == (["broker-2:8080"] if is_outdated else [])
    assert [verdict["subject"] for verdict in outdated] == said["missing"]
    assert all("is 180 min old and stands still" in verdict["detail"] for verdict in outdated)
    assert not any("broker-2:8080 is not counted" in note for note in said["notes"])

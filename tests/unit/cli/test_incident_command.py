"""``trimtab incident`` on the log of a modelled cluster and a real controller; and what takes such a file."""

import json
import tarfile
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from typer.testing import CliRunner

from controller.adapters.recordings.incident_file import unpacked_incident
from controller.adapters.recordings.reading import Recording
from controller.cli.app import app
from controller.log.factory import records_in
from controller.offline.counterfactual.reading import RecordedLoadLog
from controller.offline.counterfactual.replay_source import source_of_incident
from controller.settings.trimtab_toml import IntervalSettings
from controller.wire.answers.simulate import SimulateAnswer
from controller.wire.answers.what_if import IncidentAnswer, WhatIfAnswer
from tests.command_runs import output_of
from tests.modelled_log import played, settings_in
from tests.records import CLUSTER, PERIOD, T

pytestmark = pytest.mark.slow

CONF = """loadBalancerLoadSheddingStrategy=UniformLoadShedder
loadBalancerNamespaceBundleMaxMsgRate=6000
loadBalancerSheddingGracePeriodMinutes=2
trimtabSheddingPreallocates=true
"""
AROUND = ("--around", "2025-01-01T00:06:30Z", "--minutes", "2")
#: A time when bundles were moved.
LATER = ("--around", "2025-01-01T00:08:30Z", "--minutes", "3")


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The settings of a controller that has balanced a cluster for some intervals."""
    made = settings_in(tmp_path_factory.mktemp("controller"), broker_conf=CONF)
    played(made, 11)
    return made


@pytest.fixture(scope="module")
def incident(conf: Path) -> Path:
    """An incident of its log."""
    path = conf.parent / "incident.tar"
    found = answer(IncidentAnswer, "incident", "make", conf.parent / "log", "--conf", conf, *AROUND, "-o", path)
    assert found.reproduced
    return path


def answer(model: Any, *words: object) -> Any:
    return model.model_validate(json.loads(output_of(*words, "--json")))


def test_each_decision_comes_out_of_the_file_byte_for_byte(incident: Path) -> None:
    found = answer(IncidentAnswer, "incident", "check", incident)
    assert (found.reproduced, found.different, found.unknown) == (True, [], [])
    assert found.same >= 5
    assert found.decision == 1_735_689_600_000 + 6 * 60_000
    assert found.bytes == incident.stat().st_size


def test_the_same_log_gives_the_same_bytes(conf: Path, incident: Path) -> None:
    again = conf.parent / "again.tar"
    shown = output_of("incident", "make", conf.parent / "log", "--conf", conf, *AROUND, "-o", again)
    assert "the decision of 2025-01-01T00:06:00Z" in shown
    assert again.read_bytes() == incident.read_bytes()


def test_without_what_was_known_before_it_says_that_decisions_come_out_otherwise(conf: Path) -> None:
    path = conf.parent / "short.tar"
    words = ("--around", "2025-01-01T00:07:00Z", "--minutes", 1, "--before", 0, "-o", path)
    said = CliRunner().invoke(app, ["incident", "make", *map(str, (conf.parent / "log", "--conf", conf, *words))])
    found = CliRunner().invoke(app, ["incident", "check", str(path), "--json"])
    different = json.loads(found.stdout)["different"]
    assert different
    assert (said.exit_code, found.exit_code) in {(0, 0), (1, 1)}


def test_other_settings_are_noticed(conf: Path) -> None:
    other, path = conf.parent / "other", conf.parent / "wrong.tar"
    other.mkdir()
    wrong = settings_in(other, broker_conf="loadBalancerLoadSheddingStrategy=OverloadShedder\n")
    said = output_of("incident", "make", conf.parent / "log", "--conf", wrong, *AROUND, "-o", path, code=1)
    assert "come out differently" in said
    assert path.exists()


@pytest.fixture(scope="module")
def other(conf: Path) -> Path:
    """An incident of a later time with other names."""
    path = conf.parent / "other.tar"
    key = conf.parent / "key"
    key.write_bytes(b"sixteen bytes or more")
    words = (conf.parent / "log", "--conf", conf, *LATER, "-o", path, "--anonymise", "--key-file", key)
    found = answer(IncidentAnswer, "incident", "make", *words)
    assert (found.reproduced, found.anonymised, found.otherwise_than_logged) == (True, True, ())
    return path


def moves(log: RecordedLoadLog) -> list[tuple[int, str, str]]:
    """What decisions from 00:06 on move, with bundles by their ranges."""
    return sorted(
        (entry.interval, each.action, each.bundle.rpartition("/")[2])
        for entry in log.decided()
        if entry.interval >= T + 6 * PERIOD
        for each in entry.decision.commands
    )


def test_with_other_names_the_decisions_are_the_same_and_come_out_of_the_file(conf: Path, other: Path) -> None:
    found = answer(IncidentAnswer, "incident", "check", other)
    assert (found.reproduced, found.different, found.unknown) == (True, [], [])
    assert found.same >= 5
    assert "names are replaced" in output_of("incident", "check", other)
    live = RecordedLoadLog(records=records_in(conf.parent / "log"), cluster=CLUSTER, settings=IntervalSettings())
    with unpacked_incident(other) as unpacked:
        assert moves(source_of_incident(unpacked).log) == moves(live) != []


def test_no_name_is_left_in_a_file_with_other_names(conf: Path, incident: Path, other: Path) -> None:
    def content(path: Path) -> bytes:
        with unpacked_incident(path) as found:
            log = Recording(found.recording)
            topics = [[*log.read(topic, log.extents(topic))] for topic in log.manifest.topics]
            return b"\n".join([*log.begin, *(each.value + (each.key or b"") for of in topics for each in of)])

    for name in (b"tenant", b"ns-1", b"topic-0", b"broker-", b'"demo"'):
        assert name in content(incident)
        assert name not in content(other), name
        assert name not in other.read_bytes(), name


def test_with_other_names_it_is_a_recording_and_a_scenario(other: Path) -> None:
    assert answer(WhatIfAnswer, "what-if", other, "--strategy", "OverloadShedder").intervals >= 5
    assert answer(SimulateAnswer, "simulate", other, "--expect", "failed commands <= 0").held


def test_a_decision_that_comes_out_otherwise_with_other_names_is_told(conf: Path) -> None:
    with patch("controller.offline.counterfactual.anonymised._move", side_effect=count()):
        words = (conf.parent / "log", "--conf", conf, *LATER, "-o", conf.parent / "tie.tar", "--anonymise")
        said = CliRunner().invoke(app, ["incident", "make", *map(str, words)])
    assert "moves something else than in the log" in str(said.exception)


def test_an_incident_is_a_recording_for_what_if(incident: Path) -> None:
    found = answer(WhatIfAnswer, "what-if", incident, "--strategy", "OverloadShedder")
    assert found.intervals >= 5
    assert found.reproduction.share in (1, None)
    assert found.reproduction.only_replayed == 0


def test_the_recording_in_it_is_one_like_any_other(incident: Path, tmp_path: Path) -> None:
    with tarfile.open(incident) as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.2 has none
        tar.extractall(tmp_path)
    assert len(Recording(tmp_path / "recording").begin) > 0
    found = answer(WhatIfAnswer, "what-if", tmp_path / "recording")
    assert found.intervals == answer(WhatIfAnswer, "what-if", incident).intervals >= 5
    assert found.reproduction.share in (1, None)


def test_an_incident_is_a_scenario_for_simulate(incident: Path) -> None:
    met = answer(SimulateAnswer, "simulate", incident, "--expect", "failed commands <= 0")
    assert (met.held, met.brokers) == (True, 6)
    assert "1 of 1 expectation" in output_of("simulate", incident, "--expect", "failed commands <= 0")
    said = output_of("simulate", incident, "--strategy", "OverloadShedder", "--expect", "moves >= 1000", code=1)
    assert "not met: moves >= 1000" in said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("simulate", "idle-broker", "--expect", "moves <= 1"), "are of incidents"),
        (("incident", "make", "--around", "noon", "-o", "x.tar", "--conf", "CONF"), "is not a time"),
        (("incident", "make", "--around", "1h", "-o", "x.tar", "--minutes", "0"), "--minutes"),
    ],
)
def test_what_cannot_be_is_refused(conf: Path, words: tuple[str, ...], says: str) -> None:
    assert says in output_of(*(str(conf) if word == "CONF" else word for word in words), code=2)


def test_an_expectation_that_is_none_is_refused(incident: Path) -> None:
    assert "--expect" in output_of("simulate", incident, "--expect", "peace on earth", code=2)


def test_a_time_without_load_is_refused(conf: Path) -> None:
    words = ("--around", "2031-01-01T00:00:00Z", "-o", conf.parent / "none.tar")
    assert "holds no record of metrics" in output_of(
        "incident", "make", conf.parent / "log", "--conf", conf, *words, code=1
    )

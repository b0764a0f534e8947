"""`trimtab explain` on journals of a modelled cluster, and on load reports."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from controller.adapters.network.deadline import Deadline
from controller.cli.explain import explain_subject
from controller.model.controls import Controls
from controller.model.errors import TrimtabError
from controller.model.journal import JournalEntry
from controller.offline.explanations.explanation import explain
from controller.offline.explanations.sources import journalled_decision
from controller.settings.trimtab_toml import read_settings
from controller.simulator.cluster import ClusterShape
from controller.wire.readable import utc
from tests.modelled_log import played, settings_in
from tests.records import SAMPLES, T

pytestmark = pytest.mark.slow

#: 44 intervals of 10 s of a real Pulsar.
RECORDING = Path(__file__).parents[2] / "data" / "pulsar_recordings" / "broker_restarted"
REPORTS = SAMPLES / "loadbalance_brokers.jsonl"
_EAGER = """loadBalancerLoadSheddingStrategy=UniformLoadShedder
minUnloadMessage=1
minUnloadMessageThroughput=1
maxUnloadPercentage=0.5
"""
app = typer.Typer()
app.command()(explain_subject)


def run(*arguments: object, columns: int = 0) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments], env={"COLUMNS": str(columns)} if columns else {})


def told(*arguments: object) -> dict[str, Any]:
    answer = run(*arguments, "--json")
    assert answer.exit_code == 0, (answer.output, answer.exception)
    fields: dict[str, Any] = json.loads(answer.stdout)
    return fields


def said_no(answer: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {each["asked"]: (each["reason"], each["kind"]) for each in answer["answers"] if each["answer"] == "no"}


def asked(answer: dict[str, Any]) -> dict[str, str]:
    return {each["asked"]: each["answer"] for each in answer["answers"]}


@pytest.fixture(scope="module")
def moving(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[JournalEntry]]:
    conf = settings_in(tmp_path_factory.mktemp("moving"), broker_conf=_EAGER)
    return conf, played(conf, 3)


@pytest.fixture(scope="module")
def paused(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, JournalEntry]:
    """An operator pauses before the last interval; the decision without the pause moves bundles."""
    conf = settings_in(tmp_path_factory.mktemp("paused"), broker_conf=_EAGER)
    stopped = Controls(mode="active", paused=True, reason="upgrade", by="ada")
    running = replace(stopped, paused=False)
    return conf, played(conf, 2, controls=lambda interval: stopped if interval > T else running)[-1]


def test_a_bundle_that_was_moved_is_told_with_reason_result_and_every_broker(
    moving: tuple[Path, list[JournalEntry]],
) -> None:
    conf, entries = moving
    command = entries[1].decision.commands[0]
    answer = told(command.bundle, "--at", utc(entries[1].interval), "--conf", conf)
    assert (answer["kind"], answer["source"], answer["reproduced"]) == ("bundle", "journal", True)
    assert answer["interval"] == entries[1].interval
    assert [each["result"]["status"] for each in answer["commands"]] == ["done"]
    assert answer["because"].startswith(f"{command.source}: Overloaded (")
    assert said_no(answer) == {}
    assert len(answer["brokers"]) == 6
    assert [(each["broker"], each["answer"]) for each in answer["brokers"]][:2] == [
        (command.destination, "chosen"),
        (command.source, "source"),
    ]
    # Its CPU: the heap, of which an idle broker has used 20 %, counts for no strategy.
    assert answer["brokers"][0]["usage"] == pytest.approx(0.05)
    excluded = [each for each in answer["brokers"] if each["reason"]]
    assert {each["by"] for each in excluded} == {"FewestBundles"}
    assert all(each["filters"]["FewestBundles"] is False for each in excluded)
    assert all(each["filters"]["BrokerVersion"] is None for each in excluded)


def test_a_bundle_that_was_moved_before_stays_for_its_grace_period_and_it_is_told_since_when(
    moving: tuple[Path, list[JournalEntry]],
) -> None:
    conf, entries = moving
    bundle = entries[1].decision.commands[0].bundle
    answer = told(bundle, "--conf", conf)
    assert said_no(answer) == {"loadBalancerSheddingGracePeriodMinutes": ("RecentlyUnloaded", "throttled")}
    assert f"unloaded at {utc(entries[1].interval)}" in answer["because"]
    assert asked(answer)["UniformLoadShedder"] == "not asked"
    assert answer["chosen"] is False


def test_what_a_pause_held_back_is_told_as_configuration_with_where_it_would_have_gone(
    paused: tuple[Path, JournalEntry],
) -> None:
    conf, entry = paused
    assert not entry.decision.commands
    whole = told("last", "--conf", conf)
    assert said_no(whole) == {"operator": ("Paused", "configuration")}
    assert "ada: upgrade" in whole["because"]
    assert "run `trimtab resume`" in whole["because"]
    names = [each["asked"] for each in whole["answers"]]
    behind = names[names.index("operator") + 1 :]
    assert {asked(whole)[name] for name in behind} == {"not asked"}
    placed = [answer for answer in _of_each_bundle(conf) if answer["chosen"] and answer["whereTo"]]
    assert len(placed) == 3
    for answer in placed:
        assert answer["because"] == whole["because"]
        assert asked(answer)["UniformLoadShedder"] == asked(answer)["filters and placement"] == "yes"
        assert [each["broker"] for each in answer["brokers"] if each["answer"] == "chosen"] == [answer["whereTo"]]


def _of_each_bundle(conf: Path) -> list[dict[str, Any]]:
    """The explanation of each bundle in the newest decision."""
    found = journalled_decision(read_settings(conf), None, before=30)
    assert found.examined is not None
    return [json.loads(explain(found, name, "bundle").as_line()) for name in found.examined.view.bundles.names]


def test_a_budget_that_is_used_up_is_told_for_what_it_held_back(tmp_path: Path) -> None:
    more = "[guardrails.interval]\nunloads = 1\n"
    conf = settings_in(tmp_path, broker_conf=_EAGER, more=more)
    entry = played(conf, 2)[-1]
    assert len(entry.decision.commands) == 1
    held = [answer for answer in _of_each_bundle(conf) if "guardrails.interval.unloads" in said_no(answer)]
    assert len(held) == 2
    for answer in held:
        assert said_no(answer) == {"guardrails.interval.unloads": ("Budget", "throttled")}
        assert "1 against 1 unloads an interval" in answer["because"]
        assert answer["commands"] == []


def test_a_broker_is_told_with_what_it_gave_and_got(moving: tuple[Path, list[JournalEntry]]) -> None:
    conf, entries = moving
    commands = entries[1].decision.commands
    source = told(commands[0].source, "--at", utc(entries[1].interval), "--conf", conf)
    assert source["because"].startswith(f"gives {len(commands)} bundles, gets 0; {commands[0].source}: Overloaded")
    assert {each["subject"] for each in source["verdicts"]} == {commands[0].source}
    taker = told(commands[0].destination, "--at", utc(entries[1].interval), "--conf", conf)
    assert taker["because"].startswith("gives 0 bundles, gets ")
    assert taker["brokers"] is None


def test_an_interval_is_told_with_all_its_commands_and_verdicts(moving: tuple[Path, list[JournalEntry]]) -> None:
    conf, entries = moving
    answer = told(utc(entries[1].interval), "--conf", conf)
    assert (answer["kind"], answer["subject"]) == ("interval", "interval")
    assert [each["id"] for each in answer["commands"]] == [each.id for each in entries[1].decision.commands]
    assert len(answer["verdicts"]) == len(entries[1].decision.verdicts)
    warm_up = told(utc(T), "--conf", conf)
    assert said_no(warm_up) == {"warm_up_samples": ("WarmingUp", "throttled")}
    assert warm_up["because"].startswith("warm_up_samples: WarmingUp (1 against 2 samples)")


def test_who_said_yes_is_printed_with_all_alone(moving: tuple[Path, list[JournalEntry]]) -> None:
    conf, entries = moving
    bundle = entries[1].decision.commands[0].bundle
    at = ("--at", utc(entries[1].interval), "--conf", conf)
    assert "loadBalancerEnabled" not in run(bundle, *at).stdout
    whole = run(bundle, *at, "--all").stdout
    assert "loadBalancerEnabled" in whole
    assert "FewestBundles: no; BrokerVersion: not asked" in " ".join(whole.split())


def test_load_reports_are_explained_without_a_journal(tmp_path: Path) -> None:
    (tmp_path / "broker.conf").write_text("minUnloadMessage=1\nminUnloadMessageThroughput=1\n", encoding="utf-8")
    load = ("--load", REPORTS, "--strategy", "UniformLoadShedder", "--broker-conf", tmp_path / "broker.conf")
    whole = told("last", *load)
    assert (whole["source"], whole["reproduced"]) == ("load", None)
    moved = whole["commands"][0]
    answer = told(moved["bundle"], *load)
    assert (answer["chosen"], answer["whereTo"]) == (True, moved["destination"])
    assert "all brokers that the filters leave are overloaded" in answer["notes"][0]
    balanced = told("lab/ns/0x00000000_0x20000000", "--load", REPORTS)
    assert said_no(balanced) == {"ThresholdShedder": ("Balanced", "normal")}


def test_a_decision_of_a_recording_is_explained_by_the_settings_in_it() -> None:
    recording = ("--recording", RECORDING)
    whole = told("2026-11-23T04:36:00Z", *recording)
    assert (whole["source"], whole["reproduced"], whole["notes"]) == ("recording", True, [])
    assert [each["result"]["status"] for each in whole["commands"]] == ["done"] * 4
    moved = whole["commands"][0]
    answer = told(moved["bundle"], *recording, "--at", "2026-11-23T04:36:09Z")
    assert (answer["interval"], answer["chosen"], answer["whereTo"]) == (whole["interval"], True, moved["destination"])
    assert told("last", *recording)["interval"] - whole["interval"] == 37 * 10_000
    text = run("2026-11-23T04:36:00Z", *recording).stdout
    assert "from the recording; replaying it now gives the same result" in text


def test_of_many_brokers_the_first_are_printed_and_it_is_told_how_to_see_all(tmp_path: Path) -> None:
    conf = settings_in(tmp_path, broker_conf=_EAGER)
    (entry,) = played(conf, 1, shape=ClusterShape(brokers=25, bundles=30, topics=60))
    assert entry.decision.commands == ()
    bundle = _of_each_bundle(conf)[0]["subject"]
    short = run(bundle, "--conf", conf).stdout
    assert "and 5 more: --all" in short
    whole = run(bundle, "--all", "--conf", conf).stdout
    assert [f"broker-{n:02}:8080" in whole for n in range(1, 26)] == [True] * 25


@pytest.mark.parametrize(
    ("arguments", "exit_code", "words"),
    [
        (("tenant/ns/0x00000000_0x00000001",), 1, "is not in the load of 2025-01-01T00:02:00Z, which has 24 bundles"),
        (("broker-9:8080",), 1, "which has 6 brokers: it has broker-1:8080, broker-2:8080"),
        (("2024-01-01",), 1, "no decision about cluster 'demo' at or before 2024-01-01T00:00:00Z"),
        (("tenant/ns",), 2, "tenant/ns"),
        (("last", "--at", "never"), 2, "'never' is not a time: give 2025-01-31T14:05:00Z"),
        (("14:05", "--at", "14:06"), 2, "14:05 is a time already; leave --at out"),
        (("last", "--strategy", "AvgShedder"), 2, "need --load"),
        (("last", "--load", str(REPORTS), "--at", "14:05"), 2, "leave out the time"),
        (("last", "--load", str(REPORTS), "--recording", str(RECORDING)), 2, "give one of the two"),
        (("2026-11-23", "--recording", str(RECORDING)), 1, "has no decision at or before 2026-11-23T00:00:00Z"),
        (("last", "--recording", str(SAMPLES)), 1, "manifest.json: cannot be read"),
    ],
)
def test_what_cannot_be_explained_is_told_with_its_value_and_what_there_is(
    moving: tuple[Path, list[JournalEntry]], arguments: tuple[str, ...], exit_code: int, words: str
) -> None:
    conf, _ = moving
    answer = run(*arguments, "--conf", conf)
    assert answer.exit_code == exit_code
    error = answer.exception
    text = str(error) if isinstance(error, TrimtabError) else answer.output
    assert words in " ".join(text.replace("│", " ").split())


def test_an_empty_journal_and_a_missing_log_are_errors(tmp_path: Path) -> None:
    error = run("last", "--conf", settings_in(tmp_path)).exception
    assert isinstance(error, TrimtabError)
    assert "the journal has no decision about cluster 'demo'" in str(error)
    assert sorted(os.listdir(tmp_path)) == ["broker.conf", "trimtab.toml"]


# ---- what would flip it ----


def test_flip_tells_changes_that_would_flip_it_and_only_when_it_is_asked() -> None:
    words = ("last", "--load", REPORTS, "--strategy", "UniformLoadShedder")
    assert "flips" not in told(*words)
    found = told(*words, "--flip")["flips"]
    assert [(each["of"], each["kind"]) for each in found if each["of"] == "minUnloadMessage"]
    assert all(each["then"].startswith("unload") for each in found)
    assert "Each of these alone would flip it" in run(*words, "--flip").stdout


def test_a_search_that_was_over_before_its_end_names_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("last", "--load", REPORTS, "--strategy", "UniformLoadShedder", "--flip", "--flip-seconds", "1")
    assert told(*words[:-2])["flipsUnfinished"] == []
    monkeypatch.setattr(Deadline, "passed", True)
    unfinished = told(*words)["flipsUnfinished"]
    assert "minUnloadMessage" in unfinished
    note = " ".join(run(*words).stdout.partition("Note: the search was over before its end")[2].split())
    assert f"too, of {unfinished[0]}, {unfinished[1]}" in note
    assert note.endswith("; --flip-seconds gives it more time")


def test_how_long_to_search_is_refused_where_nothing_is_searched_for() -> None:
    result = run("last", "--load", REPORTS, "--flip-seconds", "5")
    assert result.exit_code == 2
    assert "it says how long --flip searches" in result.output


def test_flip_explains_a_journalled_bundle(moving: tuple[Path, list[JournalEntry]]) -> None:
    conf, entries = moving
    commands = [command for entry in entries for command in entry.decision.commands]
    found = told(commands[-1].bundle, "--at", utc(commands[-1].interval), "--conf", conf, "--flip")
    assert found["reproduced"]
    assert found["flips"]
    assert all(each["then"] == "" for each in found["flips"])

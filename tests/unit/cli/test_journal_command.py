"""`trimtab journal` on a log in a folder."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from controller.adapters.disk.verdicts import VerdictStore
from controller.cli.journal import journal
from controller.model.controls import Controls
from controller.model.decision import Decision, Reason, Verdict
from controller.model.errors import SettingsError, TrimtabError
from tests.folder_settings import write_settings
from tests.folders import journal_in
from tests.journal_entries import SPLIT, UNLOAD, entry
from tests.records import CLUSTER, LEFT, PERIOD, T, as_bytes, result, tick

app = typer.Typer()
app.command()(journal)
#: A split, an unload, an interval that was paused; the newest is the last.
INTERVALS = (T, T + PERIOD, T + 2 * PERIOD)
BALANCED = Verdict(subject="broker-2:8080", reason=Reason.BALANCED, observed=0.3, limit=0.5, unit="usage", by="X")


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    return write_settings(tmp_path, cluster=CLUSTER)


@pytest.fixture
def log(conf: Path) -> Path:
    """The settings of a log with three decisions, the newest of which has its verdicts."""
    folder = conf.parent / "log"
    kept = journal_in(folder, cluster=CLUSTER)
    kept.open()
    kept.begin_epoch(3)
    paused = entry(INTERVALS[2])
    summary = "2 bundles on 2 brokers: Paused, 1 commands held back"
    decisions = (
        entry(INTERVALS[0], SPLIT),
        entry(INTERVALS[1], replace(UNLOAD, interval=INTERVALS[1])),
        replace(
            paused,
            decision=replace(paused.decision, summary=summary),
            controls=Controls(mode="dry_run", paused=True),
        ),
    )
    for each in decisions:
        kept.append(each, epoch=3, issued_at_ms=T, before_commit=lambda: None)
    (folder / "results").mkdir(exist_ok=True)
    lines = [tick(INTERVALS[1], roster=None), result(id=UNLOAD.id, status="failed", detail="it went elsewhere")]
    (folder / "results" / "0.jsonl").write_bytes(b"\n".join(as_bytes(line) for line in lines))
    verdicts = (BALANCED, Verdict(subject=LEFT, reason=Reason.RECENTLY_UNLOADED))
    VerdictStore(conf.parent / "checkpoint" / "verdicts").write(
        Decision(interval=INTERVALS[2], verdicts=verdicts, summary="")
    )
    return conf


def run(conf: Path, *arguments: object, columns: int = 0) -> Result:
    words = [*map(str, arguments), "--conf", str(conf)]
    return CliRunner().invoke(app, words, env={"COLUMNS": str(columns)} if columns else {})


def found(conf: Path, *arguments: object) -> list[dict[str, Any]]:
    answer = run(conf, *arguments, "--json")
    assert answer.exit_code == 0, (answer.output, answer.exception)
    return [json.loads(line) for line in answer.stdout.splitlines()]


def times(decisions: Sequence[dict[str, Any]]) -> list[int]:
    return [each["interval"] for each in decisions]


def test_all_decisions_are_printed_the_newest_first_and_no_more_than_asked(log: Path) -> None:
    assert times(found(log)) == list(reversed(INTERVALS))
    assert times(found(log, "--limit", 2)) == [INTERVALS[2], INTERVALS[1]]


def test_a_command_is_printed_with_what_became_of_it(log: Path) -> None:
    _, unloaded, split = found(log)
    assert [(each["id"], each["result"]["status"]) for each in unloaded["commands"]] == [(UNLOAD.id, "failed")]
    assert [(each["id"], each["result"]) for each in split["commands"]] == [(SPLIT.id, None)]


def test_decisions_of_a_bundle_are_its_commands_and_the_verdicts_that_are_kept(log: Path) -> None:
    judged, moved = found(log, "--bundle", LEFT)
    assert (judged["interval"], judged["commands"]) == (INTERVALS[2], [])
    assert [each["reason"] for each in judged["verdicts"]] == ["RecentlyUnloaded"]
    assert (moved["interval"], moved["verdicts"]) == (INTERVALS[1], None)
    assert [each["bundle"] for each in moved["commands"]] == [LEFT]
    assert times(found(log, "--bundle", LEFT, "--issued")) == [INTERVALS[1]]


def test_decisions_of_a_broker_are_those_with_it_as_source_as_destination_or_as_subject(log: Path) -> None:
    assert times(found(log, "--broker", "broker-1:8080")) == [INTERVALS[1], INTERVALS[0]]
    judged, moved = found(log, "--broker", "broker-2:8080")
    assert [each["reason"] for each in judged["verdicts"]] == ["Balanced"]
    assert times([moved]) == [INTERVALS[1]]


@pytest.mark.parametrize(
    ("reason", "intervals"),
    [
        ("Topics", [INTERVALS[0]]),
        ("overloaded", [INTERVALS[1]]),
        ("Balanced", [INTERVALS[2]]),
        # Of a decision whose verdicts may be gone the summary says why all was held back.
        ("Paused", [INTERVALS[2]]),
    ],
)
def test_a_reason_is_found_in_commands_in_verdicts_and_in_summaries(
    log: Path, reason: str, intervals: list[int]
) -> None:
    assert times(found(log, "--reason", reason)) == intervals


def test_times_include_both_ends(log: Path) -> None:
    assert times(found(log, "--since", "2025-01-01T00:01:00Z")) == [INTERVALS[2], INTERVALS[1]]
    assert times(found(log, "--until", "2025-01-01T00:01:00Z")) == [INTERVALS[1], INTERVALS[0]]
    assert times(found(log, "--since", "2025-01-01T00:01Z", "--until", "2025-01-01 00:01")) == [INTERVALS[1]]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (("--bundle", "orders"), "orders"),
        (("--reason", "Budgets"), "did you mean Budget?"),
        (("--since", "yesterday"), "'yesterday' is not a time: give 2025-01-31T14:05:00Z"),
        (("--until", "2025-13-01"), "'2025-13-01' is not a time"),
        (("--since", "1h", "--until", "2h"), "--since: it is later than --until"),
    ],
)
def test_a_wrong_option_is_told_by_its_value_and_what_is_allowed(log: Path, wrong: tuple[str, ...], told: str) -> None:
    answer = run(log, *wrong)
    assert answer.exit_code == 2
    assert told in " ".join(answer.output.replace("│", " ").split())


def test_nothing_found_is_an_error_that_says_what_to_do(log: Path) -> None:
    error = run(log, "--reason", "Breaker").exception
    assert isinstance(error, TrimtabError)
    assert str(error) == f"no decision about cluster '{CLUSTER}' in the journal matches: leave out an option"


def test_a_log_without_a_journal_is_named_with_what_to_check(conf: Path) -> None:
    error = run(conf).exception
    assert isinstance(error, TrimtabError)
    journal = conf.parent / "log" / "journal"
    assert str(error).startswith(
        f"there is no journal: '{journal}' does not exist or is not visible to this user; `trimtab run`"
    )


def test_an_empty_journal_is_told(conf: Path) -> None:
    journal_in(conf.parent / "log", cluster=CLUSTER).open()
    error = run(conf).exception
    assert isinstance(error, TrimtabError)
    assert not isinstance(error, SettingsError)
    assert str(error) == f"no decision about cluster '{CLUSTER}' in the journal"

"""The table of the fault runs: a row a fault, and what stands around it stays."""

from pathlib import Path

import pytest

from tests.faults import report
from tests.faults.audit import Findings
from tests.faults.prove import Outcome
from tests.faults.stale import stale

PAGE = "\n".join(
    ["# Faults", "", "| a | b |", "", *report.HEADER, "| kill | old |", "| hang | kept |", "", "The end.", ""]
)


def outcome(fault: str, *recoveries: float, findings: Findings | None = None) -> Outcome:
    return Outcome(fault=fault, commands=7, recoveries=recoveries, findings=findings or Findings(), differences=["x"])


def test_a_row_tells_runs_findings_and_recovery() -> None:
    found = Findings(lost=["a"], twice=["b", "c"], wrong=["d", "e"])
    row = report.row(outcome("kill", 1.0, 2.0, 9.0, findings=found), "c0ffee")
    assert row == "| kill | c0ffee | 3 | 7 | 1 | 2 | 3 | 2.0 | 9.0 | none |"


def test_runs_without_a_finding_bound_how_often_a_run_can_fail() -> None:
    faultless = Outcome(fault="kill", commands=7, recoveries=[1.0] * 20, findings=Findings())
    assert report.row(faultless, "c0ffee").endswith("| 0 | 0 | 0 | 1.0 | 1.0 | 14% |")
    assert report.bound(1) == pytest.approx(0.95)
    assert report.bound(300) == pytest.approx(3 / 300, rel=0.01)


def test_rows_replace_those_of_the_same_fault_and_join_the_others(tmp_path: Path) -> None:
    page = tmp_path / "faults.md"
    page.write_text(PAGE)
    report.write(page, [outcome("kill", 1.0), outcome("new", 2.0)], "c0ffee")
    lines = page.read_text().splitlines()
    assert lines[:6] == PAGE.splitlines()[:6]
    assert lines[6:] == [
        "| kill | c0ffee | 1 | 7 | 0 | 0 | 1 | 1.0 | 1.0 | none |",
        "| hang | kept |",
        "| new | c0ffee | 1 | 7 | 0 | 0 | 1 | 2.0 | 2.0 | none |",
        "",
        "The end.",
    ]


def test_the_page_in_docs_has_the_table() -> None:
    page = (Path(__file__).parents[3] / "docs" / "faults.md").read_text(encoding="utf-8")
    assert report.row(outcome("kill", 1.0), "c0ffee") in report.with_rows(page, [outcome("kill", 1.0)], "c0ffee")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "stale_rows"),
    [
        ("controller/log/kafka/scope.py", ["kill", "executor-killed", "collector-log-cut"]),
        ("controller/executor/loop.py", ["kill", "executor-killed"]),
        ("streaming/sink.py", ["kill"]),
        ("controller/web/templates/base.html", []),
    ],
)
def test_a_row_is_stale_where_the_processes_that_its_fault_disturbs_have_changed(
    file: str, stale_rows: list[str]
) -> None:
    assert (Path(__file__).parents[3] / file).is_file()
    rows = [report.Row(fault, "c0ffee") for fault in ("kill", "executor-killed", "collector-log-cut")]
    found = stale(rows, changed=lambda _: {file})
    assert [line.partition(":")[0] for line in found] == stale_rows
    assert all(file in line for line in found)


def test_a_row_of_a_commit_that_is_not_there_is_stale() -> None:
    assert stale([report.Row("kill", "0123456789")]) == ["kill: commit 0123456789 is not in this repository"]

"""The table of the fault runs: a row a fault, and what stands around it stays."""

from pathlib import Path

from tests.faults import report
from tests.faults.audit import Findings
from tests.faults.prove import Outcome

PAGE = "\n".join(
    ["# Faults", "", "| a | b |", "", *report.HEADER, "| kill | old |", "| hang | kept |", "", "The end.", ""]
)


def outcome(fault: str, *recoveries: float, findings: Findings | None = None) -> Outcome:
    return Outcome(fault=fault, commands=7, recoveries=recoveries, findings=findings or Findings(), differences=["x"])


def test_a_row_tells_runs_findings_and_recovery() -> None:
    found = Findings(lost=["a"], twice=["b", "c"], wrong=["d", "e"])
    assert report.row(outcome("kill", 1.0, 2.0, 9.0, findings=found)) == "| kill | 3 | 7 | 1 | 2 | 3 | 2.0 | 9.0 |"


def test_rows_replace_those_of_the_same_fault_and_join_the_others(tmp_path: Path) -> None:
    page = tmp_path / "faults.md"
    page.write_text(PAGE)
    report.write(page, [outcome("kill", 1.0), outcome("new", 2.0)])
    lines = page.read_text().splitlines()
    assert lines[:6] == PAGE.splitlines()[:6]
    assert lines[6:] == [
        "| kill | 1 | 7 | 0 | 0 | 1 | 1.0 | 1.0 |",
        "| hang | kept |",
        "| new | 1 | 7 | 0 | 0 | 1 | 2.0 | 2.0 |",
        "",
        "The end.",
    ]


def test_the_page_in_docs_has_the_table() -> None:
    page = (Path(__file__).parents[3] / "docs" / "faults.md").read_text(encoding="utf-8")
    assert report.row(outcome("kill", 1.0)) in report.with_rows(page, [outcome("kill", 1.0)])

"""Outcomes in a file: runs that are there are not made again, and rows are of all."""

from pathlib import Path

from tests.faults import report
from tests.faults.audit import Findings
from tests.faults.keeping import Kept
from tests.faults.prove import Outcome


def outcome(fault: str, *recoveries: float, lost: tuple[str, ...] = ()) -> Outcome:
    findings = Findings(lost=[*lost])
    return Outcome(fault=fault, commands=len(recoveries), recoveries=recoveries, findings=findings)


def test_a_later_start_makes_the_runs_that_are_missing_and_its_row_is_of_all(tmp_path: Path) -> None:
    file = tmp_path / "outcomes.jsonl"
    assert list(Kept(file, "abc").pieces("kill", 12)) == [(0, 5), (5, 5), (10, 2)]
    Kept(file, "abc").add(outcome("kill", *[1.0] * 5, lost=("a",)))
    Kept(file, "abc").add(outcome("hang", 9.0))
    again = Kept(file, "abc")
    assert list(again.pieces("kill", 12)) == [(5, 5), (10, 2)]
    row = report.row(again.add(outcome("kill", *[3.0] * 5)), "abc")
    assert row == "| kill | abc | 10 | 10 | 1 | 0 | 0 | 2.0 | 3.0 | none |"
    assert list(again.pieces("kill", 10)) == []
    assert list(Kept(file, "of other code").pieces("kill", 3)) == [(0, 3)]


def test_a_line_that_was_cut_short_by_a_stop_does_not_count(tmp_path: Path) -> None:
    file = tmp_path / "outcomes.jsonl"
    Kept(file, "abc").add(outcome("kill", 1.0))
    whole = file.read_text()
    file.write_text(whole + whole[:20])
    Kept(file, "abc").add(outcome("kill", 2.0))
    assert list(Kept(file, "abc").pieces("kill", 3)) == [(2, 1)]


def test_without_a_file_all_runs_are_one_piece() -> None:
    assert list(Kept(None, "abc").pieces("kill", 12)) == [(0, 12)]
    assert Kept(None, "abc").add(outcome("kill", 1.0)).recoveries == [1.0]

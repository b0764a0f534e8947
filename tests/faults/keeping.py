"""Outcomes in a file, a line of JSON each, so that the runs of a fault can be made in pieces, and gone on with.

Those of other commits of the product stay in the file, and do not count.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.faults.audit import Findings
from tests.faults.prove import Outcome

#: So many runs at a time are looked at and written, so that no more are lost where a run of this is ended.
_PIECE = 5


class Kept:
    """The outcomes of *commit* in *file*; without a file all are of this process."""

    def __init__(self, file: Path | None, commit: str) -> None:
        self._file, self._commit = file, commit
        lines = _lines(file) if file is not None and file.exists() else []
        self._outcomes = [_read(each) for line in lines if (each := json.loads(line))["commit"] == commit]

    def pieces(self, fault: str, runs: int) -> Iterator[tuple[int, int]]:
        """The number of the first run, and how many, of each piece that is missing for so many *runs* of *fault*."""
        done = sum(len(each.recoveries) for each in self._outcomes if each.fault == fault)
        size = runs if self._file is None else _PIECE
        for first in range(done, runs, size):
            yield first, min(size, runs - first)

    def add(self, outcome: Outcome) -> Outcome:
        """Write *outcome*, and return it together with the former ones of its fault."""
        self._outcomes.append(outcome)
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(f"{_line(outcome, self._commit)}\n")
        return _together([each for each in self._outcomes if each.fault == outcome.fault])


def _lines(file: Path) -> list[str]:
    """The lines of *file*; one that was cut short by a stop is taken out."""
    whole, end, rest = file.read_text(encoding="utf-8").rpartition("\n")
    if rest:
        file.write_text(whole + end, encoding="utf-8")
    return whole.splitlines()


def _together(outcomes: list[Outcome]) -> Outcome:
    findings = [each.findings for each in outcomes]
    return Outcome(
        fault=outcomes[0].fault,
        commands=sum(each.commands for each in outcomes),
        recoveries=[seconds for each in outcomes for seconds in each.recoveries],
        findings=Findings(
            lost=[line for each in findings for line in each.lost],
            twice=[line for each in findings for line in each.twice],
            wrong=[line for each in findings for line in each.wrong],
        ),
        differences=[line for each in outcomes for line in each.differences],
    )


def _line(outcome: Outcome, commit: str) -> str:
    findings = outcome.findings
    values = {
        "fault": outcome.fault,
        "commit": commit,
        "commands": outcome.commands,
        "recoveries": list(outcome.recoveries),
        "lost": findings.lost,
        "twice": findings.twice,
        "wrong": findings.wrong,
        "differences": outcome.differences,
    }
    return json.dumps(values)


def _read(values: dict[str, Any]) -> Outcome:
    findings = Findings(lost=values["lost"], twice=values["twice"], wrong=values["wrong"])
    return Outcome(
        fault=values["fault"],
        commands=values["commands"],
        recoveries=values["recoveries"],
        findings=findings,
        differences=values["differences"],
    )

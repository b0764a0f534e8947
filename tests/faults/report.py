"""The table in docs/faults.md."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from tests.faults.prove import Outcome

HEADER = (
    "| fault | commit | runs | commands | lost | carried out twice | wrong | recovery, median s | p95 s | bound |",
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
)
#: That a run with the fault fails less often than the bound is said with this much confidence.
_CONFIDENCE: Final = 0.95


class Row(NamedTuple):
    """What a row of the table says."""

    fault: str
    #: The last one that had changed the product when the fault was caused.
    commit: str

    @property
    def name(self) -> str:
        """The fault's, whatever the site was."""
        return self.fault.partition(",")[0]


def row(outcome: Outcome, commit: str) -> str:
    """The row of *outcome*, of the product as of *commit*."""
    findings = outcome.findings
    failed = bool(findings or outcome.differences)
    cells = (
        outcome.fault,
        commit,
        len(outcome.recoveries),
        outcome.commands,
        len(findings.lost),
        len(findings.twice),
        outcome.wrong,
        f"{outcome.median:.1f}",
        f"{outcome.p95:.1f}",
        "none" if failed else f"{bound(len(outcome.recoveries)):.0%}",
    )
    return f"| {' | '.join(map(str, cells))} |"


def bound(runs: int) -> float:
    """How often a run can fail at most where none of *runs* did (Clopper and Pearson; about 3 / runs for many)."""
    return float(1 - (1 - _CONFIDENCE) ** (1 / runs))


def rows(page: str) -> list[Row]:
    """The rows of the table of *page*."""
    return [Row(*(cell.strip() for cell in line.split("|")[1:3])) for line in _table(page.splitlines())[1]]


def with_rows(page: str, outcomes: Iterable[Outcome], commit: str) -> str:
    """*page* with the rows of *outcomes* in its table, in the place of former rows of the same faults."""
    before, table, after = _table(page.splitlines())
    lines = {line.split("|")[1].strip(): line for line in table}
    lines |= {outcome.fault: row(outcome, commit) for outcome in outcomes}
    return "\n".join([*before, *lines.values(), *after]) + "\n"


def write(file: Path, outcomes: Iterable[Outcome], commit: str) -> None:
    """Put the rows of *outcomes* into *file*."""
    file.write_text(with_rows(file.read_text(encoding="utf-8"), outcomes, commit), encoding="utf-8")


def _table(lines: list[str]) -> tuple[list[str], list[str], list[str]]:
    """*lines* before the rows of the table, its rows, and those after it."""
    start = lines.index(HEADER[1]) + 1
    end = next((n for n in range(start, len(lines)) if not lines[n].startswith("|")), len(lines))
    return lines[:start], lines[start:end], lines[end:]

"""The table in docs/faults.md."""

from collections.abc import Iterable
from pathlib import Path

from tests.faults.prove import Outcome

HEADER = (
    "| fault | runs | commands | lost | carried out twice | wrong | recovery, median s | p95 s |",
    "| --- | --- | --- | --- | --- | --- | --- | --- |",
)


def row(outcome: Outcome) -> str:
    findings = outcome.findings
    cells = (
        outcome.fault,
        len(outcome.recoveries),
        outcome.commands,
        len(findings.lost),
        len(findings.twice),
        outcome.wrong,
        f"{outcome.median:.1f}",
        f"{outcome.p95:.1f}",
    )
    return f"| {' | '.join(map(str, cells))} |"


def with_rows(page: str, outcomes: Iterable[Outcome]) -> str:
    """*page* with the rows of *outcomes* in its table, in the place of former rows of the same faults."""
    lines = page.splitlines()
    start = lines.index(HEADER[1]) + 1
    end = next((n for n in range(start, len(lines)) if not lines[n].startswith("|")), len(lines))
    rows = {line.split("|")[1].strip(): line for line in lines[start:end]}
    rows |= {outcome.fault: row(outcome) for outcome in outcomes}
    return "\n".join([*lines[:start], *rows.values(), *lines[end:]]) + "\n"


def write(file: Path, outcomes: Iterable[Outcome]) -> None:
    file.write_text(with_rows(file.read_text(encoding="utf-8"), outcomes), encoding="utf-8")

"""scripts/mutate: make small mistakes in the core, one at a time, and see whether plain pytest catches each.

    scripts/mutate --seed 7 --sample 100
    scripts/mutate controller/aggregate/view.py --sample 0 --quick

Works on a copy of the tree.  Prints each mutant that no test catches, and the score.  Mutants that change nothing
anybody could see are listed with the reason in tests/mutants/equivalent.txt, and do not count.
"""

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer

from tests.mutants.alone import CAUGHT, SURVIVED
from tests.mutants.operators import Mutant, mutants
from tests.mutants.trial import NOT_TRIED, OPTIONS, Trial

CORE = [
    f"controller/{name}"
    for name in (
        *("model", "planning", "strategies", "aggregate", "cycle", "audit", "engine.py"),
        *("wire", "collector", "executor"),
    )
]
_EQUIVALENT = Path("tests/mutants/equivalent.txt")


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the command line asks for."""

    paths: Sequence[Path]
    seed: int
    #: How many mutants; 0 for all.
    sample: int
    jobs: int
    quick: bool
    line: int | None
    record: Path
    tests: Sequence[str]


app = typer.Typer(add_completion=False)


@app.command(help=__doc__.split("\n\n")[0])
def main(
    paths: Annotated[list[Path] | None, typer.Argument(help="Files or folders to change; else the core.")] = None,
    seed: Annotated[int, typer.Option(help="Which sample.")] = 1,
    sample: Annotated[int, typer.Option(help="How many mutants; 0 for all.")] = 100,
    jobs: Annotated[int | None, typer.Option(help="How many at once.")] = os.cpu_count(),
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Run no other tests than those that run, import or are nearest to what is changed."
        ),
    ] = False,
    line: Annotated[int | None, typer.Option(help="Mutants of this line alone.")] = None,
    record: Annotated[
        Path | None, typer.Option(help="A file for which test runs what: written, or read if it exists.")
    ] = None,
    tests: Annotated[
        list[str] | None, typer.Option(help="Tests to begin with, once for each; with --quick no others run.")
    ] = None,
    here: Annotated[bool, typer.Option("--here", help="Change files here: this is a copy already.")] = False,
) -> None:
    """Sample, try, print."""
    if not here:
        raise typer.Exit(_in_a_copy())
    given = Given(
        paths=paths or [Path(name) for name in CORE],
        seed=seed,
        sample=sample,
        jobs=jobs or 1,
        quick=quick,
        line=line,
        record=record or Path("record.json").absolute(),
        tests=tests or ["tests"],
    )
    score, whole = _score(_sampled(given), given)
    print(f"seed {given.seed}: {score}", flush=True)  # noqa: T201
    raise typer.Exit(not whole)


def _in_a_copy() -> int:
    """Start again in a copy of the tree: modules that are imported from here cannot be had from there."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], check=True, capture_output=True, text=True
    )
    with tempfile.TemporaryDirectory(prefix="mutants.") as folder:
        for name in filter(os.path.lexists, listed.stdout.splitlines()):
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(name, Path(folder) / name, follow_symlinks=False)
        command = [sys.executable, "-m", "tests.mutants", *sys.argv[1:], "--here"]
        return subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": folder}).returncode


def _sampled(given: Given) -> list[Mutant]:
    files = sorted({file for path in given.paths for file in ([path] if path.is_file() else path.rglob("*.py"))})
    found = [m for file in files for m in mutants(file) if given.line in (None, m.line)]
    equivalent = {line.rpartition(" | ")[0] for line in _EQUIVALENT.read_text().splitlines()}
    random.Random(given.seed).shuffle(found)
    print(f"{len(found)} mutants of {len(files)} files", flush=True)  # noqa: T201
    chosen: list[Mutant] = []
    for mutant in found:
        if len(chosen) == given.sample > 0:
            break
        if " | ".join((str(mutant.path), *mutant.change())) in equivalent:
            print(f"equivalent: {_said(mutant)}")  # noqa: T201
        else:
            chosen.append(mutant)
    return chosen


def _said(mutant: Mutant) -> str:
    was, becomes = mutant.change()
    return f"{mutant.path}:{mutant.line}\n    - {was.strip()}\n    + {becomes.strip()}"


def _score(chosen: list[Mutant], given: Given) -> tuple[str, bool]:
    """What came of all, in words, and whether each was tried."""
    verdicts: list[str] = []
    began = time.monotonic()

    def told(mutant: Mutant, verdict: str, tests: int) -> None:
        verdicts.append(verdict)
        if len(verdicts) % 10 == 0:
            print(f"{len(verdicts)} of {len(chosen)} tried", flush=True)  # noqa: T201
        if verdict != CAUGHT:
            print(f"{verdict}, {tests} tests run it: {_said(mutant)}", flush=True)  # noqa: T201

    trial = Trial(chosen, jobs=given.jobs, quick=given.quick, record=given.record, told=told)
    ended = pytest.main([*OPTIONS, "-s", *given.tests], plugins=[trial])
    if len(verdicts) != len(chosen):
        return f"pytest ended with {ended!s} after {len(verdicts)} of {len(chosen)} mutants", False
    survivors, left = verdicts.count(SURVIVED), verdicts.count(NOT_TRIED)
    tried, minutes = len(chosen) - left, (time.monotonic() - began) / 60
    score = f"{tried - survivors} of {tried} mutants caught, {survivors} survived, {minutes:.1f} minutes"
    return score + (f"; {left} not tried" if left else ""), not left


if __name__ == "__main__":
    app()

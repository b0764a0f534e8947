"""scripts/mutate: make small mistakes in the core, one at a time, and see whether plain pytest catches each.

    scripts/mutate --seed 7 --sample 100
    scripts/mutate controller/aggregate/view.py --sample 0 --quick

Works on a copy of the tree.  Prints each mutant that no test catches, and the score.  Mutants that change nothing
anybody could see are listed with the reason in tests/mutants/equivalent.txt, and do not count.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.mutants.operators import Mutant, mutants
from tests.mutants.trial import CAUGHT, OPTIONS, SURVIVED, Trial

CORE = [
    f"controller/{name}"
    for name in ("model", "strategies", "aggregate", "cycle", "engine.py", "wire", "collector", "executor")
]
_EQUIVALENT = Path("tests/mutants/equivalent.txt")


def main() -> None:
    """Sample, try, print."""
    parser = argparse.ArgumentParser(prog="scripts/mutate", description=__doc__.split("\n\n")[0])
    parser.add_argument("paths", nargs="*", default=CORE, help="files or folders to change")
    parser.add_argument("--seed", type=int, default=1, help="which sample")
    parser.add_argument("--sample", type=int, default=100, help="how many mutants; 0 for all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--quick", action="store_true", help="run the tests alone that run the function itself")
    parser.add_argument("--line", type=int, help="mutants of this line alone")
    parser.add_argument("--record", type=Path, help="a file for which test runs what: written, or read if it exists")
    parser.add_argument(
        "--tests", nargs="+", default=["tests"], help="the tests to begin with; with --quick no others run"
    )
    parser.add_argument("--here", action="store_true", help="change files here: this is a copy already")
    given = parser.parse_args()
    if not given.here:
        raise SystemExit(_in_a_copy())
    given.record = given.record or Path("record.json").absolute()
    print(f"seed {given.seed}: {_score(_sampled(given), given)}", flush=True)  # noqa: T201


def _in_a_copy() -> int:
    """Start again in a copy of the tree: modules that are imported from here cannot be had from there."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], check=True, capture_output=True, text=True
    )
    with tempfile.TemporaryDirectory(prefix="mutants.") as folder:
        for name in filter(os.path.exists, listed.stdout.splitlines()):
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(name, Path(folder) / name)
        command = [sys.executable, "-m", "tests.mutants", *sys.argv[1:], "--here"]
        return subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": folder}).returncode


def _sampled(given: argparse.Namespace) -> list[Mutant]:
    files = sorted(
        {file for path in map(Path, given.paths) for file in ([path] if path.is_file() else path.rglob("*.py"))}
    )
    found = [m for file in files for m in mutants(file) if given.line in (None, m.line)]
    equivalent = {tuple(line.split(" | ")[:3]) for line in _EQUIVALENT.read_text().splitlines()}
    random.Random(given.seed).shuffle(found)
    print(f"{len(found)} mutants of {len(files)} files", flush=True)  # noqa: T201
    chosen: list[Mutant] = []
    for mutant in found:
        if len(chosen) == given.sample > 0:
            break
        if (str(mutant.path), *mutant.change()) in equivalent:
            print(f"equivalent: {_said(mutant)}")  # noqa: T201
        else:
            chosen.append(mutant)
    return chosen


def _said(mutant: Mutant) -> str:
    was, becomes = mutant.change()
    return f"{mutant.path}:{mutant.line}\n    - {was.strip()}\n    + {becomes.strip()}"


def _score(chosen: list[Mutant], given: argparse.Namespace) -> str:
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
        return f"pytest ended with {ended!s} after {len(verdicts)} of {len(chosen)} mutants"
    survivors = verdicts.count(SURVIVED)
    caught, minutes = len(chosen) - survivors, (time.monotonic() - began) / 60
    return f"{caught} of {len(chosen)} mutants caught, {survivors} survived, {minutes:.1f} minutes"


if __name__ == "__main__":
    main()

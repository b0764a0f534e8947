"""Plays many seeds, and shrinks those that fail.  See docs/simulation.md."""

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from tests.simulation import planted
from tests.simulation.faults import POINTS, schedule_of
from tests.simulation.run import play
from tests.simulation.schedule import Schedule
from tests.simulation.strangers import PATCHES

#: From so many seeds on every point has to have met a fault.
_MANY: Final = 500


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 1 where a seed failed, or where many seeds left a point without a fault."""
    parser = argparse.ArgumentParser(prog="scripts/simulate-loop", description=__doc__)
    parser.add_argument("--seeds", type=_positive, default=20, help="how many seeds")
    parser.add_argument("--from", type=int, default=1, dest="first", help="the first seed")
    parser.add_argument("--jobs", type=_positive, default=1, help="processes side by side")
    parser.add_argument(
        "--resume", type=Path, help="a file of results: seeds that it has of this commit are not played"
    )
    parser.add_argument(
        "--planted", choices=sorted({*planted.BUGS, *PATCHES}), help="play with this bug, up to the first failure"
    )
    parser.add_argument("--election", choices=("zookeeper", "log"), default="zookeeper", help="where it lies")
    given = parser.parse_args(arguments)
    if given.resume and given.planted:
        parser.error("--resume has the results of runs without a bug; leave it out with --planted")
    if given.resume and not (given.resume.is_file() or (not given.resume.exists() and given.resume.parent.is_dir())):
        parser.error(f"--resume {given.resume}: it is not a file, or its folder does not exist")
    results, began = dict[int, dict[str, Any]](), time.monotonic()
    for result in _played(given):
        results[result["seed"]] = result
        if result["findings"]:
            _say(_report(result, given.planted, elects_on_log=given.election == "log"))
            if given.planted:
                break
    failed = sum(bool(each["findings"]) for each in results.values())
    _say(_summary(list(results.values()), time.monotonic() - began))
    missed = _missed(list(results.values())) if len(results) >= _MANY else []
    if missed:
        _say(f"no fault has met: {', '.join(missed)}")
    return 1 if failed or missed else 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def _commit() -> str:
    ran = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return ran.stdout.strip()


def _played(given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    wanted = range(given.first, given.first + given.seeds)
    known = {} if given.resume is None else stored_results(given.resume, _commit(), given.election)
    yield from (known[seed] for seed in wanted if seed in known)
    with get_context("fork").Pool(given.jobs) as pool:
        work = partial(played, bug=given.planted, elects_on_log=given.election == "log")
        for result in pool.imap_unordered(work, [seed for seed in wanted if seed not in known]):
            if given.resume is not None:
                with given.resume.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"commit": _commit(), **result}) + "\n")
            yield result


def stored_results(path: Path, commit: str, election: str = "zookeeper") -> dict[int, dict[str, Any]]:
    """The results of *commit* with that *election* in *path*, by seed.  A line that a stop cut off is left out."""
    found = dict[int, dict[str, Any]]()
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    for line in text.splitlines():
        with suppress(ValueError):
            result = json.loads(line)
            if isinstance(result, dict) and (result.get("commit"), result.get("election")) == (commit, election):
                found[result["seed"]] = result
    if text and not text.endswith("\n"):
        with path.open("a", encoding="utf-8") as file:
            file.write("\n")
    return found


def played(seed: int, bug: str | None = None, *, elects_on_log: bool = False) -> dict[str, Any]:
    """What came of *seed*, as JSON has it."""
    schedule, began = replace(schedule_of(seed), elects_on_log=elects_on_log), time.process_time()
    with planted.in_place(bug):
        outcome = play(schedule)
    answered = Counter(each.outcome for each in outcome.trace if each.kind == "answered")
    return {
        "seed": seed,
        "election": "log" if elects_on_log else "zookeeper",
        "findings": outcome.findings[:5],
        "intervals": schedule.intervals,
        "seconds": round(time.process_time() - began, 3),
        "commands": answered.total(),
        "faults": len(schedule.faults),
        "met": [[*key, count] for key, count in sorted(outcome.world.met.items())],
        "reached": dict(sorted(outcome.world.reached.items())),
    }


def shrunk(schedule: Schedule, bug: str | None = None) -> Schedule:
    """The smallest schedule, by leaving out faults and intervals, that fails in the same way."""

    def kinds(tried: Schedule) -> set[str]:
        with planted.in_place(bug):
            return {each.split(":")[0] for each in play(tried).findings}

    wanted = kinds(schedule)
    for fault in schedule.faults:
        fewer = replace(schedule, faults=tuple(each for each in schedule.faults if each is not fault))
        if kinds(fewer) & wanted:
            schedule = fewer
    while schedule.intervals > 4:
        shorter = replace(schedule, intervals=schedule.intervals * 3 // 4)
        if not kinds(shorter) & wanted:
            break
        schedule = shorter
    return schedule


def _report(result: dict[str, Any], bug: str | None, *, elects_on_log: bool) -> str:
    seed = result["seed"]
    small = shrunk(replace(schedule_of(seed), elects_on_log=elects_on_log), bug)
    with_bug = (f" --planted {bug}" if bug else "") + (" --election log" if elects_on_log else "")
    return "\n".join(
        [
            f"seed {seed} at {_commit()}: scripts/simulate-loop --from {seed} --seeds 1{with_bug}",
            *(f"  {each}" for each in result["findings"]),
            f"  shrunk to {small.intervals} intervals and {len(small.faults)} faults"
            f" ({'one append' if small.atomic else 'record by record'}, {small.partitions} partitions):",
            *(f"    {each}" for each in small.faults),
        ]
    )


def _summary(results: Sequence[dict[str, Any]], seconds: float) -> str:
    met = Counter[tuple[str, str]]()
    for result in results:
        for kind, point, count in result["met"]:
            met[kind, point] += count
    intervals = sum(each["intervals"] for each in results)
    spent = sum(each["seconds"] for each in results)
    lines = [
        f"{len(results)} seeds, {sum(bool(each['findings']) for each in results)} failed;"
        f" {intervals} intervals, {sum(each['commands'] for each in results)} commands,"
        f" {sum(each['faults'] for each in results)} faults; {seconds:.0f} s,"
        f" {intervals / spent if spent else 0:.0f} intervals a CPU second"
    ]
    for point in sorted({point for _, point in met}):
        kinds = ", ".join(f"{kind} {count}" for (kind, at), count in sorted(met.items()) if at == point)
        lines.append(f"  {point}: {kinds}")
    return "\n".join(lines)


def _missed(results: Sequence[dict[str, Any]]) -> list[str]:
    """Points of POINTS that were reached, and where no fault came."""
    reached = {point for each in results for point in each["reached"]}
    met = {point for each in results for _, point, _ in each["met"]}
    return sorted({point for points in POINTS.values() for point in points} & reached - met)


if __name__ == "__main__":
    sys.exit(main())

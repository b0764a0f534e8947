"""``scripts/vectors VERSION``: record what the classes of a release of Pulsar answer.

Writes into ``tests/vectors``, or the folder that ``--out`` names:

- answers: ``VERSION/answers.jsonl.gz``, what the release answers to the cases in ``tests/vectors``, where it differs;
- cycles: new runs of whole cycles, ``--cases`` of each of ``--seeds``, in ``VERSION/rival_cycles_modular.jsonl.gz`` and
  ``VERSION/rival_cycles_extensible.jsonl.gz``; those of 4.0.8 are beside its other cases, without a folder;
- random: for 4.0.8, new cases of single classes, ``random_*.jsonl.gz``, and those that users reported,
  ``reported_*.jsonl.gz``, which the other releases answer, too.

``TRIMTAB_VECTORS=FOLDER pytest tests/conformance`` runs trimtab on what was written into FOLDER.  The same release,
seeds and cases give the same bytes.
"""

import argparse
import gzip
import json
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from controller.model.errors import TrimtabError
from tests.java_rival import answers, random_inputs, reported_inputs
from tests.java_rival.cycles import MANAGERS
from tests.java_rival.driver import Driver
from tests.java_rival.releases import USUAL, Release

_LEVEL: Final = 9
_PARTS: Final = ("answers", "cycles", "random")


def record(release: Release, parts: Collection[str], seeds: range, cases: int, out: Path) -> Iterator[tuple[Path, int]]:
    """Write *parts* of *release* below *out*; yields each file, and how many cases it is about.

    Raises TrimtabError where the classes of *release* cannot be had.
    """
    folder = out / release.version
    numbers = [(str(seed), number) for seed in seeds for number in range(cases)]
    with TemporaryDirectory(prefix="trimtab-rival-") as scratch, Driver(release, Path(scratch)) as driver:
        new = {
            f"random_{name}": [random_inputs.case(name, *one) for one in numbers] for name in random_inputs.COMPONENTS
        }
        new |= {f"reported_{name}": list(cases) for name, cases in reported_inputs.CASES.items()}
        for file, made in new.items() if "random" in parts else ():
            component = file.partition("_")[2]
            rows = [case | {"expected": answers.ask(driver, component, case)} for case in made]
            yield out / f"{file}.jsonl.gz", _write(out / f"{file}.jsonl.gz", rows, sort=True)
        for manager, play in MANAGERS.items() if "cycles" in parts else ():
            path = (out if release.version == USUAL else folder) / f"rival_cycles_{manager}.jsonl.gz"
            yield path, _write(path, [play(driver, *one) for one in numbers])
        if "answers" in parts:
            found = list(answers.lines(driver))
            _write(folder / answers.FILE, found, sort=True)
            yield folder / answers.FILE, sum(line["cases"] for line in found)


def _write(path: Path, rows: Sequence[Mapping[str, Any]], *, sort: bool = False) -> int:
    """Write *rows* to *path*, and return how many; *sort* their keys where Java has no order of them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(row, separators=(",", ":"), sort_keys=sort) for row in rows]
    path.write_bytes(gzip.compress("\n".join([*lines, ""]).encode(), _LEVEL, mtime=0))
    return len(lines)


def _seeds(text: str) -> range:
    """``3`` or ``1-4``, both ends in it."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def main() -> None:
    """Read the command line, and say what was written."""
    parser = argparse.ArgumentParser(
        prog="scripts/vectors", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("version", help="a release that tests/java_rival/jars.lock has, as in 4.2.4")
    parser.add_argument("--parts", nargs="+", choices=_PARTS, default=_PARTS[:2], help="what to record")
    parser.add_argument("--seeds", type=_seeds, default=range(1, 2), help="a seed, or a range of them: 1-4")
    parser.add_argument("--cases", type=int, default=40, help="so many of each seed (default: 40)")
    parser.add_argument("--out", type=Path, default=answers.VECTORS, help="an existing folder")
    given = parser.parse_args()
    if "random" in given.parts and given.version != USUAL:
        parser.error(f"random cases are recorded from {USUAL}: other releases answer those that there are")
    try:
        for path, count in record(Release(given.version), given.parts, given.seeds, given.cases, given.out):
            sys.stdout.write(f"{path}: {count} cases, {path.stat().st_size:,} bytes\n")
    except TrimtabError as error:
        sys.exit(f"trimtab: {error}")


if __name__ == "__main__":
    main()

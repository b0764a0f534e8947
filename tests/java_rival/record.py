"""``python -m tests.java_rival.record``: write vectors of whole cycles, as a release of Pulsar answers.

``--pulsar 4.2.4 --seeds 1-3 --cases 100 --out FOLDER`` writes ``rival_cycles_modular.jsonl.gz`` and
``rival_cycles_extensible.jsonl.gz`` with 300 cases each.  ``TRIMTAB_VECTORS=FOLDER pytest tests/conformance`` then runs
trimtab on them.  The same release, seeds and cases give the same bytes.
"""

import argparse
import gzip
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from controller.model.errors import TrimtabError
from tests.java_rival.cycles import MANAGERS, Driver
from tests.java_rival.releases import Release, named

_LEVEL: Final = 9


def record(release: Release, seeds: range, cases: int, out: Path) -> dict[Path, int]:
    """Write the file of each manager into *out*: for each of *seeds*, *cases*; returns how many each file holds.

    Raises TrimtabError where the classes of *release* cannot be had.
    """
    written = {}
    with TemporaryDirectory(prefix="trimtab-rival-") as scratch, Driver(release, Path(scratch)) as driver:
        for manager, play in MANAGERS.items():
            made = [play(driver, str(seed), number) for seed in seeds for number in range(cases)]
            lines = [json.dumps(case, separators=(",", ":")) for case in made]
            path = out / f"rival_cycles_{manager}.jsonl.gz"
            path.write_bytes(gzip.compress("\n".join([*lines, ""]).encode(), _LEVEL, mtime=0))
            written[path] = len(lines)
    return written


def _seeds(text: str) -> range:
    """``3`` or ``1-4``, both ends in it."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def main() -> None:
    """Read the command line, and say what was written."""
    parser = argparse.ArgumentParser(prog="python -m tests.java_rival.record", description=__doc__)
    parser.add_argument("--pulsar", default=named().version, help="the release whose classes answer")
    parser.add_argument("--seeds", type=_seeds, default=range(1, 2), help="a seed, or a range of them: 1-4")
    parser.add_argument("--cases", type=int, default=100, help="so many of each load manager and seed")
    parser.add_argument("--out", type=Path, required=True, help="an existing folder")
    given = parser.parse_args()
    try:
        written = record(Release(given.pulsar), given.seeds, given.cases, given.out)
    except TrimtabError as error:
        sys.exit(f"trimtab: {error}")
    for path, count in written.items():
        sys.stdout.write(f"{path}: {count} cases of Pulsar {given.pulsar}, {path.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()

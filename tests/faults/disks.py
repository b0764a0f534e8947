"""Faults of disks: that of the journal, the results or the checkpoint is full, slow, or fails to sync for a while."""

import importlib.util
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from tests.faults.clock import eventually, now_ms
from tests.faults.disk import FULL, SLOW, SYNC_FAILS
from tests.faults.faults import Around, Fault
from tests.faults.site import Site, folder_site

_PLACES: Final = {"journal": "log/journal", "results": "log/results", "checkpoint": "checkpoint"}
_HOW: Final = (FULL, SLOW, SYNC_FAILS)
#: What can become of each; Spark does not sync its checkpoint.
NAMES: Final = tuple(
    f"{place}-{how}" for place in _PLACES for how in _HOW if (place, how) != ("checkpoint", SYNC_FAILS)
)
#: So long a disk is full or fails; who writes to it gives up meanwhile, and is started again.
_SECONDS: Final = 20.0
_END_SECONDS: Final = 10.0


class FaultyDisks:
    """The disks of a site, each a file system of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def wrong(self, place: str, how: str) -> Iterator[None]:
        """The disk of *place* is so for a block."""
        file = _fault(self._folder, place)
        try:
            file.write_text(how, encoding="ascii")
            yield
        finally:
            file.write_text("", encoding="ascii")


@contextmanager
def site_on_faulty_disks(folder: Path) -> Iterator[tuple[Site, FaultyDisks]]:
    """A site with its log in a folder, whose journal, results and checkpoint have a disk each."""
    with ExitStack() as stack:
        for place, path in _PLACES.items():
            stack.enter_context(_mounted(folder, place, folder / "site" / path))
        with folder_site(folder / "site") as site:
            yield site, FaultyDisks(folder)


def why_none() -> str:
    """Why this machine can have no such disks; empty: it can."""
    if not Path("/dev/fuse").exists() or shutil.which("fusermount3") is None:
        return "there is no FUSE here: /dev/fuse and fusermount3 (Debian: fuse3)"
    if importlib.util.find_spec("mfusepy") is None:
        return "not installed: mfusepy, from the group dev of pyproject.toml"
    return ""


def faults_of_disks(disks: FaultyDisks) -> list[Fault]:
    """Those of NAMES, on *disks*."""
    found = []
    for name in NAMES:
        place, _, how = name.partition("-")
        inflict = partial(_slow if how == SLOW else _fails, disks, place, how)
        found.append(Fault(name=name, what=f"the disk of the {place}: {how}", inflict=inflict))
    return found


def _fails(disks: FaultyDisks, place: str, how: str, site: Site, _: Around, nth: int) -> float:
    """An interval is published just before, as ticks are in the results too; recovery is measured from the end."""
    interval = site.publish()
    with disks.wrong(place, how):
        time.sleep(_SECONDS)
    at = now_ms()
    site.wait_for_decision(interval)
    interval = site.publish()
    return (site.wait_for_decision(interval).at_ms - at) / 1000


def _slow(disks: FaultyDisks, place: str, how: str, site: Site, _: Around, __: int) -> float:
    """Two intervals meanwhile; recovery is the second's decision."""
    with disks.wrong(place, how):
        site.publish()
        site.come_to_rest()
        at, interval = now_ms(), site.publish()
        decided = site.wait_for_decision(interval)
        site.come_to_rest()
    return (decided.at_ms - at) / 1000


def _fault(folder: Path, place: str) -> Path:
    return folder / f"{place}.fault"


@contextmanager
def _mounted(folder: Path, place: str, at: Path) -> Iterator[None]:
    """A file system of its own at *at*, for a block."""
    behind = folder / f"{place}.behind"
    for each in (behind, at):
        each.mkdir(parents=True)
    _fault(folder, place).write_text("", encoding="ascii")
    words = [sys.executable, "-m", "tests.faults.fuse", behind, at, _fault(folder, place)]
    server = subprocess.Popen(list(map(str, words)))
    try:
        eventually(at.is_mount, f"{at} is mounted", _END_SECONDS)
        yield
    finally:
        subprocess.run(["umount", "-l", str(at)], check=False)
        server.wait(_END_SECONDS)

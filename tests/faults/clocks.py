"""Faults of clocks: the leader's and an executor's are ahead, behind, jump, or run fast (libfaketime).

Those of their Python processes, that is: driver and workers.  The JVM, which decides nothing, keeps the right time.
"""

import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Final

from controller.lab.servers import kafka_server, zookeeper_server
from tests.faults.faults import Around, Fault
from tests.faults.site import Site, kafka_site

_LIBRARIES: Final = ("/usr/lib", "/usr/lib64", "/usr/local/lib")
_RIGHT: Final = "+0"
#: What the clock shows, one after the other, each for a while; in libfaketime's words.
_HOW: Final[dict[str, Sequence[str]]] = {
    "ahead": ["+300"],
    "behind": ["-300"],
    "jumps": ["+120", "-120"],
    "fast": ["+0 x3"],
}
NAMES: Final = tuple(f"clock-{how}" for how in _HOW)
_EACH_SECONDS: Final = 1.0
_WRONG_SECONDS: Final = 12.0


class Clocks:
    """The clocks of a site's processes."""

    def __init__(self, folder: Path, library: Path) -> None:
        folder.mkdir(parents=True)
        self._folder, sleep = folder, folder / "sleep.so"
        source = Path(__file__).with_name("sleep.c")
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", str(sleep), str(source)], check=True)
        self._preload = f"{sleep}:{library}"

    def words(self, process: str) -> list[str]:
        """The words before the command of *process*; its clock is right until it is set."""
        self.set(process, _RIGHT)
        return [
            "env",
            f"LD_PRELOAD={self._preload}",
            f"FAKETIME_TIMESTAMP_FILE={self._folder / process}",
            "FAKETIME_NO_CACHE=1",
            "FAKETIME_DONT_FAKE_MONOTONIC=1",
            "FAKETIME_ONLY_CMDS=python",
        ]

    def set(self, process: str, text: str) -> None:
        """The clock of *process* shows *text*."""
        file = self._folder / process
        beside = file.with_suffix(".new")
        beside.write_text(f"{text}\n", encoding="ascii")
        beside.replace(file)


@contextmanager
def site_with_clocks(folder: Path) -> Iterator[tuple[Site, Clocks]]:
    """A site whose processes have a clock each."""
    library = _library()
    assert library is not None
    clocks = Clocks(folder / "clocks", library)
    with (
        kafka_server(folder / "kafka") as kafka,
        zookeeper_server(folder / "zookeeper") as zookeeper,
        kafka_site(folder / "site", [kafka], zookeeper, words=clocks.words) as site,
    ):
        yield site, clocks


def why_none() -> str:
    """Why this machine can have no such clocks; empty: it can."""
    if _library() is None:
        return "not installed: libfaketime (Debian: libfaketime)"
    return "" if shutil.which("cc") else "not installed: a C compiler, cc"


def faults_of_clocks(clocks: Clocks) -> list[Fault]:
    """Those of NAMES, on *clocks*."""
    return [
        Fault(name=f"clock-{how}", what=f"the clock {how}", inflict=partial(_wrong, clocks, texts))
        for how, texts in _HOW.items()
    ]


def _wrong(clocks: Clocks, texts: Sequence[str], site: Site, _: Around, __: int) -> float:
    """Intervals while the clocks are wrong; recovery is the decision of the last of them."""
    processes = site.leading().name, "executor-0"
    site.publish()
    try:
        end = time.monotonic() + _WRONG_SECONDS
        for text in cycle(texts):
            for process in processes:
                clocks.set(process, text)
            time.sleep(_EACH_SECONDS)
            if time.monotonic() > end:
                break
        at, interval = time.monotonic(), site.publish()
        site.wait_for_decision(interval)
        seconds = time.monotonic() - at
        site.come_to_rest()
    finally:
        for process in processes:
            clocks.set(process, _RIGHT)
    return seconds


def _library() -> Path | None:
    return next((path for folder in _LIBRARIES for path in sorted(Path(folder).glob("**/libfaketimeMT.so*"))), None)

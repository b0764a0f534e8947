"""Named places where a test can kill the controller or the executor, as hard as a power cut would.

``TRIMTAB_FAILPOINT=after-decide:2`` kills at the second time that place is passed.  Without the variable a
failpoint costs two looks into a dict.  ``TRIMTAB_HANG`` takes the same, and hangs there.
"""

import os
import re
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, NoReturn

from controller.adapters.process.process_tree import descendants
from controller.model.errors import SettingsError

#: In the order in which an interval passes them; then those of a command.
FAILPOINTS: Final = (
    "inside-state-commit",
    "after-decide",
    "inside-transaction",
    "before-follow",
    "after-commit",
    "before-spark-commit",
    "after-act",
    "before-answer",
)
VARIABLE: Final = "TRIMTAB_FAILPOINT"
#: The same, and the process hangs there instead.
HANG_VARIABLE: Final = "TRIMTAB_HANG"

_STATE_FILE: Final = re.compile(r"(\d+)(?:_[^.]+)?\.(?:changelog|zip)")
_WATCH_SECONDS: Final = 0.001


def parse(text: str, variable: str = VARIABLE) -> dict[str, int]:
    """How often each armed failpoint is still to be passed, the last time fatally: ``name`` or ``name:n``.

    Raises SettingsError naming what is allowed.
    """
    if not text:
        return {}
    name, colon, count = text.partition(":")
    if name not in FAILPOINTS:
        raise SettingsError(f"{variable}={text!r}: unknown failpoint; known: {', '.join(FAILPOINTS)}")
    if colon and not re.fullmatch(r"[1-9]\d*", count):
        raise SettingsError(f"{variable}={text!r}: expected a count of 1 or more after the colon")
    return {name: int(count or 1)}


@cache
def _armed(variable: str = VARIABLE) -> dict[str, int]:
    return parse(os.environ.get(variable, ""), variable)


def failpoint(name: str) -> None:
    """Pass the place *name*; kills this process, or hangs for ever, where the environment says so."""
    if _is_reached(name, _armed()):
        kill_process_tree()
    if _is_reached(name, _armed(HANG_VARIABLE)):
        while True:
            time.sleep(3600)


def _is_reached(name: str, armed: dict[str, int]) -> bool:
    if name not in armed:
        return False
    armed[name] -= 1
    return armed[name] == 0


def kill_process_tree() -> NoReturn:
    """SIGKILL every descendant, Spark's JVM first among them, then this very process.

    The JVM would notice the end of its parent by itself, but only after it had time to commit.  Needs Linux'
    /proc for the descendants.
    """
    for pid in descendants(os.getpid()):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def watch_state_commits(checkpoint: Path) -> None:
    """Arm ``inside-state-commit`` for the query at *checkpoint*, before it starts: some shards' state is written,
    others' is not.

    That happens inside Spark, so a thread looks for it from outside.  Does nothing where another failpoint or
    none is set.
    """
    if "inside-state-commit" in parse(os.environ.get(VARIABLE, "")):
        torn = torn_commits(checkpoint / "state" / "0")
        threading.Thread(target=_pass_each, args=(torn,), name="failpoint", daemon=True).start()


def _pass_each(torn: Iterator[int]) -> None:
    for _ in torn:
        failpoint("inside-state-commit")


def torn_commits(operator: Path) -> Iterator[int]:
    """Each state version from now on, once, while only some partitions (folders in *operator*) have it."""
    return _torn_above(max(newest_versions(operator).values(), default=0), operator)


def _torn_above(last: int, operator: Path) -> Iterator[int]:
    while True:
        newest = newest_versions(operator)
        version = max(newest.values(), default=0)
        if version > last and min(newest.values()) < version:
            last = version
            yield version
        time.sleep(_WATCH_SECONDS)


def newest_versions(operator: Path) -> Mapping[str, int]:
    """Partition (folder in *operator*) -> the newest version of its state, 0 where it has none."""
    newest = {}
    for partition in operator.glob("[0-9]*"):
        versions = (_STATE_FILE.fullmatch(path.name) for path in partition.rglob("*"))
        newest[partition.name] = max((int(version[1]) for version in versions if version), default=0)
    return newest

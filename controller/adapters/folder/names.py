"""The names of the files of a log in a folder.  A file with another name is skipped, with one warning.

Copies that somebody keeps beside the files ("001732678000 copy.jsonl") are not decisions, leaderships or commands.
Records of metrics and results may come from anywhere: there each ``*.jsonl`` counts, under any name that does not begin
with ``.`` or ``_``, which hides a file from Spark, and that Spark can read.
"""

import fnmatch
import logging
import os
import re
import stat
import time
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

#: Digits of T, epoch ms, in names: enough for some thousands of years.
DIGITS: Final = 15
#: Others may leave leading zeros out: so long are the ms of our time, and fewer digits may be a day or a number.
_UNPADDED: Final = 13
_INTERVAL: Final = re.compile(rf"[0-9]{{{DIGITS}}}(?![0-9])|[0-9]{{{_UNPADDED}}}(?=[-.])")
_LINES: Final = re.compile(rf"([0-9]{{{DIGITS}}})-([0-9]{{6,9}})\.jsonl")
#: Not in the names of records: how Spark sees what is no ASCII depends on the locale; it takes a name with one of the
#: others for a pattern, and fails with a colon.
_UNREADABLE: Final = re.compile(r"[^ -~]|[\\{}\[\]*?:]")
#: The longest period: no interval is further ahead of a right clock.
_LONGEST_MS: Final = 86_400_000
#: Maximum number of names whose warning is remembered: somebody may keep adding files with new names.
_once: Final = lru_cache(maxsize=10_000)
_DEAD_LETTERS: Final = re.compile(rf"[0-9]{{{DIGITS}}}-[0-9]{{1,9}}-[0-9a-f]{{16}}\.jsonl")
#: The setting that names the folder of a log.
LOG_PATH: Final = "log.folder.path"
#: Of journal, commands and ticks.
_NUMBERED: Final = re.compile(r"([0-9]{12})\.jsonl")
#: As a journal's files were named by earlier versions.
_OLD_JOURNAL: Final = re.compile(r"[0-9]{15}\.json|epoch-[0-9]{9,18}\.json")


def numbered(number: int) -> str:
    """The name of the file with this *number* in a topic that one process writes."""
    return f"{number:012d}.jsonl"


def number_in(name: str) -> int:
    """The number that ``numbered`` made *name* of; 0 of other names."""
    return int(name[:-6]) if _NUMBERED.fullmatch(name) else 0


def newest_number(folder: Path) -> int:
    """The highest number of a file in *folder*; 0 where there is none.  OSError."""
    try:
        return max(map(number_in, os.listdir(folder)), default=0)
    except FileNotFoundError:
        return 0


def old_journal_file(log_folder: Path) -> Path | None:
    """A file that an earlier version wrote to the journal of the log in *log_folder*; None where there is none."""
    folder = log_folder / "journal"
    try:
        return next((folder / name for name in os.listdir(folder) if _OLD_JOURNAL.fullmatch(name)), None)
    except (FileNotFoundError, NotADirectoryError):
        return None


def files_of_topic(topic: str, folder: Path, listed: Iterable[str]) -> list[str]:
    """Those of the names *listed* in *folder* that are files of *topic*, in order; warns of others once."""
    if topic not in ("journal", "commands", "ticks"):
        return sorted(filter(holds_records, listed))
    for name in listed:
        if name.endswith((".json", ".jsonl")) and not name.startswith(".") and not number_in(name):
            _tell(folder / name)
    return sorted(filter(number_in, listed))


def dead_letter_files(log_folder: Path) -> list[Path]:
    """The dead letters, by the batches that found them."""
    return sorted(
        path for path in _matching(log_folder / "dead_letters", "*.jsonl") if _DEAD_LETTERS.fullmatch(path.name)
    )


def record_files(folder: Path) -> list[Path]:
    """The files of metrics or results in *folder*, by name; what is no plain file the query passes over, too."""
    return sorted(path for path in _matching(folder, "*.jsonl") if holds_records(path.name) and _is_plain(path))


def holds_records(name: str) -> bool:
    """Whether a file with this *name* holds metrics or results, in their folder."""
    if not name.endswith(".jsonl") or name.startswith((".", "_")):
        return False
    if _UNREADABLE.search(name):
        _tell_unreadable(name)
        return False
    return True


def interval_and_number(path: Path) -> tuple[int, int] | None:
    """The interval that was ticked last, and a number, which name a file of metrics or results; None of other names."""
    match = _LINES.fullmatch(path.name)
    return None if match is None else (int(match[1]), int(match[2]))


def written_files(folder: Path) -> list[tuple[tuple[int, int], Path]]:
    """The files of metrics or results in *folder* that trimtab wrote, by interval and number; none ``is_ahead``."""
    named = ((interval, path) for path in _matching(folder, "*.jsonl") if (interval := interval_and_number(path)))
    return sorted(each for each in named if not is_ahead(each[1].name))


def is_ahead(name: str) -> bool:
    """Whether *name* is that of an interval of the future.  A clock that was wrong has left such a file there."""
    interval = interval_in(name)
    return interval is not None and in_future(interval)


def in_future(time_ms: int) -> bool:
    """Whether *time_ms* is further ahead of this host's clock than any correct clock can be."""
    return time_ms > time.time_ns() // 1_000_000 + _LONGEST_MS


def interval_in(name: str) -> int | None:
    """The interval that *name* begins with; None where it begins with something else."""
    match = _INTERVAL.match(name)
    return None if match is None else int(match[0])


def _matching(folder: Path, glob: str) -> list[Path]:
    """The paths in *folder* that *glob* fits; none where there is no such folder.

    OSError where it cannot be read: ``Path.glob`` would take it for an empty one.
    """
    try:
        with os.scandir(folder) as entries:
            return [folder / name for name in fnmatch.filter([each.name for each in entries], glob)]
    except (FileNotFoundError, NotADirectoryError):
        return []


@_once
def _tell(path: Path) -> None:
    """Warn once in a process that *path* is skipped."""
    log.warning("%s: not a file name that trimtab uses: skipping it; move it out of the log", path)


def is_endless(path: Path) -> bool:
    """Whether *path* is a named pipe or a device, which may never end when read. Warns once."""
    endless = path.is_fifo() or path.is_char_device()
    if endless:
        warn_no_file(path)
    return endless


def _is_plain(path: Path) -> bool:
    """Whether *path* is a regular file, or a link to one; warns once about anything else."""
    try:
        plain = stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return True  # reading it reports why it cannot be read
    if not plain:
        warn_no_file(path)
    return plain


@_once
def warn_no_file(path: Path) -> None:
    """Warn once in a process that *path* is skipped."""
    log.warning("%s: is a folder, a named pipe or a device, not a file: skipping it; move it out of the log", path)


@_once
def _tell_unreadable(name: str) -> None:
    """Warn once in a process that records in a file with this *name* are skipped."""
    log.warning("%a: Spark cannot read a file with this name: skipping it; use ASCII without * ? [ ] { } \\ :", name)

"""The names of the files of a log in a folder.  A file with another name is passed over, and told of once.

Copies that somebody keeps beside the files ("epoch-000000001 copy.json") are no decisions, leaderships or commands.
Records of metrics and results may come from anywhere: there each ``*.jsonl`` counts, under any name.
"""

import logging
import re
from functools import cache
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

#: Digits of T, epoch ms, in names: enough for some thousands of years.
DIGITS: Final = 15
_DECISION: Final = re.compile(rf"([0-9]{{{DIGITS}}})\.json")
_LEADERSHIP: Final = re.compile(r"epoch-([0-9]{9,18})\.json")
_COMMANDS: Final = re.compile(rf"([0-9]{{{DIGITS}}})\.jsonl")
#: Others may leave leading zeros out: so long are the ms of our time, and fewer digits may be a day or a number.
_UNPADDED: Final = 13
_INTERVAL: Final = re.compile(rf"[0-9]{{{DIGITS}}}(?![0-9])|[0-9]{{{_UNPADDED}}}(?=[-.])")
_LINES: Final = re.compile(rf"([0-9]{{{DIGITS}}})-([0-9]{{6,9}})\.jsonl")


def decision_files(log_folder: Path) -> list[Path]:
    """The decisions in the journal of the log in *log_folder*, oldest first."""
    return _named(log_folder / "journal", "[0-9]*.json", _DECISION)


def leadership_files(log_folder: Path) -> list[Path]:
    """The leaderships in its journal, by number."""
    return sorted(_named(log_folder / "journal", "epoch-*.json", _LEADERSHIP), key=number_of)


def command_files(log_folder: Path) -> list[Path]:
    """The commands, oldest first."""
    return _named(log_folder / "commands", "*.jsonl", _COMMANDS)


def number_of(path: Path) -> int:
    """The interval, or the number of the leadership, that *path* is named after."""
    return int(path.stem.removeprefix("epoch-"))


def interval_and_number(path: Path) -> tuple[int, int] | None:
    """The interval that was ticked last, and a number, which name a file of metrics or results; None of other names."""
    match = _LINES.fullmatch(path.name)
    return None if match is None else (int(match[1]), int(match[2]))


def interval_in(path: Path) -> int | None:
    """The interval that the name of *path* begins with; None where it begins with something else."""
    match = _INTERVAL.match(path.name)
    return None if match is None else int(match[0])


def _named(folder: Path, glob: str, wanted: re.Pattern[str]) -> list[Path]:
    paths = sorted(path for path in folder.glob(glob) if not path.name.startswith("."))
    for path in paths:
        if not wanted.fullmatch(path.name):
            _tell(path)
    return [path for path in paths if wanted.fullmatch(path.name)]


@cache
def _tell(path: Path) -> None:
    """Tell once in a process that *path* is passed over."""
    log.warning("%s: no file of trimtab has such a name: it is passed over; move it out of the log", path)

"""A log in a folder whose journal and commands have the interval as name: a file for each, and for each leadership.

Journal and commands get numbers as names, and entries headers.  Metrics, results and dead letters have not changed.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

from controller.adapters.folder.names import numbered
from controller.log.files.log import FolderLog
from controller.log.files.record_file import record_file
from controller.log.journal_reading import CLUSTER, EPOCH, ISSUED_AT, WHOLE
from controller.log.port import INTERVAL
from controller.wire.commands import EpochEvent, epoch_event, parse_event

_DECISION: Final = re.compile(r"([0-9]{15})\.json")
_LEADERSHIP: Final = re.compile(r"epoch-([0-9]{9,18})\.json")
_COMMANDS: Final = re.compile(r"([0-9]{15})\.jsonl")
_UNCHANGED: Final = ("metrics", "results", "dead_letters")


class _Issued(NamedTuple):
    """Under which leadership the commands of an interval were issued, and when, epoch ms."""

    epoch: int
    at_ms: int


def convert_folder(old: Path, new: Path) -> None:
    """Copy the log in the folder *old* to *new*.  ValueError where it is not of the older form."""
    decisions, leaderships = _named(old / "journal", _DECISION), _named(old / "journal", _LEADERSHIP)
    newest = next(iter([*reversed(decisions.values()), *reversed(leaderships.values())]), None)
    if newest is None:
        raise ValueError(f"{old}: no log of the older form: its journal has no files <T>.json")
    cluster: str = json.loads(newest.read_bytes())["cluster"]
    for topic in _UNCHANGED:
        if (old / topic).exists():
            shutil.copytree(old / topic, new / topic)
    commands = _named(old / "commands", _COMMANDS)
    issued = {interval: _issued(path) for interval, path in commands.items()}
    with closing(FolderLog(new, cluster=cluster)) as log:
        log.partitions("journal", "commands")
        for number, (path, headers) in enumerate(_entries(decisions, leaderships, issued), start=1):
            content = record_file({**headers, CLUSTER: cluster.encode()}, path.read_bytes())
            _write(new / "journal" / numbered(number), content, path)
        for number, path in enumerate(commands.values(), start=1):
            _write(new / "commands" / numbered(number), path.read_bytes(), path)
        if leaderships:
            # Executors looked for leaderships in the journal.
            event = epoch_event(cluster, max(leaderships), newest.stat().st_mtime_ns // 1_000_000)
            last = leaderships[max(leaderships)]
            _write(new / "commands" / numbered(len(commands) + 1), event + b"\n", last)
        _copy_position(old, log, [*commands.values()])


def _named(folder: Path, pattern: re.Pattern[str]) -> dict[int, Path]:
    """Number in the name -> file, of those whose names *pattern* fits; in order."""
    found = ((match, path) for path in folder.glob("*") if (match := pattern.fullmatch(path.name)))
    return dict(sorted((int(match[1]), path) for match, path in found))


def _issued(commands: Path) -> _Issued:
    first = parse_event(commands.read_bytes().splitlines()[0])
    assert isinstance(first, EpochEvent)
    return _Issued(first.epoch, first.time_ms)


def _entries(
    decisions: Mapping[int, Path], leaderships: Mapping[int, Path], issued: Mapping[int, _Issued]
) -> Iterator[tuple[Path, dict[str, bytes]]]:
    """The files of the journal, each with its headers; a leadership before the first entry with commands of its own."""
    waiting, epoch = [*leaderships], 0
    for interval, path in decisions.items():
        epoch, at_ms = issued.get(interval, _Issued(epoch, path.stat().st_mtime_ns // 1_000_000))
        while waiting and waiting[0] <= epoch:
            begun = waiting.pop(0)
            yield leaderships[begun], {EPOCH: b"%d" % begun}
        entry: dict[str, Any] = json.loads(path.read_bytes())
        whole = {WHOLE: b"1"} if entry["type"] == "decision" else {}
        yield path, {EPOCH: b"%d" % epoch, INTERVAL: b"%d" % interval, ISSUED_AT: b"%d" % at_ms, **whole}
    for begun in waiting:
        yield leaderships[begun], {EPOCH: b"%d" % begun}


def _write(path: Path, content: bytes, old: Path) -> None:
    """Write a file that is as old as *old*."""
    path.write_bytes(content)
    written = old.stat().st_mtime_ns
    os.utime(path, ns=(written, written))


def _copy_position(old: Path, log: FolderLog, commands: Sequence[Path]) -> None:
    """Let executors go on where those of *old* have stopped; *commands*: its files."""
    position = old / "executor" / "position.json"
    if not position.exists():
        return
    known: dict[str, Any] = json.loads(position.read_bytes())
    state = json.dumps({"epoch": known["epoch"], "begun": known["begun"]}).encode()
    lines = [len(path.read_bytes().splitlines()) for path in commands if path.name < known["file"]]
    with closing(log.claims("")) as claims:
        taken = claims.poll(sum(lines) + known["line"], 0.0)
        claims.claim(0).finish(state, (), taken[-1].position if taken else -1)

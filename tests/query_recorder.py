"""A controller that writes down what its query does, batch by batch, and dies where it is told to.

``python -m tests.query_recorder CONF NOTES DIES`` runs as ``trimtab run`` does, until the file NOTES.stop exists.  DIES
is a place and how often it is passed, as ``read:2``, or "" for nowhere.  Places: a batch is "begun" once it has
offsets, "read" once its state is stored, "decided" once its intervals are, and then "committed".
"""

import hashlib
import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from controller.adapters.process.failpoints import kill_process_tree
from controller.settings.trimtab_toml import read_settings
from streaming.assembly import Assembly
from streaming.schemas import SHARD_OUTPUT
from streaming.supervisor import balance

_LOOK_SECONDS: Final = 0.001


class Notes:
    """The file of a life."""

    def __init__(self, path: Path, dies: str) -> None:
        self._file = path.open("a", encoding="utf-8")
        place, _, times = dies.partition(":")
        self._left = {place: int(times or 1)}

    def write(self, place: str, batch: int, **more: object) -> None:
        """One line, and the end of the process where this is its place to die."""
        self._file.write(json.dumps({"place": place, "batch": batch, **more}) + "\n")
        self._file.flush()
        self._left[place] = self._left.get(place, 0) - 1
        if self._left[place] == 0:
            kill_process_tree()


class RecordedSink:
    """What Spark calls with each batch: the product's own sink, and notes around it."""

    def __init__(self, sink: Any, notes: Notes) -> None:
        self._sink, self._notes = sink, notes

    def __call__(self, batch: Any, number: int) -> None:
        self._notes.write("begun", number)
        table = batch.toArrow()
        self._notes.write("read", number, **content_of(table.to_pylist()))
        self._sink(_Read(table), number)
        self._notes.write("decided", number)


class _Read:
    """A batch whose one action has run."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def toArrow(self) -> pa.Table:  # noqa: N802
        """See DataFrame."""
        return self._table


def content_of(rows: list[dict[str, Any]]) -> dict[str, object]:
    """Rows of SHARD_OUTPUT as notes have them: a digest of each snapshot, and where refused records lie."""
    snapshots = sorted(
        (row["interval"], hashlib.sha256(bytes(row["snapshot"])).hexdigest()[:16])
        for row in rows
        if row.get("snapshot") is not None
    )
    places = SHARD_OUTPUT.names[4:]
    refused = sorted([row[name] for name in places] for row in rows if row.get("source") is not None)
    return {"snapshots": [[*each] for each in snapshots], "refused": refused}


class RecordedAssembly(Assembly):
    """The parts of a controller, of which one is recorded."""

    notes: Notes

    def decision_query(self, spark: Any, sink: Any, max_offsets: int | None = None) -> Any:
        """See Assembly."""
        return super().decision_query(spark, RecordedSink(sink, self.notes), max_offsets)


def _watch_commits(folder: Path, notes: Notes) -> None:
    known = set(_numbers(folder))
    while True:
        for number in sorted(set(_numbers(folder)) - known):
            known.add(number)
            notes.write("committed", number)
        time.sleep(_LOOK_SECONDS)


def _numbers(folder: Path) -> Iterator[int]:
    return (int(path.name) for path in folder.glob("[0-9]*") if path.name.isdecimal())


def main(conf: str, path: str, dies: str) -> None:
    """See the module docstring."""
    assembly, end = RecordedAssembly(read_settings(Path(conf))), Path(f"{path}.stop")
    assembly.notes = Notes(Path(path), dies)
    commits = Path(assembly.checkpoint) / "commits"
    threading.Thread(target=_watch_commits, args=(commits, assembly.notes), daemon=True).start()
    balance(assembly, end.exists)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""All verdicts of the last intervals: what was examined, and why it was or was not acted on.

The journal has the decisions, for longer. Verdicts answer the question "why not?".
"""

import logging
import os
from io import BytesIO
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from controller.adapters.disk import files
from controller.model.decision import Decision, Reason, Verdict

log = logging.getLogger(__name__)

_COLUMNS: Final[dict[str, pa.DataType]] = {
    "subject": pa.string(),
    "reason": pa.string(),
    "observed": pa.float64(),
    "limit": pa.float64(),
    "unit": pa.string(),
    "by": pa.string(),
    "detail": pa.string(),
}


class VerdictStore:
    """One Parquet file for each interval in *folder*; the newest *keep* are retained, as long as they have at most
    *keep_bytes* together.

    The newest is the one written last, even if a clock that was ahead has left files with later times.
    """

    def __init__(self, folder: Path, *, keep: int = 60, keep_bytes: int = 256 << 20) -> None:
        self._folder, self._keep, self._keep_bytes = folder, keep, keep_bytes

    def write(self, decision: Decision) -> None:
        """Store the verdicts of *decision*; idempotent. OSError if there is no room."""
        self._folder.mkdir(parents=True, exist_ok=True)
        columns = {name: [getattr(verdict, name) for verdict in decision.verdicts] for name in _COLUMNS}
        content = BytesIO()
        pq.write_table(pa.Table.from_pydict(columns, schema=pa.schema(_COLUMNS)), content)
        files.replace(self._path(decision.interval), content.getvalue())
        self._prune(decision.interval)

    def intervals(self) -> list[int]:
        """The stored intervals, oldest first; none, with a warning in the log, if this user may not read the folder."""
        try:
            return [int(path.stem) for path in self._paths()]
        except PermissionError as error:
            log.warning("%s cannot be read, so no verdicts are shown: %s", self._folder, error.strerror)
            return []

    def read(self, interval: int) -> tuple[Verdict, ...]:
        """The verdicts of *interval*, in the order they were given; FileNotFoundError if they no longer exist.

        So it is for a file that is damaged, or from a later release with new reasons; the log has a warning then.
        """
        path = self._path(interval)
        try:
            rows = pq.read_table(path).to_pylist()
            return tuple(Verdict(**row | {"reason": Reason(row["reason"])}) for row in rows)
        except FileNotFoundError:
            raise
        except (OSError, ValueError, TypeError, KeyError, pa.ArrowException) as error:
            log.warning("%s cannot be read, so verdicts of this interval are not shown: %s", path, error)
            raise FileNotFoundError(str(path)) from error

    def _prune(self, last: int) -> None:
        remaining = self._keep_bytes
        # Files later than the *last* interval were written while a clock was ahead: they are deleted first.
        paths = sorted(self._paths(), key=lambda path: (int(path.stem) <= last, path))
        for age, path in enumerate(reversed(paths)):
            remaining -= path.stat().st_size
            # Those of the last interval are retained, whatever their size.
            if age and (age >= self._keep or remaining < 0):
                path.unlink(missing_ok=True)

    def _path(self, interval: int) -> Path:
        return self._folder / f"{interval:015d}.parquet"

    def _paths(self) -> list[Path]:
        try:
            with os.scandir(self._folder) as entries:
                paths = [self._folder / each.name for each in entries]
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(path for path in paths if path.suffix == ".parquet" and path.stem.isdecimal())

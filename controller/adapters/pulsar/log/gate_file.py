"""A gate between two processes of one machine, as the length of a file.

The controller opens it; the process in which Spark plans micro-batches looks whether it is open.
"""

from pathlib import Path


class GateFile:
    """The gate at *path*; see streaming.batches.gate."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def open(self) -> None:
        """Let the query read what lies in the log now."""
        with self._path.open("ab") as file:
            file.write(b"o")

    def times_opened(self) -> int | None:
        """How often it has been opened; None where there is no such file, and so no gate."""
        try:
            return self._path.stat().st_size
        except FileNotFoundError:
            return None

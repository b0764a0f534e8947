"""The answers of the commands that make and replay recordings."""

from controller.wire.answers.base import JsonAnswer


class RecordAnswer(JsonAnswer):
    """``trimtab record --json``."""

    folder: str
    """The recording."""
    cluster: str
    records: dict[str, int]
    """Topic (metrics, results, commands, journal) -> how many of its records were copied."""
    first_ms: int
    """Time of the earliest record, epoch ms."""
    last_ms: int
    """Time of the latest record, epoch ms."""
    files: int
    bytes: int
    """Of all files."""
    unpacked_bytes: int
    """Of the records in them."""

"""The answers of the commands that make and replay recordings."""

from typing import Final

from controller.wire.answers.base import JsonAnswer


class KnownBeforeAnswer(JsonAnswer):
    """What a recording holds of the time before it."""

    intervals: int
    """How many intervals were read for it."""
    first: int
    """T of the first of them, epoch ms."""
    last: int
    """T of the last of them, epoch ms."""
    undescribed: int
    """Namespaces whose bundles were listed, but whose state was not in the log."""


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
    known_before: KnownBeforeAnswer | None
    """With --from: what was known then; null where it begins with the log, or nothing was kept."""


class EntryDifferenceAnswer(JsonAnswer):
    """The first entry in which a replay differs from the live run."""

    interval: int
    """T, epoch ms."""
    what: str
    """Which field of the entry, and what both runs have there."""


class ReplayedAnswer(JsonAnswer):
    """``trimtab replay --json``."""

    cluster: str
    decided: int
    """Intervals that were decided again."""
    compared: int
    """Those of them that the live run's journal has, and entries of it that were not decided again."""
    equal: int
    """Entries that are equal, byte for byte."""
    commands: int
    """Commands in all decisions."""
    refused: int | None
    """Records that could not be used; null on Spark, which does not count them."""
    last: int | None
    """The last interval, epoch ms."""
    first_difference: EntryDifferenceAnswer | None
    notes: list[str]
    """What should be known about the comparison."""


#: Name of the schema in docs/schemas -> answer.
ANSWERS: Final[dict[str, type[JsonAnswer]]] = {
    "answer.record": RecordAnswer,
    "answer.replay": ReplayedAnswer,
}

"""How far a query has come in a log in Pulsar, as Spark's checkpoint keeps it.

``{"version": 1, "time": T, "topics": {full name: {partition: [ledger, entry, batch index]}}}``: the last entry that is
read of each partition.  The batch index is -1: entries are read whole.  T, epoch ms, is when that end was looked up, by
the clock of a broker: no record that lies before it can have been written later.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from controller.adapters.pulsar.log.positions import Entry
from controller.adapters.pulsar.log.ranges import Place
from controller.model.errors import StateError

#: Of what is written here.
VERSION: Final = 1
_WHOLE_ENTRY: Final = -1
_MOST_PARTITIONS: Final = 100_000
_TRIPLE: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOffset:
    """What is read of each partition, and when that was looked up, epoch ms."""

    time_ms: int
    read: Mapping[Place, Entry]


def to_json(offset: LogOffset) -> dict[str, Any]:
    """*offset* as Spark keeps it."""
    topics: dict[str, dict[str, list[int]]] = defaultdict(dict)
    for (topic, partition), (ledger, entry) in sorted(offset.read.items()):
        topics[topic][str(partition)] = [ledger, entry, _WHOLE_ENTRY]
    return {"version": VERSION, "time": offset.time_ms, "topics": dict(topics)}


def from_json(value: object) -> LogOffset:
    """What ``to_json`` made.  StateError for a version that this trimtab does not know, and for anything else."""
    if not isinstance(value, dict) or "version" not in value:
        raise StateError(f"the checkpoint has no offsets of a log in Pulsar: {value!s:.200}")
    if value["version"] != VERSION:
        raise StateError(
            f"the checkpoint has offsets of a log in Pulsar of version {value['version']!s:.20}; this trimtab reads"
            f" version {VERSION}: run the trimtab that wrote the checkpoint, or start with a new checkpoint"
        )
    try:
        read = {
            (topic, int(partition)): _entry(place)
            for topic, partitions in value["topics"].items()
            for partition, place in partitions.items()
        }
        if len(read) > _MOST_PARTITIONS:
            raise ValueError(f"{len(read)} partitions, allowed: {_MOST_PARTITIONS}")
        return LogOffset(time_ms=_whole(value["time"]), read=read)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StateError(f"the checkpoint's offsets of a log in Pulsar are damaged: {error!s:.200}") from error


def _entry(place: Any) -> Entry:
    if not isinstance(place, list) or len(place) != _TRIPLE:
        raise ValueError(f"{place!s:.100} is not [ledger, entry, batch index]")
    ledger, entry, batch = map(_whole, place)
    if ledger < -1 or entry < -1 or batch != _WHOLE_ENTRY:
        raise ValueError(f"{place!s:.100} is not the position of a whole entry")
    return Entry(ledger, entry)


def _whole(number: Any) -> int:
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(f"{number!s:.100} is not a whole number")
    return number

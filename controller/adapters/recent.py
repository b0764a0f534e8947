"""The end of a log, newest first: for people who ask what happened lately, not for decisions."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple

from controller.adapters.folder.journal import newest_decision
from controller.adapters.kafka.inspect import newest_first
from controller.adapters.kafka.journal import journal_head
from controller.model.decision import Decision
from controller.model.errors import JournalError, WireError
from controller.model.journal import JournalEntry
from controller.settings.log import KafkaLogSettings, LogInKafka
from controller.settings.trimtab_toml import Settings
from controller.wire.journal import DecisionEntry, DeltaEntry, to_decision
from controller.wire.journal_records import JournalRecord, PartEntry, PartJoiner, parse_record
from controller.wire.metrics import Tick
from controller.wire.results import Result, decode_result

#: Offsets that leaderships may take among the newest decisions.
_LEADERSHIPS: Final = 100
#: In a large cluster an entry of the journal has a megabyte.
_ENTRIES_AT_ONCE: Final = 32
#: In every part of an entry that is too long for one record.
_PART: Final = b'"type":"part"'


class JournalTail(NamedTuple):
    """The newest decisions, newest first, and the newest leadership's number, 0 before the first."""

    decisions: tuple[Decision, ...]
    epoch: int


def log_place(settings: Settings) -> Path | KafkaLogSettings:
    """Where the log lies that the settings name."""
    log = settings.log
    if isinstance(log, LogInKafka):
        return log.kafka
    return Path(log.folder.path)


def backwards(
    place: Path | KafkaLogSettings, topic: Literal["metrics", "results"], wanted: tuple[bytes, ...]
) -> Iterator[bytes]:
    """The records of *topic* that have one of the texts *wanted* in them, the newest first."""

    def keep(value: bytes) -> bool:
        return any(text in value for text in wanted)

    if isinstance(place, Path):
        for path in sorted((place / topic).glob("*.jsonl"), reverse=True):
            yield from filter(keep, reversed(path.read_bytes().splitlines()))
    else:
        name = place.metrics_topic if topic == "metrics" else place.results_topic
        for record in newest_first(place.bootstrap, name, client=place.client, keep=keep):
            yield record.value


def last_tick(settings: Settings) -> int | None:
    """The newest interval that was ticked, epoch ms.  TrimtabError where the log cannot be read."""
    # Results are few and small, and every partition of both topics is ticked.
    for record in _results(settings, (b'"tick"',)):
        if isinstance(record, Tick):
            return record.interval
    return None


def recent_results(settings: Settings, since: int) -> Mapping[str, Result]:
    """Command id -> what became of it, of the results that came since the interval *since*, epoch ms."""
    found: dict[str, Result] = {}
    for record in _results(settings, (b'"tick"', b'"result"')):
        if isinstance(record, Result):
            found.setdefault(record.id, record)
        elif record.interval < since:
            break
    return found


def last_entry(settings: Settings) -> JournalEntry | None:
    """The newest decision with the memory behind it; None before the first.  JournalError where it cannot be read."""
    place = log_place(settings)
    if isinstance(place, Path):
        newest = newest_decision(place)
        return None if newest is None else newest.entry
    return journal_head(place, cluster=settings.cluster.name).last


def journal_tail(settings: Settings, most: int, about: str = "") -> JournalTail:
    """Of the newest decisions, *most* of them, those with the text *about* in them; a few older ones may be there, too.

    JournalError where an entry cannot be read.
    """
    place, cluster, text = log_place(settings), settings.cluster.name, about.encode()
    if isinstance(place, Path):
        epochs = (int(path.stem.removeprefix("epoch-")) for path in (place / "journal").glob("epoch-*.json"))
        return JournalTail(tuple(_newest_files(place, most, text)), max(epochs, default=0))
    decisions: list[Decision] = []
    epoch = 0
    # An entry takes two offsets, the second of which ends its transaction; leaderships lie in between.
    reach = 2 * most + _LEADERSHIPS
    records = newest_first(
        place.bootstrap,
        place.journal_topic,
        client=place.client,
        keep=lambda value: text in value or _PART in value,
        window=2 * min(most, _ENTRIES_AT_ONCE),
        reach=reach,
    )
    joiner = PartJoiner()
    for raw in records:
        record = _record(raw.value, raw.offset)
        if record.cluster != cluster:
            continue
        epoch = epoch or int(raw.headers.get("epoch", b"0"))
        if isinstance(record, PartEntry):
            joined = joiner.joined_backwards(record)
            record = record if joined is None else _record(joined, raw.offset)
        if isinstance(record, DecisionEntry | DeltaEntry):
            decisions.append(to_decision(record))
            if len(decisions) == most:
                break
    return JournalTail(tuple(decisions), epoch)


def _newest_files(folder: Path, most: int, text: bytes) -> Iterator[Decision]:
    for path in sorted((folder / "journal").glob("[0-9]*.json"), reverse=True)[:most]:
        value = path.read_bytes()
        record = _record(value, path) if text in value else None
        if isinstance(record, DecisionEntry | DeltaEntry):
            yield to_decision(record)


def _record(value: bytes, where: object) -> JournalRecord:
    try:
        return parse_record(value)
    except WireError as error:
        raise JournalError(f"journal, {where}: {error}") from error


def _results(settings: Settings, wanted: tuple[bytes, ...]) -> Iterator[Result | Tick]:
    for value in backwards(log_place(settings), "results", wanted):
        try:
            record = decode_result(value, cluster=settings.cluster.name, period_ms=1)
        except WireError:
            continue
        if record is not None:
            yield record

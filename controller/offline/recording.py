"""Turns recordings, which are folders of records, into logs that can be replayed."""

import json
import os
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Final, NamedTuple

from controller.adapters.recordings.reading import Recording, is_recording
from controller.adapters.recordings.record_log import RecordLog
from controller.aggregate.ticks.prepass import Header, place_ticks
from controller.log.files.log import FolderLog
from controller.log.ticks import MetricsLog
from controller.model.errors import SettingsError, TrimtabError, WireError
from controller.model.pulsar_version import PulsarVersion
from controller.model.some_of import some_of
from controller.settings.small_file import open_to_read
from controller.wire.base import MAX_RECORD_BYTES
from controller.wire.metrics import BrokerLoadRecord, TickRecord, decode_metric
from controller.wire.readable import utc
from controller.wire.sweep import SweepHeader

#: Bytes of a file at most, and of one that is a single document: that of a broker has some MB.
_LARGEST: Final = 1 << 30
_LARGEST_DOCUMENT: Final = 64 << 20
#: Maximum number of unusable records that are skipped: more tiny ones would take minutes, and are not a log.
MAX_REFUSED: Final = 1_000_000
#: Maximum number of clusters that are named.
_MAX_LINES: Final = 10


class Recorded(NamedTuple):
    """A record on one line, and where it was found: line 1 is the first."""

    path: Path
    line: int
    value: bytes


class RefusedRecords:
    """The records that cannot be used: the first *max_lines* of them with why, and how many there are."""

    def __init__(self, max_lines: int) -> None:
        self._max_lines = max_lines
        self.lines: list[str] = []
        self.number = 0

    def add(self, record: Recorded, why: WireError) -> None:
        """Count *record*.  SettingsError where there are more than MAX_REFUSED."""
        self.number += 1
        if len(self.lines) < self._max_lines:
            self.lines.append(f"{record.path}, line {record.line}: {why}")
        if self.number > MAX_REFUSED:
            raise SettingsError(
                f"more than {MAX_REFUSED:,} records cannot be used, the first is {self.lines[0]}: give load reports,"
                " or a recording of sweeps, as JSON or JSON lines; leave out files that hold none"
            )


def write_ticks(source: Path, target: Path, *, cluster: str, period_ms: int) -> int:
    """Copy the recording in *source* to a folder log in *target*, with ticks; returns how many.

    *source* holds files of JSON lines, read in the order of their names, and ``.json`` files of one document,
    such as load reports saved from a broker.  Records that cannot be used are copied too: the replay puts
    them among its dead letters.  Results are not copied, for a replay issues commands of its own.

    Raises TrimtabError, and writes nothing, where *target* holds a log, and where *source* has ticks (naming file
    and line); SettingsError where it has nothing to tick.
    """
    if any((target / "metrics").glob("*.jsonl")):
        raise TrimtabError(f"{target} holds a log already; ticks go into a new one")
    # Listed once: the target may lie in the source.
    paths = recorded_files(source)
    records = RecordedFiles(paths)
    refused = RefusedRecords(max_lines=1)
    headers = [_header(record, cluster, period_ms, refused) for record in records]
    ticks = place_ticks(headers, period_ms=period_ms)
    if not ticks:
        raise SettingsError(nothing_of(str(source), cluster, records))

    target.mkdir(parents=True, exist_ok=True)
    log = MetricsLog(FolderLog(target, cluster=cluster), cluster=cluster)
    values = (record.value for record in records)
    copied = 0
    for tick in ticks:
        log.publish(("", next(values)) for _ in range(copied, tick.after + 1))
        log.tick(tick.interval, dict(tick.roster))
        copied = max(copied, tick.after + 1)
    log.publish(("", value) for value in values)
    return len(ticks)


def recorded_files(source: Path) -> list[Path]:
    """The files of the recording, or of the log, in the folder *source*, by name; or *source* itself, a file.

    Raises SettingsError where no file of the folder has a name that counts.
    """
    if source.is_file() or source.is_fifo():  # /dev/stdin, or what a shell makes of <(command)
        return [source]
    if is_recording(source):
        raise SettingsError(
            f"{source} is a recording of `trimtab record`: it has ticks, and all brokers; --load takes it alone, and"
            " `replay`, `what-if` and `audit` take it"
        )
    folder = source / "metrics" if (source / "metrics").is_dir() else source
    paths = sorted(path for path in folder.glob("*.json*") if path.is_file())  # no pipe, which would be waited for
    if not paths:
        raise SettingsError(
            f"{folder} holds no file whose name counts: *.json, a load report each, or *.jsonl, a record on each line"
        )
    return paths


class RecordedFiles:
    """The records in files, one by one, as often as they are asked for: a list of tiny ones takes many times as much.

    What comes through a pipe is kept, since it comes once.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = [*paths]
        self._piped = {path: _content(path) for path in self._paths if path.is_fifo()}

    def __iter__(self) -> Iterator[Recorded]:
        for path in self._paths:
            yield from _lines(path, self._piped.get(path))


def lines_of(path: Path) -> Iterator[Recorded]:
    """The records in the file *path*: the whole of a document, or the lines of any other file."""
    return _lines(path, None)


def _lines(path: Path, content: bytes | None) -> Iterator[Recorded]:
    content = _content(path) if content is None else content
    is_document = path.suffix == ".json"
    if is_document and len(content) > _LARGEST_DOCUMENT:
        raise SettingsError(f"{path}: has {len(content)} bytes, allowed for one load report: {_LARGEST_DOCUMENT}")
    if is_document or (path.is_fifo() and len(content) <= _LARGEST_DOCUMENT and _is_document(content)):
        yield Recorded(path, 1, _on_one_line(content))
        return
    lines = (line for piece in BytesIO(content) for line in piece.splitlines())
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield Recorded(path, number, line)


def _content(path: Path) -> bytes:
    try:
        with open_to_read(path) as file:
            size = os.fstat(file.fileno()).st_size  # 0 of a pipe
            content = b"" if size > _LARGEST else file.read(_LARGEST + 1 if path.is_fifo() else size)
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from error
    if max(size, len(content)) > _LARGEST:
        raise SettingsError(f"{path}: has more than {_LARGEST} bytes: give it in several files")
    return content


def nothing_of(where: str, cluster: str, records: Iterable[Recorded]) -> str:
    """What to say where the *records* in *where* have no load of *cluster*; names the clusters that they have."""
    others = {name for record in records if (name := cluster_of(record)) is not None and name != cluster}
    hint = f"; it holds records of {_listed(others)}: name one with --cluster" if others else ""
    return f"{where} holds neither sweeps nor load reports of cluster {cluster!r}{hint}"


def refuse_other_clusters(log: RecordLog, cluster: str) -> None:
    """Raise SettingsError where *log* has records of other clusters, and none of *cluster*; it names those."""
    if isinstance(log, Recording) and log.manifest.cluster == cluster:
        return
    others = set[str]()
    for number, stored in enumerate(log.read("metrics", log.extents("metrics"))):
        name = cluster_of(Recorded(Path(log.where), number, stored.value))
        if name == cluster:
            return
        others |= {name} if name is not None else set()
    if others:
        raise SettingsError(
            f"{log.where} holds no record of cluster {cluster!r}; it holds records of {_listed(others)}: give the"
            " settings of its controller with --conf"
        )


def _listed(clusters: Iterable[str]) -> str:
    """Some of *clusters*: anybody who writes records can name any number of them."""
    return some_of(sorted(clusters), _MAX_LINES, format_item=repr)


def cluster_of(record: Recorded) -> str | None:
    """The cluster that a *record* names, if it does; one that is too large to be used names none."""
    if len(record.value) > MAX_RECORD_BYTES:
        return None
    try:
        fields = json.loads(record.value)
    except (ValueError, RecursionError):
        return None
    name = fields.get("cluster") if isinstance(fields, dict) else None
    return name if isinstance(name, str) else None


def version_in(report: bytes) -> str:
    """The version of Pulsar that a broker's load *report*, which could be decoded, says; "" for none."""
    fields = json.loads(report)
    broker_version = fields.get("report", fields).get("brokerVersionString")
    return broker_version if isinstance(broker_version, str) and PulsarVersion.parse(broker_version) is not None else ""


def _is_large(document: bytes) -> bool:
    """Whether *document* is no record even without blanks: of 64 MB of tiny values a parser makes 2 GB."""
    return len(document) > MAX_RECORD_BYTES and len(document.translate(None, b" \t\r\n")) > MAX_RECORD_BYTES


def _is_document(content: bytes) -> bool:
    if _is_large(content):
        return False
    try:
        json.loads(content)
    except (ValueError, RecursionError):
        return False
    return True


def _on_one_line(document: bytes) -> bytes:
    # Whoever reads the record says what is wrong with it.
    if _is_large(document):
        return document.translate(None, b"\r\n")
    try:
        return json.dumps(json.loads(document), separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return b" ".join(document.split())


def header_of(record: object) -> Header | None:
    """What the ticks depend on of a decoded *record*; None of most kinds."""
    if isinstance(record, SweepHeader):
        return Header(
            broker=record.broker,
            time_ms=record.interval,
            sweep_id=record.sweep_id,
            chunk=record.chunk,
            chunks=record.chunks,
        )
    if isinstance(record, BrokerLoadRecord):
        return Header(broker=record.broker_name, time_ms=record.report.last_update)
    return None


def _header(record: Recorded, cluster: str, period_ms: int, refused: RefusedRecords) -> Header | None:
    try:
        decoded = decode_metric(record.value, cluster=cluster, period_ms=period_ms)
    except WireError as error:
        refused.add(record, error)
        return None
    if isinstance(decoded, TickRecord):
        raise TrimtabError(
            f"{record.path}, line {record.line}: the recording has ticks already, the first for {utc(decoded.interval)}"
        )
    return header_of(decoded)

"""Recordings: folders of records that were kept, made into a log that can be replayed."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from controller.adapters.folder import FolderMetricsLog
from controller.aggregate.prepass import Header, place_ticks
from controller.model.errors import TrimtabError, WireError
from controller.wire.metrics import BrokerLoad, Tick, decode_metric
from controller.wire.sweep import SweepHeader


class _Recorded(NamedTuple):
    """A record on one line, and where it was found: line 1 is the first."""

    path: Path
    line: int
    value: bytes


def write_ticks(source: Path, target: Path, *, cluster: str, period_ms: int) -> int:
    """Copy the recording in *source* to a folder log in *target*, with ticks; returns how many.

    *source* holds files of JSON lines, read in the order of their names, and ``.json`` files of one document,
    such as load reports saved from a broker.  Records that cannot be used are copied too: the replay puts
    them among its dead letters.  Results are not copied, for a replay issues commands of its own.

    Raises TrimtabError, and writes nothing, where *target* holds a log, and where *source* has ticks (naming file
    and line) or nothing to tick.
    """
    if any((target / "metrics").glob("*.jsonl")):
        raise TrimtabError(f"{target} holds a log already; ticks go into a new one")
    # Listed once: the target may come to lie in the source.
    paths = _files(source)
    headers = [_header(record, cluster, period_ms) for record in _records(paths)]
    ticks = place_ticks(headers, period_ms=period_ms)
    if not ticks:
        raise TrimtabError(f"{source} holds neither sweeps nor load reports of cluster {cluster!r}")

    log = FolderMetricsLog(target, cluster=cluster)
    values = (record.value for record in _records(paths))
    copied = 0
    for tick in ticks:
        log.publish(("", next(values)) for _ in range(copied, tick.after + 1))
        log.tick(tick.interval, dict(tick.roster))
        copied = max(copied, tick.after + 1)
    log.publish(("", value) for value in values)
    return len(ticks)


def _files(source: Path) -> list[Path]:
    folder = source / "metrics" if (source / "metrics").is_dir() else source
    return sorted(folder.glob("*.json*"))


def _records(paths: Iterable[Path]) -> Iterator[_Recorded]:
    for path in paths:
        content = path.read_bytes()
        if path.suffix == ".json":
            yield _Recorded(path, 1, _on_one_line(content))
        else:
            for number, line in enumerate(content.splitlines(), start=1):
                if line.strip():
                    yield _Recorded(path, number, line)


def _on_one_line(document: bytes) -> bytes:
    try:
        return json.dumps(json.loads(document), separators=(",", ":")).encode()
    except ValueError:
        return b" ".join(document.split())


def _header(record: _Recorded, cluster: str, period_ms: int) -> Header | None:
    try:
        decoded = decode_metric(record.value, cluster=cluster, period_ms=period_ms)
    except WireError:
        return None
    if isinstance(decoded, Tick):
        raise TrimtabError(
            f"{record.path}, line {record.line}: the recording has ticks already, the first for {decoded.interval}"
        )
    if isinstance(decoded, SweepHeader):
        return Header(
            broker=decoded.broker,
            time_ms=decoded.interval,
            sweep_id=decoded.sweep_id,
            chunk=decoded.chunk,
            chunks=decoded.chunks,
        )
    if isinstance(decoded, BrokerLoad):
        return Header(broker=decoded.broker_name, time_ms=decoded.report.last_update)
    return None

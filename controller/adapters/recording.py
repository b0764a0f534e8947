"""Recordings: folders of records that were kept, made into a log that can be replayed."""

import json
from collections.abc import Iterator
from pathlib import Path

from controller.adapters.folder import FolderMetricsLog
from controller.aggregate.prepass import Header, place_ticks
from controller.model.errors import TrimtabError, WireError
from controller.wire.metrics import BrokerLoad, Tick, decode_metric
from controller.wire.sweep import SweepHeader


def write_ticks(source: Path, target: Path, *, cluster: str, period_ms: int) -> int:
    """Copy the recording in *source* to a folder log in *target*, with ticks; returns how many.

    *source* holds files of JSON lines, read in the order of their names, and ``.json`` files of one document,
    such as load reports saved from a broker.  Records that cannot be used are copied too: the replay puts
    them among its dead letters.  Results are not copied, for a replay issues commands of its own.
    """
    if any((target / "metrics").glob("*.jsonl")):
        raise TrimtabError(f"{target} holds a log already; ticks go into a new one")
    headers = [_header(record, cluster, period_ms) for record in _records(source)]
    ticks = place_ticks(headers, period_ms=period_ms)
    if not ticks:
        raise TrimtabError(f"{source} holds neither sweeps nor load reports of cluster {cluster!r}")

    log = FolderMetricsLog(target, cluster=cluster)
    records = _records(source)
    copied = 0
    for tick in ticks:
        log.publish(("", next(records)) for _ in range(copied, tick.after + 1))
        log.tick(tick.interval, dict(tick.roster))
        copied = max(copied, tick.after + 1)
    log.publish(("", record) for record in records)
    return len(ticks)


def _records(source: Path) -> Iterator[bytes]:
    """Every record in *source* on one line."""
    folder = source / "metrics" if (source / "metrics").is_dir() else source
    for path in sorted(folder.glob("*.json*")):
        content = path.read_bytes()
        if path.suffix == ".json":
            yield _on_one_line(content)
        else:
            yield from (line for line in content.splitlines() if line.strip())


def _on_one_line(document: bytes) -> bytes:
    try:
        return json.dumps(json.loads(document), separators=(",", ":")).encode()
    except ValueError:
        return b" ".join(document.split())


def _header(record: bytes, cluster: str, period_ms: int) -> Header | None:
    try:
        decoded = decode_metric(record, cluster=cluster, period_ms=period_ms)
    except WireError:
        return None
    if isinstance(decoded, Tick):
        raise TrimtabError(f"the recording has ticks already, the first for {decoded.interval}")
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

"""Reads a namespace without asking its cluster: from a saved answer of the admin API, or from a log."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from controller.log.tail import LogTail
from controller.model.errors import TrimtabError, WireError
from controller.settings.small_file import read_small_file
from controller.wire.base import read_object, validate
from controller.wire.metrics import BrokerLoadRecord, MetricRecord, NamespaceStateRecord, TickRecord, decode_metric
from controller.wire.sweep import BrokerSweep

#: How many ticks of a log in Kafka are read backwards at most; collectors publish every namespace more often.
_FARTHEST: Final = 200


class Claim(NamedTuple):
    """A broker lists a bundle.  The latest claim is the owner's; of two at the same time, that of the higher name."""

    #: T of a sweep, else 0; epoch ms.
    interval: int
    last_update: int
    broker: str
    #: None for a load report, which is no part of a sweep.
    sweep: str | None


class LoggedNamespace(NamedTuple):
    """A namespace as a log has it."""

    #: As last published; None where they never were.
    boundaries: tuple[int, ...] | None
    #: Bundle -> who has it: by the sweeps that count for the last interval, or by the latest ones where none is ticked.
    owners: Mapping[str, Claim]
    #: The last interval that was ticked, epoch ms.
    ticked: int | None


def read_boundaries(path: Path) -> tuple[int, ...]:
    """The boundaries in *path*: what GET /admin/v2/namespaces/{tenant}/{namespace}/bundles answers, or the policies.

    Raises TrimtabError naming the file.
    """
    try:
        fields = read_object(read_small_file(path))
        bundles = fields.get("bundles", fields)
        boundaries = bundles.get("boundaries") if isinstance(bundles, dict) else None
        state: dict[str, Any] = {"v": 1, "type": "namespace_state", "cluster": "", "namespace": "-", "version": 0}
        return validate(NamespaceStateRecord, json.dumps({**state, "boundaries": boundaries})).boundaries
    except (OSError, WireError) as error:
        raise TrimtabError(
            f'{path}: {error}; expected {{"boundaries": ["0x00000000", ..., "0xffffffff"]}}, as Pulsar answers to'
            " GET /admin/v2/namespaces/{tenant}/{namespace}/bundles"
        ) from error


def read_namespace(log: LogTail, namespace: str, *, cluster: str | None) -> LoggedNamespace:
    """What *log* says last about *namespace* of *cluster*; None is the last record's own.

    It is read from its end, as far as it takes.  Raises TrimtabError where *log* holds nothing.
    """
    if not log.endless and next(log.backwards("metrics", (b"",)), None) is None:
        raise TrimtabError(f"{log.where} holds no log: expected files with records in {log.where}/metrics")
    boundaries: tuple[int, ...] | None = None
    last: TickRecord | None = None
    before_last, ticks = False, 0
    claims: list[tuple[str, Claim]] = []
    for record in _backwards(log, namespace, cluster):
        if isinstance(record, NamespaceStateRecord):
            boundaries = boundaries or record.boundaries
        elif isinstance(record, TickRecord):
            before_last = before_last or (last is not None and record.interval < last.interval)
            last = last or record
            ticks += 1
            if ticks == _FARTHEST and log.endless:
                break
        elif not before_last:
            claims += _claims(record)
        if before_last and boundaries is not None:
            break
    roster = None if last is None else {entry.broker: entry.sweep_id for entry in last.roster or ()}
    owners: dict[str, Claim] = {}
    for bundle, claim in claims:
        counts = roster is None or (claim.broker in roster and roster[claim.broker] == claim.sweep)
        if counts and (bundle not in owners or claim[:3] > owners[bundle][:3]):
            owners[bundle] = claim
    return LoggedNamespace(boundaries, owners, None if last is None else last.interval)


def _claims(record: BrokerSweep | BrokerLoadRecord) -> Iterator[tuple[str, Claim]]:
    if isinstance(record, BrokerSweep):
        claim = Claim(record.interval, record.last_update, record.broker, record.sweep_id)
        yield from ((stats.bundle, claim) for stats in record.bundle_stats)
    else:
        claim = Claim(0, record.report.last_update, record.broker_name, None)
        yield from ((bundle, claim) for bundle in record.report.last_stats)


def _backwards(
    log: LogTail, namespace: str, cluster: str | None
) -> Iterator[NamespaceStateRecord | TickRecord | BrokerSweep | BrokerLoadRecord]:
    """Records that tell of *namespace*, and ticks with a roster, last first; what cannot be used is passed over.

    Without a *cluster* it is that of the last record.
    """
    # Skip the sweeps that do not name the namespace: decoding all sweeps of a large cluster is slow.
    for value in log.backwards("metrics", (namespace.encode(), b'"tick"')):
        record = _decoded(value, cluster)
        cluster = cluster or (record.cluster if record is not None else None) or None
        if isinstance(record, NamespaceStateRecord) and record.namespace != namespace:
            continue
        if isinstance(record, TickRecord) and record.roster is None:
            continue
        if isinstance(record, NamespaceStateRecord | TickRecord | BrokerSweep | BrokerLoadRecord):
            yield record


def _decoded(line: bytes, cluster: str | None) -> MetricRecord | None:
    try:
        theirs = cluster if cluster is not None else str(read_object(line).get("cluster", ""))
        return decode_metric(line, cluster=theirs, period_ms=1)
    except WireError:
        return None

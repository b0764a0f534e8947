"""Small logs written by hand, record by record, and folded in one shard."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from controller.aggregate.columns.rows import METRICS, Rows
from controller.aggregate.shard import state_blob
from controller.aggregate.shard.fold import DetailLimits, FoldOptions, ShardState, fold
from controller.aggregate.snapshot import Snapshot
from controller.aggregate.view import assemble
from controller.model.load import RATE_IN, ClusterView
from controller.wire.base import validate
from controller.wire.metrics import MODELS
from controller.wire.rows import Located, rows_from_records
from tests.records import PERIOD, RATES, T, as_bytes, broker_sweep, bundle_stats, tick

A, B = "broker-a:8080", "broker-b:8080"
NO_DETAIL = DetailLimits(topics=1e9, sessions=1e9, msg_rate=1e18, throughput=1e18)
OPTIONS = FoldOptions(bundle_ttl_ms=PERIOD, detail=NO_DETAIL)


def sweep(broker: str, n: int = 0, *bundles: str, rate: float = 10.0, **changed: Any) -> dict[str, Any]:
    """The sweep of interval *n* from T on; each of its bundles at *rate* msg/s in."""
    stats = [
        {"bundle": name, "totals": {**bundle_stats()["totals"], **dict.fromkeys(RATES, 0.0), "msgRateIn": rate}}
        for name in bundles
    ]
    said = {"interval": T + n * PERIOD, "sweepId": "s", "lastUpdate": T + n * PERIOD, "bundleStats": stats}
    return broker_sweep(broker, **said | changed)


def ticked(n: int, *roster: str, missing: str = "") -> dict[str, Any]:
    """The tick of interval *n* with complete sweeps of *roster*."""
    listed: list[dict[str, str | None]] = [{"broker": broker, "sweepId": "s"} for broker in roster]
    listed += [{"broker": missing, "sweepId": None}] * bool(missing)
    return tick(T + n * PERIOD, partitions={"metrics": 1, "results": 0}, roster=listed)


def snapshots(*batches: list[dict[str, Any]], options: FoldOptions = OPTIONS) -> list[Snapshot]:
    """The snapshots of all batches."""
    return [snapshot for closed in closings(*batches, options=options) for snapshot in closed]


def closings(*batches: list[dict[str, Any]], options: FoldOptions = OPTIONS) -> list[list[Snapshot]]:
    """The snapshots of each batch."""
    shard = Shard(options=options)
    return [shard.feed(*batch) for batch in batches]


def view_of(
    *batches: list[dict[str, Any]], sent: Mapping[str, str] | None = None, options: FoldOptions = OPTIONS
) -> ClusterView:
    """The view of the last interval that *batches* close, by way of the blobs that states and snapshots travel in."""
    snapshot = snapshots(*batches, options=options)[-1]
    return assemble([Snapshot.from_blob(snapshot.to_blob())], {}, sent or {})


def rates(snapshot: Snapshot) -> dict[str, tuple[str, float]]:
    """Bundle -> its broker and msg/s in."""
    owner = [snapshot.roster[row] for row in snapshot.owner.tolist()]
    return {
        name: (broker, rate)
        for name, broker, rate in zip(snapshot.names, owner, snapshot.load[:, RATE_IN], strict=True)
    }


def place(at: tuple[int, int], offset: int, record: dict[str, Any]) -> Located:
    """*record* at source, partition *at* and *offset*."""
    source, partition = at
    return Located(
        source=source, partition=partition, offset=offset, record=validate(MODELS[record["type"]], as_bytes(record))
    )


@dataclass
class Shard:
    """One shard that reads partition 0 of the metrics topic, and whose state goes through its blob with each batch."""

    options: FoldOptions = OPTIONS
    state: ShardState = field(default_factory=lambda: ShardState(shard=0, shards=1))
    offset: int = 0

    def feed(self, *batch: dict[str, Any]) -> list[Snapshot]:
        """Fold one batch."""
        records = [place((METRICS, 0), self.offset + i, record) for i, record in enumerate(batch)]
        self.offset += len(batch)
        return self._fold(rows_from_records(records, self.options.detail))

    def feed_places(self, *placed: Located) -> list[Snapshot]:
        """Fold one batch of records that lie in several partitions."""
        return self._fold(rows_from_records(placed, self.options.detail))

    def feed_file(self, name: str, *lines: dict[str, Any]) -> list[Snapshot]:
        """Fold one batch that is one file of a folder."""
        records = [replace(place((METRICS, 0), i, line), file=name) for i, line in enumerate(lines)]
        return self._fold(rows_from_records(records, self.options.detail, files=True))

    def _fold(self, rows: Rows) -> list[Snapshot]:
        state, snapshots = fold(self.state, rows, self.options)
        self.state = state_blob.load(state_blob.dump(state))
        return snapshots

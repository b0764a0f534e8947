"""The journal of a run, made again from its records alone by the fold and the engine, one batch an interval."""

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final

from controller.aggregate.shard.fold import ShardState, fold
from controller.log.memory import MemoryLog
from controller.log.records import LogRecords
from controller.offline.replay import Replay
from controller.wire.rows import rows_from_records
from tests.simulation.processes import Site
from tests.simulation.query import TOPICS

#: Records of a batch: other ones than those of the query.
_BATCH: Final = 150


def differences(site: Site) -> Iterator[str]:
    """Where the journal of *site* is not what its records give."""
    settings, policy = site.settings, site.policy
    log = MemoryLog(site.server)
    recorded: Any = SimpleNamespace(
        decisions=settings.decisions,
        guardrails=settings.guardrails,
        whole_every_intervals=settings.journal.whole_every_intervals,
    )
    options, state = replace(site.options, close_at_most=None), ShardState(shard=0, shards=1)
    records = [
        (record.timestamp_ms, source, record)
        for source, topic in TOPICS.items()
        for partition in range(len(site.server.topic(topic)))
        for record in log.read(topic, partition=partition).read_to_end()
    ]
    records.sort(key=lambda each: each[0])
    replay = Replay(LogRecords(log, where="memory"), recorded, policy)
    for begin in range(0, len(records), _BATCH):
        located = [
            each
            for _, source, record in records[begin : begin + _BATCH]
            for each in site.decoder.located(source, [record])[0]
        ]
        state, snapshots = fold(state, rows_from_records(located, options.detail), options)
        for snapshot in snapshots:
            replay.decide([snapshot])
    comparison = replay.ended(None).comparison
    if comparison.first is not None:
        yield f"replay: interval {comparison.first.interval}: {comparison.first.what}"
    elif comparison.equal != comparison.compared or not comparison.compared:
        yield f"replay: {comparison.equal} of {comparison.compared} entries are equal"

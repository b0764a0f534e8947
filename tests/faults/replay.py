"""What is decided about a log where nothing ever fails: the same code, without Spark, from the first record on."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from controller.aggregate.shard.fold import ShardState, fold
from controller.engine import decide_interval
from controller.model.controls import Controls
from controller.settings.trimtab_toml import Settings
from controller.wire.journal_records import EntryWriter
from controller.wire.rows import Located, rows_from_records
from streaming.assembly import Assembly


def undisturbed(settings: Settings, records: Sequence[Located], controls: Mapping[int, Controls]) -> list[bytes]:
    """The journal's entries, oldest first, of a controller that reads all *records* at once.

    *controls*: what a person had set at each interval.
    """
    assembly = Assembly(settings)
    policy, options = assembly.policy, assembly.options
    rows = rows_from_records(records, options.decode.detail, files=options.files)
    _, snapshots = fold(ShardState(shard=0, shards=1), rows, replace(options.fold, close_at_most=None))
    memory, entries = policy.initial_memory(settings.decisions.seed), list[bytes]()
    every = settings.journal.whole_every_intervals * settings.intervals.period_ms
    writer = EntryWriter(whole_every_ms=every, base=None)
    for snapshot in sorted(snapshots, key=lambda each: each.interval):
        allowed = controls.get(snapshot.interval, Controls(mode=settings.decisions.mode))
        entry = decide_interval([snapshot], memory, allowed, policy)
        memory, encoded = entry.memory, writer.encode(entry)
        writer.wrote(encoded)
        entries.append(encoded.value)
    return entries

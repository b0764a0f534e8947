"""``python -m tests.published``: keep a sample of everything that this release writes, in a folder of its version.

A file that is there already stays as it is: what was published does not change.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from controller.adapters.disk.places import SHIPPED
from controller.aggregate.shard import state_blob
from controller.aggregate.shard.fold import ShardState
from controller.cli.shared.common_options import own_version
from controller.cycle.limits import Limits
from controller.cycle.summary import summary_of
from controller.log.election.store import has, put
from controller.model.controls import Choice, OperatorControls, Pause
from controller.model.errors import WireError
from controller.model.summary import IntervalSummary
from controller.wire.base import encode, validate
from controller.wire.cells import (
    CellOperation,
    SnapshotPart,
    StoreBegin,
    StoredCell,
    StoreMark,
    StoreRecord,
    text_of,
)
from controller.wire.commands import command_event, epoch_event
from controller.wire.controls import encode_controls
from controller.wire.dead_letter import Source
from controller.wire.journal import encode_entry, encode_epoch
from controller.wire.journal_records import EntryWriter, PartEntry
from controller.wire.schemas import MODELS, schema_files
from controller.wire.summary import encode_summary
from tests.cluster import broker, view
from tests.folds import A, Shard, sweep, ticked
from tests.journal_entries import SPLIT, UNLOAD, entry
from tests.records import CLUSTER, LEFT, METRICS, PERIOD, RIGHT, T, as_bytes, dead_letter_of, namespace_state, result

FOLDER: Final = Path(__file__).parent
STATE: Final = "state.bin"
CONTROLS: Final = "controls.json"
SETTINGS: Final = ("trimtab.toml", "broker.conf")
SCHEMAS: Final = "schemas"
RECORDS: Final = "records"
#: Milliseconds since the epoch at which the samples were issued.
_ISSUED: Final = T + PERIOD


def records() -> Mapping[str, bytes]:
    """One record of every kind, by the name of its schema."""
    first = entry(T, UNLOAD, SPLIT)
    whole = encode_entry(first)
    writer = EntryWriter(whole_every_ms=60 * PERIOD, base=None)
    encoded = writer.encode(first)
    writer.wrote(encoded)
    (delta,) = writer.encode(entry(T + PERIOD)).records
    part = PartEntry(cluster=CLUSTER, interval=T, part=0, parts=1, text=whole.decode())
    letter = dead_letter_of(b"{", WireError("not_json", "it ends early"), Source(topic="trimtab-metrics", offset=7))
    return {
        # As far as trimtab reads them: of load reports, that is a part.
        **{name: encode(validate(MODELS[name], as_bytes(record))) for name, record in METRICS.items()},
        "result": as_bytes(result()),
        "trimtab.unload": command_event(UNLOAD, 3, _ISSUED),
        "trimtab.split": command_event(SPLIT, 3, _ISSUED),
        "trimtab.epoch": epoch_event(CLUSTER, 3, _ISSUED),
        "journal.decision": whole,
        "journal.decision_delta": delta,
        "journal.epoch": encode_epoch(CLUSTER, 3),
        "journal.part": encode(part),
        "dead_letter": encode(letter),
        "summary": encode_summary(summary()),
        **{f"election.{name}": encode(record) for name, record in election().items()},
    }


def summary() -> IntervalSummary:
    """A summary of two brokers, without verdicts."""
    cluster = view(broker("a:8080", usage=0.9, **{LEFT: 60}), broker("b:8080", usage=0.1, **{RIGHT: 5}))
    return summary_of(cluster, entry(T, UNLOAD), Limits(), period_ms=PERIOD, epoch=3, decided_at_ms=_ISSUED)


def election() -> Mapping[str, StoreRecord]:
    """A record of each kind that lies in the topic of the election."""
    store, mark = "0a" * 16, "0b" * 16
    session = put("sessions/one", b"10000")
    cell = StoredCell(key="epoch", value=text_of(b"3"), version=7, created=2, changed_ms=T)
    part = SnapshotPart(
        store=store, cluster=CLUSTER, mark=mark, part=0, parts=1, ordinal=7, digest="0c" * 32, cells=(cell,)
    )
    return {
        "begin": StoreBegin(store=store, cluster=CLUSTER),
        "operation": CellOperation(store=store, id="0d" * 16, conditions=(has("epoch", 7),), changes=(session,)),
        "mark": StoreMark(store=store, since=4, id=mark),
        "part": part,
    }


def controls() -> OperatorControls:
    """Controls with something in every place."""
    return OperatorControls(
        mode=Choice(value="active", reason="tried for a week", by="anna", at_ms=T),
        pauses=(Pause(reason="upgrade", by="ben", at_ms=_ISSUED),),
        resumed_ms=T,
    )


def state() -> ShardState:
    """The state behind a closed interval, while records of the next one wait for its tick."""
    shard = Shard()
    shard.feed(sweep(A, 0, LEFT), namespace_state(), ticked(0, A))
    shard.feed(sweep(A, 1, LEFT))
    return shard.state


def write(folder: Path) -> None:
    """Write what is not yet there to *folder*."""
    files = {folder / CONTROLS: encode_controls(controls()), folder / STATE: state_blob.dump(state())}
    for name, value in records().items():
        files[folder / RECORDS / f"{name}.json"] = value
        files[folder / SCHEMAS / f"{name}.json"] = schema_files()[f"{name}.json"].encode()
    for name in SETTINGS:
        files[folder / name] = (SHIPPED / name).read_bytes()
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_bytes(content)


if __name__ == "__main__":
    write(FOLDER / own_version())

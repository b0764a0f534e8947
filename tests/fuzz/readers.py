"""Every reader of what others write: what it reads well, and which error of its own it may raise."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from controller.aggregate.shard import state_blob
from controller.collector.reports import (
    SweepName,
    extensible_report,
    listed_topics,
    modular_report,
    swept,
    usage_from_metrics,
)
from controller.collector.states import bundle_data
from controller.model.errors import PlanRefusedError, SettingsError, StateError, TrimtabError, WireError
from controller.model.proposals import ProposalRecord
from controller.offline.namespaces import read_boundaries
from controller.offline.recorded_load import read_load
from controller.planning.plans.plan_steps import PlanLimits, empty_step
from controller.settings.broker_conf import read_broker_conf
from controller.settings.capacity import read_capacity_overrides
from controller.settings.policy import read_policy
from controller.settings.rebalance_group import read_rebalance_group
from controller.settings.scenario import read_scenario
from controller.settings.trimtab_toml import read_settings
from controller.strategies.common.usage_history import UsageHistory
from controller.web.access.tokens import read_tokens
from controller.wire.base import encode, validate
from controller.wire.cells import parse_store_record
from controller.wire.chunks import arrow_chunks, glance, json_chunks
from controller.wire.commands import command_event, epoch_event, parse_event, to_command
from controller.wire.controls import encode_controls, parse_controls
from controller.wire.journal import encode_entry, encode_epoch
from controller.wire.journal_records import Decided, EntryReader, EntryWriter, parse_record
from controller.wire.metrics import decode_metric
from controller.wire.notifications import NotificationState, decode_state, encode_state
from controller.wire.plan import encode_plan, parse_plan
from controller.wire.process import RunningProcess, decode_process
from controller.wire.proposals import (
    encode_head,
    encode_proposal_record,
    pack,
    parse_head,
    parse_proposal_record,
    unpack,
)
from controller.wire.results import decode_result
from controller.wire.rows import fact_of
from controller.wire.summary import decode_summary, encode_summary
from controller.wire.sweep import SweepHeader, encode_sweep_arrow
from tests.contracts.controls import ORDERS
from tests.fuzz.spoil import Spoil, spoilt_bytes, spoilt_json, spoilt_lines
from tests.journal_entries import SPLIT, UNLOAD, entry, parse_entry
from tests.plans import plan_of, some_problem
from tests.proposals import decision, decision_content, signed_by
from tests.published import __main__ as published
from tests.records import (
    CLUSTER,
    LEFT,
    METRICS,
    PERIOD,
    RIGHT,
    SAMPLES,
    T,
    as_bytes,
    broker_sweep,
    bundle_stats,
    load_report,
    result,
    tick,
    without,
)

_ROOT = Path(__file__).parents[2]
MAX_BYTES = 100_000
#: A folder for each reader, with inputs that scripts/fuzz found to reach lines that the samples do not.
CORPUS: Final = Path(__file__).parent / "corpus"


@dataclass(frozen=True, kw_only=True)
class Reader:
    """One reader; ``read`` gets bytes and a folder for files."""

    read: Callable[[bytes, Path], object]
    samples: tuple[bytes, ...]
    spoil: Spoil = spoilt_json
    error: type[TrimtabError] = WireError


@cache
def sweeps_in_arrow() -> tuple[bytes, ...]:
    """Sweeps of no topics, of a few and of some more."""
    header = validate(SweepHeader, as_bytes(without(broker_sweep(), "bundleStats")))
    return tuple(
        encode_sweep_arrow(
            header,
            bundles=[LEFT, RIGHT],
            bundle=np.arange(topics) % 2,
            topics=[f"persistent://tenant/ns/{'ü' * (i % 3)}{i}" for i in range(topics)],
            load=np.ones((topics, 4)),
            counts=np.ones((topics, 2), np.int64),
        )
        for topics in (0, 3, 20)
    )


_TWO_BUNDLES = broker_sweep(bundleStats=[bundle_stats(LEFT), bundle_stats(RIGHT, 5)])
JSON_METRICS = tuple(map(as_bytes, (*METRICS.values(), load_report(), _TWO_BUNDLES)))
RESULTS = (as_bytes(result()), as_bytes(tick()))


def metric(value: bytes, _folder: Path) -> object:
    return decode_metric(value, cluster=CLUSTER, period_ms=PERIOD, append_time_ms=T, max_bytes=MAX_BYTES)


def _result(value: bytes, _folder: Path) -> object:
    found = decode_result(value, cluster=CLUSTER, period_ms=PERIOD, append_time_ms=T, max_bytes=MAX_BYTES)
    return None if found is None else fact_of(found)


def _event(value: bytes, _folder: Path) -> object:
    event = parse_event(value)
    return event if event.type == "trimtab.epoch" else to_command(event)


def _report(value: bytes, _folder: Path) -> object:
    said = _Answer(value)
    name = SweepName(cluster="c", broker="b:1", interval=T, sweep_id="s")
    sweep, _ = swept(name, modular_report(said["report"]), listed_topics(said["topics"]))
    return [*json_chunks(sweep), *arrow_chunks(sweep)]


def _extensible(value: bytes, _folder: Path) -> object:
    said = _Answer(value)
    usage_from_metrics(said["metrics"], now_ms=T)
    report = extensible_report(said["load"], owned=said["owned"])
    sweep, _ = swept(
        SweepName(cluster="c", broker="b:1", interval=T, sweep_id="s"), report, listed_topics(said["topics"])
    )
    return [*json_chunks(sweep)]


class _Answer:
    """What a client makes of an answer: JSON of any shape, below an object of the test's own."""

    def __init__(self, value: bytes) -> None:
        try:
            self._said = json.loads(value)
        except (ValueError, RecursionError):
            self._said = None

    def __getitem__(self, name: str) -> Any:
        return self._said.get(name) if isinstance(self._said, dict) else None


def _in_file(name: str, read: Callable[[Path], object]) -> Callable[[bytes, Path], object]:
    def from_file(value: bytes, folder: Path) -> object:
        path = folder / name
        path.write_bytes(value)
        return read(path)

    return from_file


def _whole_policy(path: Path) -> object:
    settings = read_settings(_ROOT / "conf" / "trimtab.toml")
    cluster = settings.cluster.model_copy(update={"broker_conf": str(path)})
    return read_policy(settings.model_copy(update={"cluster": cluster}), {})


def _plan(value: bytes, _folder: Path) -> object:
    """A plan whose hash is right, whatever is in it."""
    try:
        fields = json.loads(value)
        told = json.dumps(fields["plan"], sort_keys=True, separators=(",", ":"))
        value = json.dumps({**fields, "sha256": hashlib.sha256(told.encode()).hexdigest()}).encode()
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    return parse_plan(value)


_PROBLEM = some_problem(16, 0.4)
_DRAIN = plan_of(_PROBLEM, [empty_step(_PROBLEM, [0], PlanLimits(effort=1000))])
_CAPACITY = b'[[brokers]]\nmatch = "broker-.*"\nbandwidth_out_mbits = 1000.0\ncpu_cores = 8\n'


def _written() -> tuple[bytes, bytes]:
    """An entry with its whole memory, and one that builds on it."""
    writer, records = EntryWriter(whole_every_ms=60 * PERIOD, base=None), []
    for interval, usage in ((T // (60 * PERIOD) * 60 * PERIOD, 1.0), (T // (60 * PERIOD) * 60 * PERIOD + PERIOD, 0.5)):
        encoded = writer.encode(entry(interval, shedder=UsageHistory(usage={"b:1": usage, "b:2": 0.1})))
        writer.wrote(encoded)
        records.append(encoded.value)
    return records[0], records[1]


_WHOLE, _DELTA = _written()


def _delta_read(value: bytes, _: Path) -> object:
    reader = EntryReader(None)
    reader.read(_WHOLE)
    found = reader.read(value)
    return found.entry if isinstance(found, Decided) and found.missing is None else None


_PROCESS = RunningProcess(
    host="host-1",
    process=4711,
    role="executor",
    version="0.1.0",
    commit="141085b8aa11",
    started_at=T,
    ready=True,
    state="executes",
    group="trimtab-executor-demo",
    commands="trimtab-commands",
    partitions=4,
)


def _head(value: bytes, _folder: Path) -> object:
    """A head that lies where it says."""
    try:
        key = json.loads(value)["hash"]
    except (ValueError, KeyError, TypeError, RecursionError):
        key = ""
    return parse_head(value, str(key))


_CONTENT = decision_content()
_NOTIFICATIONS = encode_state(NotificationState(cluster=CLUSTER))
_TOKENS = f"""[tokens.anna]\nsha256 = "{"0a" * 32}"\nrole = "operator"\nexpires = 2027-01-01T00:00:00Z\n""".encode()
_BOUNDARIES = b'{"boundaries": ["0x00000000", "0x80000000", "0xffffffff"], "numBundles": 2}'
_APPROVED = ProposalRecord(statements=(signed_by("ada", decision(_CONTENT).statement.statement),))

READERS: Mapping[str, Reader] = {
    "metrics in JSON": Reader(read=metric, samples=JSON_METRICS),
    "metrics in JSON, as bytes": Reader(read=metric, samples=JSON_METRICS, spoil=spoilt_bytes),
    "sweeps in Arrow": Reader(read=metric, samples=sweeps_in_arrow(), spoil=spoilt_bytes),
    "glances at sweeps": Reader(
        read=lambda value, _: glance(value), samples=(*sweeps_in_arrow(), *JSON_METRICS), spoil=spoilt_bytes
    ),
    "results": Reader(read=_result, samples=RESULTS),
    "commands": Reader(
        read=_event,
        samples=(command_event(UNLOAD, 3, T), command_event(SPLIT, 3, T), epoch_event(CLUSTER, 3, T)),
    ),
    "journal entries": Reader(
        read=lambda value, _: parse_entry(value), samples=(encode_entry(entry()), encode_epoch(CLUSTER, 2))
    ),
    "journal records": Reader(
        read=lambda value, _: parse_record(value), samples=(encode_entry(entry()), encode_epoch(CLUSTER, 2))
    ),
    "journal deltas": Reader(read=_delta_read, samples=(_DELTA,), error=TrimtabError),
    "plans": Reader(read=_plan, samples=(encode_plan(_DRAIN),), error=PlanRefusedError),
    "plans, as bytes": Reader(
        read=lambda value, _: parse_plan(value),
        samples=(encode_plan(_DRAIN),),
        spoil=spoilt_bytes,
        error=PlanRefusedError,
    ),
    "processes in the registry": Reader(read=lambda value, _: decode_process(value), samples=(encode(_PROCESS),)),
    "processes in the registry, as bytes": Reader(
        read=lambda value, _: decode_process(value), samples=(encode(_PROCESS),), spoil=spoilt_bytes
    ),
    "controls": Reader(read=lambda value, _: parse_controls(value), samples=(encode_controls(ORDERS),)),
    "settings": Reader(
        read=_in_file("trimtab.toml", read_settings),
        samples=((_ROOT / "conf" / "trimtab.toml").read_bytes(), (_ROOT / "conf/scenarios/demo.toml").read_bytes()),
        spoil=spoilt_lines,
        error=SettingsError,
    ),
    "broker.conf": Reader(
        read=_in_file("broker.conf", read_broker_conf),
        samples=((_ROOT / "conf" / "broker.conf").read_bytes(),),
        spoil=spoilt_lines,
        error=SettingsError,
    ),
    "broker.conf's options": Reader(
        read=_in_file("broker.conf", _whole_policy),
        samples=((_ROOT / "conf" / "broker.recommended.conf").read_bytes(),),
        spoil=spoilt_lines,
        error=SettingsError,
    ),
    "capacity overrides": Reader(
        read=_in_file("capacity.toml", read_capacity_overrides),
        samples=(_CAPACITY,),
        spoil=spoilt_lines,
        error=SettingsError,
    ),
    "load reports of admin": Reader(
        read=_report,
        samples=tuple(
            as_bytes({"report": load_report(n), "topics": json.loads((SAMPLES / f"topics_{n}.json").read_text())})
            for n in (1, 2)
        ),
        error=TrimtabError,
    ),
    "load data of admin": Reader(
        read=_extensible,
        samples=(
            as_bytes(
                {
                    "metrics": [{"metrics": {"brk_lb_cpu_usage": 5.0}}],
                    "load": load_report(),
                    "owned": [LEFT],
                    "topics": json.loads((SAMPLES / "topics_1.json").read_text()),
                }
            ),
        ),
        error=TrimtabError,
    ),
    "stored averages": Reader(
        read=lambda value, _: bundle_data(CLUSTER, LEFT, "bundle_data", value),
        samples=((SAMPLES / "bundle_data.json").read_bytes(),),
    ),
    "summaries": Reader(
        read=lambda value, _: decode_summary(value, cluster=CLUSTER), samples=(encode_summary(published.summary()),)
    ),
    "records of the election": Reader(
        read=lambda value, _: parse_store_record(value, "here"),
        samples=tuple(map(encode, published.election().values())),
        error=TrimtabError,
    ),
    "state of notifications": Reader(read=lambda value, _: decode_state(value, CLUSTER), samples=(_NOTIFICATIONS,)),
    "proposals": Reader(read=_head, samples=(encode_head(decision(_CONTENT), len(_CONTENT)),)),
    "records of proposals": Reader(
        read=lambda value, _: parse_proposal_record(value), samples=(encode_proposal_record(_APPROVED),)
    ),
    "contents of proposals": Reader(read=lambda value, _: unpack(value), samples=(pack(_CONTENT),), spoil=spoilt_bytes),
    "states of a shard": Reader(
        read=lambda value, _: state_blob.load(value),
        samples=(state_blob.dump(published.state()),),
        spoil=spoilt_bytes,
        error=StateError,
    ),
    "tokens": Reader(
        read=_in_file("tokens.toml", read_tokens), samples=(_TOKENS,), spoil=spoilt_lines, error=SettingsError
    ),
    "groups of workers": Reader(
        read=_in_file("group.toml", read_rebalance_group),
        samples=((_ROOT / "conf" / "scenarios" / "rebalance.toml").read_bytes(),),
        spoil=spoilt_lines,
        error=SettingsError,
    ),
    "scenarios": Reader(
        read=_in_file("scenario.toml", read_scenario),
        samples=((_ROOT / "conf" / "scenarios" / "simulated" / "cgroup-cpu.toml").read_bytes(),),
        spoil=spoilt_lines,
        error=SettingsError,
    ),
    "boundaries": Reader(read=_in_file("bundles.json", read_boundaries), samples=(_BOUNDARIES,), error=TrimtabError),
    "recordings": Reader(
        read=_in_file("recording.jsonl", lambda path: read_load([path], cluster=CLUSTER, period_ms=PERIOD)),
        samples=(b"\n".join(map(as_bytes, (broker_sweep(), load_report(), tick()))),),
        spoil=spoilt_bytes,
        error=SettingsError,
    ),
}


def folder_of(name: str) -> str:
    """The folder of the reader *name* in the corpus."""
    return "".join(letter if letter.isalnum() else "-" for letter in name)

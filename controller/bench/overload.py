"""The largest decisions: whole cycles on clusters in which many brokers, or all, are 40 % over their limit.

Of every shedder with its own load manager: the view from the shards' snapshots, the decision within the guardrails'
default budgets, the journal entry, and the verdicts' file.  The intervals go on, with the commands of each in flight
and in the window of the budgets, so that entries are measured at their largest.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from controller.adapters.disk.scratch import scratch_folder
from controller.adapters.disk.verdicts import VerdictStore
from controller.aggregate.columns.rows import (
    NUMBER_BUNDLES,
    NUMBER_LIMIT,
    NUMBER_LOAD,
    NUMBER_TOPICS,
    NUMBER_USAGE,
    NUMBERS,
)
from controller.aggregate.snapshot import BrokerRow, Snapshot
from controller.aggregate.state.states import States
from controller.bench.clusters import evenly_loaded
from controller.bench.decisions import AT_ONCE
from controller.cycle import Policy, view_of
from controller.engine import decide_interval
from controller.model.controls import Controls
from controller.model.load import BANDWIDTH_IN, BANDWIDTH_OUT, CPU, ClusterView
from controller.model.memory import Memory
from controller.model.names import default_boundaries
from controller.model.records import BrokerState, NamespaceState
from controller.settings.guardrails import GuardrailSettings
from controller.settings.pairs import EXTENSIBLE, LOAD_MANAGER, PLACEMENT, SHEDDER
from controller.settings.policy import policy_of
from controller.settings.trimtab_toml import DecisionSettings
from controller.strategies.catalogue import SHEDDERS
from controller.wire.answers.bench import OverloadAnswer
from controller.wire.journal import encode_entry

#: The share of its limit that a broker may use (loadBalancerBrokerOverloadedThresholdPercentage), and 40 % more.
_LIMIT: Final = 0.85
_OVER: Final = 1.4 * _LIMIT
_COLD: Final = 0.2
#: Share of the brokers that are over the limit, by the name that the bench gives it.
SHARES: Final[Mapping[str, float]] = {"half over": 0.5, "all over": 1.0}
_SHARDS: Final = 4
#: Of a bundle, at most.
_TOPICS: Final = 20
_PERIOD_MS: Final = 60_000
_CLUSTER: Final = "bench"
_SAMPLES: Final = 100
#: Else Pulsar's strategies send everything to one broker, whose budget then leaves little to measure.
_SPREAD: Final[Mapping[str, str]] = {"trimtabSheddingPreallocates": "true"}
#: Which options of broker.conf go with a shedder; the others go with the modular load manager's.
_CONF: Final[Mapping[str, Mapping[str, str]]] = {
    "AvgShedder": {PLACEMENT: "AvgShedder"},
    "TransferShedder": {LOAD_MANAGER: EXTENSIBLE, PLACEMENT: "ExtLeastResourceUsageWithWeight"},
}


_COLUMNS: Final = (
    "load", "short_samples", "short_term", "long_samples", "long_term", "topics", "producers", "consumers", "kinds",
)  # fmt: skip
_TIMES: Final = ("view", "decision", "encoding", "verdicts_file")


def overloaded(brokers: int, bundles: int, share: float) -> ClusterView:
    """All brokers with as many bundles and the same traffic; *share* of them 40 % over the limit, the others cold."""
    view = evenly_loaded(brokers, bundles, seed=1)
    hot = np.arange(brokers) < round(share * brokers)
    usage = np.where(hot, _OVER, _COLD) * 100.0
    resources = np.zeros((brokers, 5))
    resources[:, CPU] = resources[:, BANDWIDTH_IN] = resources[:, BANDWIDTH_OUT] = usage
    factor = (usage / usage.max())[:, None]
    table = view.bundles
    loads = {name: getattr(table, name) * factor[table.broker] for name in ("load", "short_term", "long_term")}
    # Nothing to split: the budget of connections is for unloads.
    topics = np.minimum(table.topics, _TOPICS)
    loads |= {"topics": topics, "producers": topics, "consumers": topics}
    return replace(
        view,
        brokers=replace(view.brokers, usage=resources, load=view.brokers.load * factor),
        bundles=replace(table, **loads),
    )


def snapshots_of(view: ClusterView, interval: int) -> list[Snapshot]:
    """What the shards would say of *view*, as of *interval*; all namespaces are described."""
    table, brokers = view.bundles, view.brokers
    numbers = np.zeros((len(brokers), NUMBERS))
    numbers[:, NUMBER_USAGE], numbers[:, NUMBER_LIMIT] = brokers.usage, brokers.limit
    numbers[:, NUMBER_LOAD] = brokers.load
    numbers[:, NUMBER_TOPICS], numbers[:, NUMBER_BUNDLES] = brokers.topic_count, brokers.bundle_count
    rows = [
        BrokerRow(broker=name, last_update=interval, numbers=tuple(each))
        for name, each in zip(brokers.names, numbers.tolist(), strict=True)
    ]
    counts = np.bincount(table.namespace, minlength=len(table.namespaces)).tolist()
    spaces = [
        NamespaceState(namespace=name, version=1, boundaries=default_boundaries(count))
        for name, count in zip(table.namespaces, counts, strict=True)
        if count
    ]
    return [
        _snapshot(view, interval, shard, tuple(rows) if shard == 0 else (), tuple(spaces) if shard == 0 else ())
        for shard in range(_SHARDS)
    ]


def largest(brokers: int, bundles: int, *, intervals: int) -> Iterator[OverloadAnswer]:
    """Of every shedder on every cluster: the interval whose journal entry is the largest, with the longest times."""
    for cluster, share in SHARES.items():
        view = overloaded(brokers, bundles, share)
        for shedder in SHEDDERS:
            decided = list(cycles(cluster, view, shedder, intervals=intervals))
            longest = {name: max(getattr(each, name) for each in decided) for name in _TIMES}
            yield max(decided, key=lambda each: each.entry_bytes).model_copy(update=longest)


def cycles(cluster: str, view: ClusterView, shedder: str, *, intervals: int) -> Iterator[OverloadAnswer]:
    """*intervals* intervals of *view*, of which nothing that was decided is obeyed, decided by *shedder*."""
    policy = policy_for(shedder, GuardrailSettings(brokers_balance_unknown="ignore"))
    memory = replace(policy.initial_memory(1), samples=_SAMPLES)
    with scratch_folder("trimtab-bench-") as folder:
        for nth in range(intervals):
            interval = view.as_of_ms + nth * _PERIOD_MS
            snapshots = snapshots_of(view, interval)
            decided, memory = _cycle(cluster, shedder, snapshots, memory, policy, folder)
            # Nobody answers; commands leave the list as if they had been carried out.
            memory = replace(memory, in_flight={})
            yield decided


def policy_for(shedder: str, guardrails: GuardrailSettings) -> Policy:
    """The policy with *shedder*, the load manager it belongs to, and *guardrails*; it decides at once."""
    conf = {**AT_ONCE, **_SPREAD, SHEDDER: shedder, **_CONF.get(shedder, {})}
    return policy_of(conf, DecisionSettings(), guardrails, 1, _CLUSTER, _PERIOD_MS)


def _cycle(
    cluster: str,
    shedder: str,
    snapshots: Sequence[Snapshot],
    memory: Memory,
    policy: Policy,
    folder: Path,
) -> tuple[OverloadAnswer, Memory]:
    marks = [time.perf_counter()]

    def timed_view(snapshots: Sequence[Snapshot], memory: Memory, policy: Policy) -> ClusterView:
        view = view_of(snapshots, memory, policy)
        marks.append(time.perf_counter())
        return view

    entry = decide_interval(snapshots, memory, Controls(mode="active"), policy, timed_view)
    marks.append(time.perf_counter())
    encoded, decision = encode_entry(entry), entry.decision
    marks.append(time.perf_counter())
    VerdictStore(folder).write(decision)
    marks.append(time.perf_counter())
    seconds = np.diff(marks).tolist()
    [file] = folder.glob(f"*{decision.interval}*")
    over_budget = sum(int(verdict.detail.split()[0]) for verdict in decision.verdicts if verdict.reason == "Budget")
    return OverloadAnswer(
        cluster=cluster,
        shedder=shedder,
        interval=decision.interval,
        view=seconds[0],
        decision=seconds[1],
        encoding=seconds[2],
        verdicts_file=seconds[3],
        commands=len(decision.commands),
        held_back=over_budget,
        verdicts=len(decision.verdicts),
        entry_bytes=len(encoded),
        verdicts_bytes=file.stat().st_size,
    ), entry.memory


def _snapshot(
    view: ClusterView,
    interval: int,
    shard: int,
    rows: tuple[BrokerRow, ...],
    spaces: tuple[NamespaceState, ...],
) -> Snapshot:
    table, brokers = view.bundles, view.brokers
    of_shard = np.arange(shard, len(table), _SHARDS)
    columns: dict[str, Any] = {name: getattr(table, name)[of_shard] for name in _COLUMNS}
    return Snapshot(
        interval=interval,
        shard=shard,
        shards=_SHARDS,
        roster=brokers.names,
        unswept=(),
        brokers=rows,
        namespaces=States.of(spaces),
        broker_states=States[BrokerState].of(()),
        results=(),
        late=0,
        unrostered=0,
        dropped=0,
        names=[table.names[row] for row in of_shard.tolist()],
        owner=table.broker[of_shard],
        **columns,
        detail_size=np.zeros(len(of_shard), np.int64),
        detail_position=np.zeros(0, np.int64),
        detail_load=np.zeros((0, 4)),
        detail_segment=np.zeros(0, np.int64),
    )

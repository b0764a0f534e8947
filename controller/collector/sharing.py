"""Which collector sweeps which brokers: Kafka Connect's cooperative assignor, with collectors for workers.

A collector that comes takes over no more than its share, one that goes leaves its brokers to those that have least,
and all others keep what they have, with their open connections.  In Connect a change takes two rounds, since nothing
may run twice; a broker may well be swept twice, for the tick says which sweep counts.  So the leader plays the rounds
through by itself and tells the outcome.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from controller.strategies.common.worker_group import ConfigSnapshot, ConnectorsAndTasks, Group
from controller.strategies.rebalance.incremental_cooperative import (
    IncrementalCooperativeAssignor,
    LeaderMemory,
    Release,
)

#: No delay: when a collector is gone, others sweep its brokers at once.
_ASSIGNOR: Final = IncrementalCooperativeAssignor(scheduled_rebalance_max_delay_ms=0, release=Release.TRIMTAB)
#: Two rounds are enough to balance the shares.  Should they not be, the shares are uneven, and nothing worse.
_MOST_ROUNDS: Final = 4


def share_out(
    members: Sequence[str], previous: Mapping[str, Iterable[str]], brokers: Iterable[str]
) -> dict[str, tuple[str, ...]]:
    """Member -> its brokers, sorted: each of *brokers* with one of *members*, shares within one of each other.

    *previous* is what was shared out before; members that are gone and brokers that are gone may be in it.
    """
    active = sorted(set(brokers))
    shares = {name: _work(set(previous.get(name, ())) & set(active)) for name in members}
    memory = _ASSIGNOR.initial_memory()
    for generation in range(_MOST_ROUNDS):
        group = Group(
            members=shares,
            configured=ConfigSnapshot(connectors=dict.fromkeys(active, 0)),
            generation=generation,
            last_completed_generation=generation - 1,
        )
        shares, memory, moved = _round(group, memory, now_ms=generation)
        if not moved:
            break
    return {name: work.connectors for name, work in sorted(shares.items())}


def _round(group: Group, memory: LeaderMemory, now_ms: int) -> tuple[dict[str, ConnectorsAndTasks], LeaderMemory, bool]:
    answer, memory = _ASSIGNOR.assign(group, memory, now_ms)
    shares = {
        name: ConnectorsAndTasks.union([brokers_of - answer.assignments[name].stop, answer.assignments[name].start])
        for name, brokers_of in group.members.items()
    }
    return shares, memory, any(one.start or one.stop for one in answer.assignments.values())


def _work(brokers: Iterable[str]) -> ConnectorsAndTasks:
    return ConnectorsAndTasks(connectors=tuple(sorted(brokers)))

"""What an unload costs clients: how long producers and consumers of a real Pulsar stall.

Half of the topics lie in the bundle that is unloaded, the others in one that stays.  The bundles take turns, and so do
unloads with and without a destination.  An unload is carried out as by ``trimtab execute``.  A producer's stall is the
longest time between two acknowledged sends, less the time between two sends of its own; a consumer's is the same of
receptions.  What the clients of the other bundle show besides is the machine's.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count, pairwise
from pathlib import Path
from typing import Final

import numpy as np

from controller.executor.attempt import Outcome, PulsarTarget, carry_out
from controller.lab.pulsar_server import CLUSTER, PulsarCluster, pulsar_cluster
from controller.lab.pulsar_stage import StageAdmin
from controller.model.decision import Command, Reason, Verdict
from controller.model.names import BundleName, find_bundle, topic_hash
from tests.measure.clients import SteadyClients

_NAMESPACE: Final = "bench/moves"
_BUNDLES: Final = 2
#: The first unloads load classes; they are not counted.
_WARM_UP: Final = 4
_WARM_UP_SECONDS: Final = 5.0
#: Behind an unload: late reconnects count for it.
_AFTER_SECONDS: Final = 1.5
_COMMAND_SECONDS: Final = 30.0
_LONGEST_STALL_SECONDS: Final = 120.0
_EXTENSIBLE: Final = "org.apache.pulsar.broker.loadbalance.extensions"
#: Load manager -> settings of the brokers.
MANAGERS: Final[Mapping[str, Mapping[str, str]]] = {
    "modular": {},
    "extensible": {
        "loadManagerClassName": f"{_EXTENSIBLE}.ExtensibleLoadManagerImpl",
        "loadBalancerLoadSheddingStrategy": f"{_EXTENSIBLE}.scheduler.TransferShedder",
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What clients do: *each* producers and consumers on each of *topics* topics, *rate* msg/s from each producer."""

    topics: int
    each: int
    rate: float

    def __post_init__(self) -> None:
        if self.topics < _BUNDLES or self.topics % _BUNDLES:
            raise ValueError(f"{self.topics} topics: give an even number, half of them for each bundle")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """How long something took, in ms: what half of all took at most, what 99 of 100 did, and the longest."""

    p50: float
    p99: float
    max: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredMoves:
    """Unloads of one kind, and the stalls of the clients of the unloaded bundle."""

    load_manager: str
    #: Whether the unload names the broker that is to have the bundle.
    destination: bool
    unloads: int
    #: That ended ``done``: the bundle is at the destination, or without one on another broker.
    arrived: int
    #: Half of them are in the unloaded bundle.
    topics: int
    #: On all topics, and as many consumers; rate: msg/s of each producer.
    producers: int
    rate: float
    #: From the first question of the executor to its verified result.
    command: Stall
    #: The longest time between two acknowledged sends of a producer, less the time between two sends.
    publishing: Stall
    #: The longest time between two receptions of a consumer, less the mean time between two messages.
    receiving: Stall
    #: The same of clients whose bundle stayed where it was.
    publishing_elsewhere: Stall
    receiving_elsewhere: Stall


@dataclass(slots=True)
class _Stalls:
    """Seconds, of all unloads of a kind."""

    publishing: list[float] = field(default_factory=list)
    receiving: list[float] = field(default_factory=list)

    def add(self, clients: SteadyClients, which: slice, load: Load) -> None:
        """The gaps of the clients *which*, less the time between two events of a client that nothing holds up."""
        self.publishing += [gap - 1 / load.rate for gap in clients.sent.longest()[which]]
        self.receiving += [gap - 1 / (load.rate * load.each) for gap in clients.received.longest()[which]]


@dataclass(slots=True)
class _Kind:
    """The unloads with a destination, or those without."""

    moved: _Stalls = field(default_factory=_Stalls)
    stayed: _Stalls = field(default_factory=_Stalls)
    outcomes: list[Outcome] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


def moves(unloads: int, load: Load, folder: Path) -> Iterator[MeasuredMoves]:
    """*unloads* of each kind, with each load manager of Pulsar; the clusters have their state in *folder*."""
    for manager, settings in MANAGERS.items():
        with pulsar_cluster(folder / manager, settings=settings) as cluster:
            kinds = _measured(cluster, unloads, load, folder / f"{manager}-clients.log")
        for destination, kind in kinds.items():
            yield _answer(manager, kind, load, destination=destination)


def _measured(cluster: PulsarCluster, unloads: int, load: Load, log: Path) -> dict[bool, _Kind]:
    kinds = {True: _Kind(), False: _Kind()}
    with closing(StageAdmin(cluster.admin_urls, cluster=CLUSTER)) as admin:
        admin.create_namespace(_NAMESPACE, _BUNDLES)
        bundles, topics = topics_of(admin.boundaries(_NAMESPACE), load.topics)
        half = load.topics // _BUNDLES * load.each
        with SteadyClients(cluster.service_url, topics, each=load.each, rate=load.rate, log=log) as clients:
            time.sleep(_WARM_UP_SECONDS)
            for number in range(_WARM_UP + 2 * unloads):
                nth, destination = number // 2 % _BUNDLES, number % 2 == 0
                began = _unload(admin, cluster.brokers, bundles[nth], clients, destination=destination)
                if number < _WARM_UP:
                    continue
                kind = kinds[destination]
                kind.seconds.append(began[0])
                kind.outcomes.append(began[1])
                kind.moved.add(clients, slice(nth * half, (nth + 1) * half), load)
                kind.stayed.add(clients, slice((1 - nth) * half, (2 - nth) * half), load)
    return kinds


def topics_of(boundaries: Sequence[int], number: int) -> tuple[list[str], list[str]]:
    """The bundles of the namespace, and *number* topics: as many for each bundle, those of the first bundle first."""
    topics: dict[tuple[int, int], list[str]] = {ends: [] for ends in pairwise(boundaries)}
    each = number // len(topics)
    for name in (f"persistent://{_NAMESPACE}/topic-{i}" for i in count()):
        if all(len(found) >= each for found in topics.values()):
            break
        topics[find_bundle(boundaries, topic_hash(name))].append(name)
    bundles = [str(BundleName(_NAMESPACE, *ends)) for ends in topics]
    return bundles, [name for found in topics.values() for name in found[:each]]


def _unload(
    admin: StageAdmin, brokers: Sequence[str], bundle: str, clients: SteadyClients, *, destination: bool
) -> tuple[float, Outcome]:
    """Unload *bundle* while *clients* are watched: seconds of the command, and its end."""
    owner = admin.lookup(bundle)
    to = brokers[(brokers.index(owner) + 1) % len(brokers)] if destination else ""
    command = Command(
        id=bundle, action="unload", cluster=CLUSTER, bundle=bundle, interval=0, expires_at_ms=0, mode="active",
        source=owner, destination=to, why=Verdict(subject=owner, reason=Reason.OVERLOADED),
    )  # fmt: skip
    clients.restart()
    begin = time.monotonic()
    outcome = carry_out(command, PulsarTarget(admin).within(_COMMAND_SECONDS), may_act=lambda: None, max_attempts=1)
    seconds = time.monotonic() - begin
    time.sleep(_AFTER_SECONDS)
    clients.wait_until_all_work(_LONGEST_STALL_SECONDS)
    return seconds, outcome


def _answer(manager: str, kind: _Kind, load: Load, *, destination: bool) -> MeasuredMoves:
    return MeasuredMoves(
        load_manager=manager,
        destination=destination,
        unloads=len(kind.outcomes),
        arrived=sum(outcome.answer.status == "done" for outcome in kind.outcomes),
        topics=load.topics,
        producers=load.topics * load.each,
        rate=load.rate,
        command=stall(kind.seconds),
        publishing=stall(kind.moved.publishing),
        receiving=stall(kind.moved.receiving),
        publishing_elsewhere=stall(kind.stayed.publishing),
        receiving_elsewhere=stall(kind.stayed.receiving),
    )


def stall(seconds: Sequence[float]) -> Stall:
    """Of *seconds* what is not exceeded by half of them, by 99 of 100, and by all; none is below 0."""
    values = 1000 * np.maximum(seconds, 0.0)
    p50, p99 = np.quantile(values, (0.5, 0.99), method="inverted_cdf").tolist()
    return Stall(p50=round(p50, 1), p99=round(p99, 1), max=round(float(values.max()), 1))

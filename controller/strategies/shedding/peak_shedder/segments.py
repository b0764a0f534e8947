"""Keeps the segments of one scalable topic (Pulsar 5.0) apart: a topic's own peak as a further resource of brokers.

A topic counts if the broker with most of it has more than the topic can be spread to, and by enough: see
``segment_percent``.  Its resource is scaled so that a broker with as much of the topic as an even spread would give it
is as full by it as the cluster is on average; so a plan lowers the topic's peak and the brokers' usage by one measure,
with one certificate, and under the same filters and price.  It is no matter of urgency: like a time to come, it counts
in ordinary plans alone.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from controller.aggregate.scalable_topics import ScalableTopics
from controller.model.load import THROUGHPUT_IN, THROUGHPUT_OUT, UNOWNED, Bools, ClusterView, Floats, Ints
from controller.model.topic_kinds import SEGMENTS
from controller.planning.from_view import MappedProblem
from controller.planning.solving.bounds import mean_level
from controller.strategies.common.auto_scale import AutoScale
from controller.strategies.shedding.peak_shedder.pools import Pools

#: So many topics count at most, those with the most above their share: each makes the search longer.
_MOST: Final = 4
#: What a plan gains of a topic's peak counts for so long, minutes.
_MINUTES: Final = 60.0
_NAME: Final = "scalable topic"


def is_of_topic(resource: str) -> bool:
    """Whether *resource* of a problem is the peak of a scalable topic."""
    return resource.startswith(_NAME)


def about_to_change(view: ClusterView, scale: AutoScale) -> Bools:
    """(bundles,) whether the brokers will split or merge a segment of each, or just did, so that it is not moved.

    A segment that was split or merged is sealed: it stays listed without traffic, while averages still say it has some.
    """
    topics, bundles = ScalableTopics.of(view.bundles), view.bundles
    changes: Bools = (bundles.kinds & SEGMENTS != 0) & ~bundles.load.any(axis=1)
    changing = scale.changing(topics, bundles.namespaces, view.policies.auto_scale)
    changes[topics.bundle[changing]] = True
    return changes


def with_topics(
    view: ClusterView, found: MappedProblem, pools: Pools, load: Floats, *, percent: float
) -> MappedProblem:
    """*found*, the problem of *view*, with a resource for each topic whose segments are to be kept apart.

    *load* (bundles, 4) is that of *found*.  *percent*: a topic counts if its busiest broker has this much more of it
    than an even spread would, in percent of a broker's mean traffic.
    """
    level = mean_level(found.problem)
    if percent <= 0 or level <= 0:
        return found
    topics = ScalableTopics.of(view.bundles)
    sizes, chosen = _sizes(view, topics, load, pools, percent)
    if not len(chosen):
        return found
    n, problem = len(view.brokers), found.problem
    scarcest = int((problem.capacity.sum(axis=0) ** -1 * _used(found)).argmax())
    width = problem.capacity[:, scarcest] / problem.capacity[:, scarcest].mean()
    owner = _owners(view)
    on_broker = np.stack([_on(owner, size, n) for size in sizes], axis=1)
    fair = np.array([_fair(size, on_broker[:, i], pools) for i, size in enumerate(sizes)])
    capacity = width[:, None] * fair / level
    # More than all of a resource would hide a broker that is asked for more than it has.
    capacity = capacity * np.maximum(1.0, (on_broker / capacity).max(axis=0))
    movable = np.stack([size[found.rows] for size in sizes], axis=1)
    moved = np.stack([_on(problem.owner, column, n) for column in movable.T], axis=1)
    spaces = view.bundles.namespaces
    names = [f"{_NAME} {spaces[topics.namespace[t]]} 0x{topics.place[t]:08x}" for t in chosen.tolist()]
    return replace(
        found,
        problem=replace(
            problem,
            resources=(*problem.resources, *names),
            capacity=np.hstack([problem.capacity, capacity]),
            fixed=np.hstack([problem.fixed, np.maximum(on_broker - moved, 0.0)]),
            size=np.hstack([problem.size, movable]),
        ),
        later=(*found.later, *[_MINUTES] * len(names)),
    )


def _sizes(
    view: ClusterView, topics: ScalableTopics, load: Floats, pools: Pools, percent: float
) -> tuple[list[Floats], Ints]:
    """(bundles,) bytes/s of each topic that counts, and which topics these are."""
    bundles, owner, n = view.bundles, _owners(view), len(view.brokers)
    now = bundles.load[:, THROUGHPUT_IN] + bundles.load[:, THROUGHPUT_OUT]
    smooth = load[:, THROUGHPUT_IN] + load[:, THROUGHPUT_OUT]
    # A segment's load is known of this interval alone: its share of its bundle's is that of the load that counts.
    share = np.divide(topics.traffic, now[topics.bundle], out=np.zeros(len(topics.load)), where=now[topics.bundle] > 0)
    traffic = np.minimum(share, 1.0) * smooth[topics.bundle]
    mean = float(smooth[bundles.owned].sum()) / max(n, 1)
    sizes, excess = list[Floats](), list[float]()
    # Those with the most traffic: no other topic can be above its share by as much.
    total = np.bincount(topics.topic, traffic, len(topics))
    candidates = np.argsort(-total, kind="stable")[: 4 * _MOST]
    for topic in candidates.tolist():
        segments = slice(int(topics.starts[topic]), int(topics.starts[topic + 1]))
        size = np.bincount(topics.bundle[segments], traffic[segments], len(bundles)).astype(np.float64)
        on_broker = _on(owner, size, n)
        sizes.append(size)
        excess.append(float(on_broker.max(initial=0.0)) - _fair(size, on_broker, pools))
    over = np.array(excess)
    order = np.argsort(-over, kind="stable")[:_MOST]
    order = np.sort(order[over[order] > percent / 100 * mean])
    return [sizes[i] for i in order.tolist()], candidates[order]


def _fair(size: Floats, on_broker: Floats, pools: Pools) -> float:
    """The least that some broker has of a topic, bytes/s: its mean in the pool that has it, or its largest bundle."""
    pool = pools.of == pools.of[int(on_broker.argmax())]
    return max(float(on_broker[pool].mean()), float(size.max(initial=0.0)))


def _owners(view: ClusterView) -> Ints:
    """(bundles,) row of the broker that each counts on: bundles on their way count where they were sent."""
    owner = view.bundles.broker.copy()
    owner[view.preallocated.bundle] = view.preallocated.broker
    return owner


def _on(owner: Ints, size: Floats, brokers: int) -> Floats:
    """(brokers,) sums of *size* (n,) by *owner* (n,)."""
    owned = owner != UNOWNED
    return np.bincount(owner[owned], size[owned], brokers).astype(np.float64)


def _used(found: MappedProblem) -> Floats:
    """(R,) how much of each resource all brokers carry."""
    used: Floats = found.problem.fixed.sum(axis=0) + found.problem.size.sum(axis=0)
    return used

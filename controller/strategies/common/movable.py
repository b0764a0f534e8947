"""Which of a broker's bundles a shedder may unload, and why the others stay.

Pulsar: LoadData.getBundleDataForLoadShedding and getRecentlyUnloadedBundles.
"""

import numpy as np

from controller.model.decision import Reason, Unload, Verdict
from controller.model.load import Bools, ClusterView, Ints, busiest_first
from controller.model.names import is_broker_own


def broker_own(view: ClusterView) -> Bools:
    """(bundles,) whether a bundle serves a broker's own heartbeat or SLA monitor, which is of no use on another broker.

    Computed once an interval, at the first call.
    """
    bundles = view.bundles

    def find() -> Bools:
        spaces = np.array([is_broker_own(name) for name in bundles.namespaces], np.bool_)
        return spaces[bundles.namespace] if spaces.any() else np.zeros(len(bundles), np.bool_)

    return view.policies.derived(("broker own", bundles), find)


def movable(view: ClusterView, own: Bools, broker: int, by: str) -> tuple[Ints, list[Verdict]]:
    """Rows of the bundles of *broker* (a row) that may leave it, in name order, and a verdict on each other one.

    ``own`` is :func:`broker_own` of *view*; ``by`` is the shedder that asks.
    """
    rows = view.bundles.of_broker(broker)
    stays = own[rows] | view.recently_unloaded[rows]
    excluded, names = rows[stays], view.bundles.names
    refused = [
        Verdict(subject=names[row], reason=Reason.SYSTEM_NAMESPACE if is_own else Reason.RECENTLY_UNLOADED, by=by)
        for row, is_own in zip(excluded.tolist(), own[excluded].tolist(), strict=True)
    ]
    return rows[~stays], refused


def too_few_bundles(view: ClusterView, broker: int, by: str) -> Verdict | None:
    """The verdict on a *broker* (a row) that has no bundle, or one that would overload any other broker too; else None.

    All bundles count here, also those that may not be moved.
    """
    name, count = view.brokers.names[broker], view.brokers.bundle_count[broker]
    if count == 1:
        sole = "its only bundle would overload any other broker"
        return Verdict(subject=name, reason=Reason.SOLE_BUNDLE, by=by, detail=sole)
    if count == 0 or not len(view.bundles.of_broker(broker)):
        return Verdict(subject=name, reason=Reason.NO_BUNDLES, by=by)
    return None


def busiest_unloads(
    view: ClusterView, broker: int, to_offload: float, why: Verdict
) -> tuple[list[Unload], list[Verdict]]:
    """The bundles that take *to_offload* bytes/s off *broker* (a row), busiest first, and a verdict on all refused.

    A bundle goes while those before it do not suffice, so the first one always goes.  *why*: the verdict on the broker.
    """
    too_few = too_few_bundles(view, broker, why.by)
    if too_few is not None:
        return [], [too_few]
    rows, refused = movable(view, broker_own(view), broker, why.by)
    candidates = busiest_first(view.bundles.short_term_throughput, rows)
    offloaded = np.cumsum(view.bundles.short_term_throughput[candidates])
    count = 1 + np.count_nonzero(offloaded[:-1] < to_offload)
    names = view.bundles.names
    return [Unload(bundle=names[row], source=why.subject, why=why) for row in candidates[:count].tolist()], refused

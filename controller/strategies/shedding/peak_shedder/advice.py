"""What no move can mend: bundles that alone take more than a broker's fair share, and topics that do."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from controller.model.decision import Reason, Verdict
from controller.model.load import ClusterView, Floats, Ints
from controller.model.topic_kinds import SEGMENTS
from controller.planning.from_view import MappedProblem, drivers
from controller.planning.solving.bounds import indivisible

#: At most so many bundles are named, the largest.
_NAMED: Final = 10


def too_large(view: ClusterView, stated: MappedProblem, fair: float, by: str) -> Iterator[Verdict]:
    """A verdict on each bundle that alone brings any broker above *fair*, a utilisation: where to split it."""
    problem = stated.problem
    widest = problem.capacity.max(axis=0)
    for bundle in indivisible(problem, fair)[:_NAMED]:
        share = problem.size[bundle] / widest
        resource, row = int(share.argmax()), int(stated.rows[bundle])
        reason, detail = _remedy(view, stated, row, problem.resources[resource], float(share[resource]), fair)
        yield Verdict(
            subject=view.bundles.names[row],
            reason=reason,
            observed=float(share[resource]),
            limit=fair,
            unit="usage",
            by=by,
            detail=f"alone above the fair share of a broker, by {problem.resources[resource]}: {detail}",
        )


def _remedy(
    view: ClusterView, stated: MappedProblem, row: int, resource: str, share: float, fair: float
) -> tuple[Reason, str]:
    """What to do about the bundle at *row*, as far as its topics are known."""
    if view.bundles.kinds[row] & SEGMENTS:
        # Its segments may be all that is known of its topics; they have no partitions.
        return Reason.TOO_LARGE, "split it: brokers cut a bundle with segments of scalable topics in the middle"
    detail = view.bundles.detail
    topics = slice(int(detail.starts[row]), int(detail.starts[row + 1]))
    load = _of(resource, stated, detail.load[topics])
    if not load.sum() > 0:
        return Reason.TOO_LARGE, "split it; its topics are not known, so not where"
    part = load / load.sum() * share
    if float(part.max()) > fair:
        where = int(detail.position[topics][part.argmax()])
        return Reason.LARGE_PARTITION, f"its topic at 0x{where:08x} alone is at {part.max():.3g}: give it partitions"
    cut = _halves(detail.position[topics], load)
    return Reason.TOO_LARGE, "split it" if cut is None else f"split it at 0x{cut:08x}, which halves its load"


def _of(resource: str, stated: MappedProblem, load: Floats) -> Floats:
    """(topics,) what each topic takes of *resource*; of resources without a fit, its messages."""
    fit, driven = stated.fits.get(resource), drivers(load)
    if fit is None:
        rate: Floats = driven[:, 0]
        return rate
    return fit.usage_of(driven)


def _halves(position: Ints, load: Floats) -> int | None:
    """The position that divides the load most evenly; None where all topics have the same one."""
    order = np.argsort(position, kind="stable")
    below = np.cumsum(load[order])[:-1]
    uneven = np.abs(below - load.sum() / 2)
    uneven[position[order][1:] == position[order][:-1]] = np.inf
    return int(position[order][1:][uneven.argmin()]) if np.isfinite(uneven).any() else None

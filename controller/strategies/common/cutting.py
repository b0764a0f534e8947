"""Turn the positions of a split algorithm into cuts that can be carried out, or into a verdict why there are none.

Pulsar: NamespaceService.getSplitBoundary, NamespaceBundleFactory.canSplitBundle
"""

from typing import Final

from controller.model.bundle_ranges import divided
from controller.model.decision import Reason, Verdict
from controller.model.errors import TrimtabError
from controller.model.load import ClusterView
from controller.model.names import can_split, parse_bundle
from controller.strategies.protocols import SplitAlgorithm

#: Of a split, at most: all are in one command, and Kafka takes a command of 1 MiB at most.
MAX_CUTS: Final = 10_000


def cut(view: ClusterView, row: int, algorithm: SplitAlgorithm) -> tuple[int, ...] | Verdict:
    """Where *algorithm* cuts the bundle at *row*: ascending positions inside of it; or the verdict why it does not."""
    detail, bundle = view.bundles.detail, view.bundles.names[row]
    name = parse_bundle(bundle)

    def refused(reason: Reason, why: str = "") -> Verdict:
        return Verdict(subject=bundle, reason=reason, by=algorithm.name, detail=why)

    if not can_split(name.lower, name.upper):
        return refused(Reason.RANGE_TOO_SMALL)
    topics = slice(int(detail.starts[row]), int(detail.starts[row + 1]))
    if algorithm.needs_topic_detail and topics.start == topics.stop:
        return refused(Reason.NO_TOPIC_DETAIL, "waits an interval")
    cuts = algorithm.cuts(name.lower, name.upper, detail.position[topics], detail.load[topics])
    if isinstance(cuts, Reason):
        return refused(cuts)
    if len(cuts) > MAX_CUTS:
        return refused(Reason.IMPOSSIBLE_CUT, f"at {len(cuts)} positions, allowed: {MAX_CUTS}")
    try:
        return divided(name.lower, name.upper, cuts)[1:-1]
    except TrimtabError as error:
        return refused(Reason.IMPOSSIBLE_CUT, str(error))

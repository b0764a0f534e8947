"""The grace period: a bundle that was unloaded a short while ago stays, whichever strategy chose it."""

from typing import Final

from controller.model.decision import Reason, Verdict
from controller.model.load import ClusterView
from controller.model.reasons import THROTTLED, Meaning

MEANINGS: Final = {
    Reason.RECENTLY_UNLOADED: Meaning(
        THROTTLED, "the bundle was unloaded within loadBalancerSheddingGracePeriodMinutes"
    ),
}
#: ``by`` of the verdict on a bundle that was unloaded a short while ago.
GRACE_PERIOD: Final = "loadBalancerSheddingGracePeriodMinutes"


def in_grace(view: ClusterView, bundle: str) -> Verdict | None:
    """Why *bundle* is left alone if it was unloaded within the grace period, whichever strategy chose it; else None.

    A person's plan may move it.
    """
    row = view.bundles.code_of.get(bundle)
    if row is None or not view.recently_unloaded[row]:
        return None
    detail = "chosen by a strategy within its grace period: it stays"
    return Verdict(subject=bundle, reason=Reason.RECENTLY_UNLOADED, by=GRACE_PERIOD, detail=detail)

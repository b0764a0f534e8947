"""Bundles of namespaces without a namespace_state record stay: nobody knows their isolation policies."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from controller.cycle.guardrails.setting import switch
from controller.model.decision import CLUSTER, Reason, Verdict
from controller.model.load import Bools, ClusterView
from controller.model.names import is_system_owned
from controller.model.reasons import IMPOSSIBLE, Meaning
from controller.model.some_of import some_of

MEANINGS: Final = {
    Reason.NAMESPACE_UNKNOWN: Meaning(
        IMPOSSIBLE, "no namespace_state record describes the namespace: see the collectors, or move_undescribed"
    ),
}
#: Maximum number of namespaces that a verdict names.
_NAMED: Final = 5


@dataclass(frozen=True, kw_only=True)
class UndescribedLimits:
    """See the module docstring."""

    move_undescribed: bool = switch(
        default=False,
        meaning="Unload and split bundles of namespaces without a namespace_state record.  Their isolation policies and"
        " anti-affinity groups are unknown, so the default is false.  Set it to true where producers write none.",
    )


def undescribed(view: ClusterView, limits: UndescribedLimits) -> Bools:
    """(bundles,) whether a bundle must stay because no namespace_state record describes its namespace.

    Its isolation policy and anti-affinity group are not known then, so a move might violate them.
    """
    unknown = (view.namespace_bundle_count < 0) & (not limits.move_undescribed)
    of_bundles: Bools = unknown[view.bundles.namespace] if len(view.bundles) else np.zeros(0, np.bool_)
    return of_bundles


def about_undescribed(view: ClusterView, mask: Bools) -> list[Verdict]:
    """One verdict on the namespaces of the bundles in *mask*, without Pulsar's own; none if there are no others."""
    names = [view.bundles.namespaces[row] for row in np.unique(view.bundles.namespace[mask]).tolist()]
    names = [name for name in names if not is_system_owned(name)]
    if not names:
        return []
    return [
        Verdict(
            subject=CLUSTER,
            reason=Reason.NAMESPACE_UNKNOWN,
            observed=float(len(names)),
            unit="namespaces",
            by="guardrails.move_undescribed",
            detail=f"no namespace_state of {some_of(names, _NAMED)}: their bundles stay where they are",
        )
    ]

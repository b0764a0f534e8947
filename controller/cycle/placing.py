"""Where a bundle that leaves its broker goes."""

import zlib
from typing import Final

from controller.cycle.policy import Policy
from controller.model.decision import Reason, Unload, Verdict
from controller.model.load import ClusterView
from controller.model.memory import StrategyMemory
from controller.strategies.protocols import Filter

_NO_OTHER: Final = "no other broker may take it"


def place(
    view: ClusterView, unload: Unload, memory: StrategyMemory, seed: int, policy: Policy
) -> tuple[str, StrategyMemory, list[Verdict]]:
    """The broker for a bundle, or "": the planned one, else any acceptable one by the seed (Pulsar: at random).

    Never one that binding filters exclude, and never its own.  Where all that the other filters leave are overloaded,
    the modular load manager drops these.
    Pulsar: ModularLoadManagerImpl.doLoadShedding, ExtensibleLoadManagerImpl.selectAsync.
    """
    row, source = view.bundles.code_of[unload.bundle], view.brokers.code_of[unload.source]
    found = policy.selection.candidates(view, row, policy.filters)

    def refused(by: Filter, detail: str) -> Verdict:
        return Verdict(subject=unload.bundle, reason=by.reason, by=type(by).__name__, detail=detail)

    against = found.confines(source)
    if against is not None:
        return "", memory, [refused(against, _NO_OTHER)]
    against = found.anchored(view, row)
    if against is not None:
        return "", memory, [refused(against, "it had better stay")]
    verdicts = []
    if unload.destination:
        against = found.excludes(view.brokers.code_of[unload.destination])
        if against is None:
            return unload.destination, memory, []
        verdicts.append(refused(against, f"not to {unload.destination}, as was planned: placed anew"))
    acceptable, memory = policy.selection.acceptable(view, row, found, policy.placement, memory)
    others = acceptable[acceptable != source]
    if len(others) == 0:
        against, by = found.leaves_only(source), type(policy.placement).__name__
        if against is not None:
            return "", memory, [*verdicts, refused(against, _NO_OTHER)]
        same = Verdict(
            subject=unload.bundle, reason=Reason.SAME_BROKER, by=by, detail="no broker is better than its own"
        )
        return "", memory, [*verdicts, same]
    chance = zlib.crc32(f"{seed}/{view.as_of_ms}/{unload.bundle}".encode())
    return view.brokers.names[int(others[chance % len(others)])], memory, verdicts


def place_as_planned(view: ClusterView, unload: Unload, policy: Policy) -> tuple[str, list[Verdict]]:
    """The planned broker for a bundle that goes there or nowhere; "" with a verdict where a filter is against it."""
    row = view.bundles.code_of[unload.bundle]
    found = policy.selection.candidates(view, row, policy.filters)
    against = found.anchored(view, row) or found.excludes(view.brokers.code_of[unload.destination])
    if against is None:
        return unload.destination, []
    by, detail = type(against).__name__, f"not to {unload.destination}, so it stays"
    return "", [Verdict(subject=unload.bundle, reason=against.reason, by=by, detail=detail)]

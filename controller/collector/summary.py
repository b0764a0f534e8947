"""The answer of ``trimtab collect --dry-run``: what a collector would publish."""

from collections.abc import Mapping, Sequence
from typing import Any

from controller.collector.states import State
from controller.collector.sweeper import Swept
from controller.wire.answers.status import CollectAnswer
from controller.wire.chunks import glance
from controller.wire.metrics import BrokerStateRecord, BundleData, NamespaceStateRecord
from controller.wire.sweep import SweepHeader


def summary(
    interval: int, swept: Sequence[Swept], missing: Mapping[str, str], states: Sequence[State], *, leader: str
) -> CollectAnswer:
    """The answer about one sweep: *swept* brokers, *missing* ones with the reason, and the cluster's *states*."""
    brokers = {each.name.broker: _broker(each) for each in swept}
    for state in states:
        if isinstance(state, BrokerStateRecord) and state.broker in brokers:
            known = state.model_dump(
                by_alias=True, exclude_none=True, exclude={"v", "type", "cluster", "broker", "version"}
            )
            brokers[state.broker] |= known
    namespaces = [state for state in states if isinstance(state, NamespaceStateRecord)]
    return CollectAnswer(
        interval=interval,
        pulsar_leader=leader,
        brokers=brokers,
        missing=dict(missing),
        records=sum(len(each.records) for each in swept) + len(states),
        bytes=sum(len(value) for each in swept for _, value in each.records),
        namespaces={
            state.namespace: {
                "bundles": len(state.boundaries) - 1,
                "antiAffinityGroup": state.anti_affinity_group,
                "isolationPolicies": len(state.isolation_policies or ()),
            }
            for state in namespaces
        },
        stored_bundle_data=sum(isinstance(state, BundleData) for state in states),
    )


def _broker(swept: Swept) -> dict[str, Any]:
    header = glance(swept.records[0][1])
    assert isinstance(header, SweepHeader), "it was made so"
    own = {"v", "type", "cluster", "broker", "interval", "sweep_id", "chunk", "chunks"}
    return {"chunks": header.chunks, **header.model_dump(by_alias=True, exclude=own)}

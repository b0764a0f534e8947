"""What ``trimtab collect --dry-run`` says about a sweep."""

import json

from controller.collector.reports import BrokerReport, SweepName, listed_topics, swept
from controller.collector.states import ClusterPolicies, Namespace, State, bundle_data, namespace_state
from controller.collector.summary import summary
from controller.collector.sweeper import Swept
from controller.wire.chunks import json_chunks
from controller.wire.metrics import BrokerStateRecord

T = 1_795_233_660_000
QUOTA = {"msgRateIn": 1.0, "msgRateOut": 2.0, "bandwidthIn": 3.0, "bandwidthOut": 4.0, "memory": 5.0, "dynamic": True}


def sweep_of(broker: str) -> Swept:
    name = SweepName(cluster="lab", broker=broker, interval=T, sweep_id=f"{broker}@{T}")
    report = BrokerReport(last_update=T - 1, usage=((25.0, 100.0),) * 5, bundles={}, broker_version="4.0.8")
    columns, flaws = swept(name, report, listed_topics({}))
    return Swept(name=name, report=report, records=tuple(json_chunks(columns)), flaws=flaws, seconds=0.5)


def test_all_records_are_counted_and_each_broker_has_what_is_known_of_it() -> None:
    found = [sweep_of("b-0:8080"), sweep_of("b-1:8080")]
    states: list[State] = [
        BrokerStateRecord(cluster="lab", broker="b-0:8080", version=T, failure_domain="left"),
        BrokerStateRecord(cluster="lab", broker="b-9:8080", version=T, failure_domain="right"),
        namespace_state("lab", Namespace("lab/ns", (0, 1 << 31, 0xFFFFFFFF), "apart"), ClusterPolicies({}), version=T),
        bundle_data("lab", "lab/ns/0x00000000_0x80000000", "resource_quota", json.dumps(QUOTA).encode()),
    ]
    told = summary(T, found, {"b-2:8080": "refused"}, states, leader="b-1:8080")
    assert (told.records, told.stored_bundle_data) == (2 + 4, 1)
    assert told.bytes == sum(len(value) for each in found for _, value in each.records)
    assert told.namespaces == {"lab/ns": {"bundles": 2, "antiAffinityGroup": "apart", "isolationPolicies": 0}}
    assert (told.interval, told.pulsar_leader, told.missing) == (T, "b-1:8080", {"b-2:8080": "refused"})
    assert list(told.brokers) == ["b-0:8080", "b-1:8080"], "not those that were not swept"
    one, other = told.brokers.values()
    assert (one["failureDomain"], one["chunks"], one["lastUpdate"]) == ("left", 1, T - 1)
    assert one.keys() - other.keys() == {"failureDomain"}, "what a broker's state does not say is left out"
    assert not one.keys() & {"v", "type", "cluster", "broker", "version", "interval", "sweepId"}

"""Pulsar keeps short- and long-term sums of a broker's bundles; trimtab has use for the long-term ones alone, so both
are checked as long-term averages."""

import numpy as np

from controller.aggregate.columns.rows import NUMBERS
from controller.aggregate.snapshot import BrokerRow, Snapshot
from controller.aggregate.state.states import States
from controller.aggregate.view import assemble
from controller.model.load import Floats
from tests.conformance.vectors import Case, close_to, rows_of_4

COMPONENT = "time_average_broker_reset"
_BROKER = "broker-1:8080"


def test_a_broker_has_the_sum_of_its_bundles_averages(case: Case) -> None:
    names = sorted(case["input"]["bundles"])
    for term, key in (("short_term", "st"), ("long_term", "lt")):
        default = {key: case["config"]["default_stats"]}
        averages = rows_of_4([case["input"]["data"].get(name, default)[key] for name in names])
        [found] = assemble([_snapshot(names, averages)], {}, {}).brokers.long_term.tolist()
        assert found == close_to(case["expected"][term])


def _snapshot(names: list[str], long_term: Floats) -> Snapshot:
    zero, none = np.zeros(len(names), np.int64), np.zeros((len(names), 4))
    return Snapshot(
        interval=0,
        shard=0,
        shards=1,
        roster=(_BROKER,),
        unswept=(),
        brokers=(BrokerRow(broker=_BROKER, last_update=0, numbers=(0.0,) * NUMBERS),),
        namespaces=States.of(()),
        broker_states=States.of(()),
        results=(),
        late=0,
        unrostered=0,
        dropped=0,
        names=names,
        owner=zero,
        load=none,
        short_samples=zero,
        long_samples=zero,
        short_term=none,
        long_term=long_term,
        kinds=np.ones(len(names), np.uint8),
        topics=zero,
        producers=zero,
        consumers=zero,
        detail_size=zero,
        detail_position=np.zeros(0, np.int64),
        detail_load=np.zeros((0, 4)),
        detail_segment=np.zeros(0, np.int64),
    )

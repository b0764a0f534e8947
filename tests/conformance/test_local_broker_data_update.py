"""The usage is computed by aggregate/resource_usage, of the same report."""

import numpy as np

from controller.model.resource_usage import max_usage
from tests.conformance.brokers.local_broker_data import LocalBrokerData
from tests.conformance.vectors import Case, close_to, floats

COMPONENT = "local_broker_data_update"


def test_totals_gains_and_losses_are_those_of_pulsar(case: Case) -> None:
    data = LocalBrokerData()
    for given, expected in zip(case["input"]["rounds"], case["expected"]["rounds"], strict=True):
        if given["clean_deltas_first"]:
            data = data.without_deltas()
        stats = floats([number for row in given["stats"].values() for number in row]).reshape(-1, 7)
        topics, producers, consumers = stats[:, 4:].T.astype(np.int64)
        data = data.updated(list(given["stats"]), stats[:, :4], topics, producers, consumers)
        usage, limit = floats([number for row in given["usage"] for number in row]).reshape(1, 5, 2).transpose(2, 0, 1)
        assert data.load.tolist() == close_to(expected["load"])
        assert data.topics == expected["num_topics"]
        assert (data.producers, data.consumers) == (expected["num_producers"], expected["num_consumers"])
        assert (len(data.bundles), sorted(data.bundles)) == (expected["num_bundles"], expected["bundles"])
        assert (sorted(data.gains), sorted(data.losses)) == (expected["gains"], expected["losses"])
        assert max_usage(usage, limit).tolist() == [expected["max_resource_usage"]]

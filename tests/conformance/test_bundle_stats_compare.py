import numpy as np

from controller.strategies.common.bundle_stats_order import average_keys, connection_keys, stats_keys
from tests.bundle_order import compare
from tests.conformance.vectors import Case, floats

COMPONENT = "bundle_stats_compare"
#: The column of the message rate among the keys.
RATE = 2


def test_the_same_bundle_is_the_busier_one(case: Case) -> None:
    a, b = (floats(case["input"][side])[None, :] for side in "ab")
    (load_a, counts_a), (load_b, counts_b) = ((stats[:, :4], stats[0, 4:, None].astype(np.int64)) for stats in (a, b))
    connections_a, connections_b = counts_a[:3].sum(axis=0), counts_b[:3].sum(axis=0)
    stats_a = stats_keys(load_a, connections_a, counts_a[3])
    stats_b = stats_keys(load_b, connections_b, counts_b[3])
    found = {
        "bundle_stats_compare": compare(stats_a, stats_b),
        "time_average_compare": compare(average_keys(load_a), average_keys(load_b)),
        "by_msg_rate": np.sign(stats_a[:, RATE] - stats_b[:, RATE]),
        "by_topic_connections": np.sign(connection_keys(connections_a) - connection_keys(connections_b)),
    }
    assert {key: value.tolist() for key, value in found.items()} == {k: [v] for k, v in case["expected"].items()}

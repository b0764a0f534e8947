"""Which bundles get the last places of a namespace follows Pulsar's hash order, trimtab's name order; so compared are
the bundles over a limit and the splits per namespace, and in cases that no order changes the splits themselves."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from controller.model.decision import Reason
from controller.model.names import namespace_of
from controller.model.strategy_memory import NoMemory
from controller.strategies.splitting.bundle_splitter_task import BundleSplitterTask
from tests.cluster import broker_table, bundle_table, cluster_view
from tests.conformance.vectors import Case, configured, rows_of_4

COMPONENT = "bundle_splitter_task"
_NOTHING_KNOWN = [0.0] * 4
_UNKNOWN = -1


def test_the_same_bundles_are_split(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    brokers = sorted(given["broker_last_stats"])
    stats = {
        name: (code, numbers)
        for code, broker in enumerate(brokers)
        for name, numbers in given["broker_last_stats"][broker].items()
    }
    assert len(stats) == sum(map(len, given["broker_last_stats"].values()))
    names = sorted(stats)
    topics, producers, consumers = np.array([stats[n][1] for n in names], np.int64).reshape(-1, 3).T
    bundles = bundle_table(
        names,
        np.array([stats[n][0] for n in names], np.int64),
        long_term=rows_of_4([given["bundle_long_term"].get(n, _NOTHING_KNOWN) for n in names]),
        topics=topics,
        producers=producers,
        consumers=consumers,
    )
    counts = given["namespace_bundle_count"] | dict.fromkeys(given["count_fails"], _UNKNOWN)
    none = np.zeros((len(brokers), 5))
    view = cluster_view(broker_table(brokers, usage=none, limit=none), bundles, bundle_count=counts)

    decision, _ = configured(BundleSplitterTask, case["config"]).decide(view, NoMemory())

    too_small = {v.subject for v in decision.verdicts if v.reason is Reason.TOO_FEW_TOPICS}
    over = {v.subject for v in decision.verdicts} - too_small
    split = {s.bundle: s.broker for s in decision.splits}
    # Whether a bundle of a namespace without a count is eligible cannot be seen in Pulsar; it is never split.
    assert _counted(over, given) == _counted(expected["eligible_ignoring_max_bundles"], given)
    assert Counter(map(namespace_of, split)) == expected["split_per_namespace"]
    assert set(split.items()) <= {(name, brokers[stats[name][0]]) for name in over}
    if not case.get("order_sensitive"):
        assert split == expected["split"]


def _counted(bundles: Iterable[str], given: Mapping[str, Any]) -> set[str]:
    return {name for name in bundles if namespace_of(name) not in given["count_fails"]}

from dataclasses import replace

import numpy as np

from controller.strategies.filters.max_topics import MaxTopics
from tests.cluster import broker_table, bundle_table, cluster_view
from tests.conformance.vectors import Case, configured

COMPONENT = "filter_large_topic_count"


def test_the_same_brokers_have_room_for_topics(case: Case) -> None:
    brokers, candidates = case["input"]["brokers"], case["input"]["candidates"]
    names = sorted({*brokers, *candidates})
    # A broker without data counts as a broker without topics.
    topics = np.array([brokers.get(name, {"num_topics": 0})["num_topics"] for name in names], np.int64)
    none = np.zeros((len(names), 5))
    table = replace(broker_table(names, usage=none, limit=none), topic_count=topics)
    sent = [(row, n) for row, name in enumerate(names) for n in brokers.get(name, {}).get("preallocated_topics", ())]
    bundles = ["acme/test/asked", *(f"acme/test/sent-{i:04}" for i in range(len(sent)))]
    view = cluster_view(
        table,
        bundle_table(bundles, np.full(len(bundles), -1), topics=np.array([1, *(n for _, n in sent)], np.int64)),
    )
    for i, (row, _) in enumerate(sent):
        view = view.with_preallocated(i + 1, row)
    given = np.array([row for row, name in enumerate(names) if name in candidates], np.int64)
    kept = configured(MaxTopics, case["config"]).keep(view, 0, given)
    assert [names[row] for row in kept.tolist()] == sorted(case["expected"]["candidates"])

from dataclasses import replace

import numpy as np

from controller.strategies.filters.max_topics import MaxTopics
from tests.cluster import broker, bundle, view
from tests.filters import accepted_brokers, sent

_CLUSTER = view(broker("x", small=bundle(topics=1), big=bundle(topics=10)), broker("y"), broker("z"))
#: x has 11 topics, y 20, z 21.
CLUSTER = replace(_CLUSTER, brokers=replace(_CLUSTER.brokers, topic_count=np.array([11, 20, 21])))


def test_a_broker_above_the_limit_is_left_out_and_one_at_it_is_not() -> None:
    assert accepted_brokers(MaxTopics(max_topics=20), CLUSTER, "small") == ["x", "y"]


def test_topics_on_their_way_count() -> None:
    assert accepted_brokers(MaxTopics(max_topics=20), sent(CLUSTER, "small", "y"), "big") == ["x"]


def test_where_all_are_above_the_limit_none_is_left_out() -> None:
    assert accepted_brokers(MaxTopics(max_topics=10), CLUSTER, "small") == ["x", "y", "z"]
    assert accepted_brokers(MaxTopics(max_topics=20), CLUSTER, "small", of=("z",)) == ["z"]
    assert accepted_brokers(MaxTopics(max_topics=20), CLUSTER, "small", of=()) == []

"""Topics of bundles, one by one: what a bundle near a split threshold comes with."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from controller.model.load import RATE_IN, THROUGHPUT_IN, ClusterView, Floats, Ints, TopicDetail
from tests.cluster import MB

NO_POSITIONS = np.zeros(0, np.int64)
NO_LOAD = np.zeros((0, 4))


def at(*positions: int) -> Ints:
    """Topics at *positions*."""
    return np.array(positions, np.int64)


def loads(mbytes: Iterable[float], msg_rates: Iterable[float] | None = None) -> Floats:
    """Topics of so many MB/s each, of messages of 1 MB unless their rates are given."""
    of_each = np.array(list(mbytes), np.float64)
    load = np.zeros((len(of_each), 4))
    load[:, THROUGHPUT_IN] = of_each * MB
    load[:, RATE_IN] = of_each if msg_rates is None else list(msg_rates)
    return load


def with_topics(view: ClusterView, topics: Mapping[str, Mapping[int, float]]) -> ClusterView:
    """*view* with detail: bundle -> position -> MB/s."""
    of_row = [topics.get(name, {}) for name in view.bundles.names]
    detail = TopicDetail(
        starts=np.append(0, np.cumsum([len(one) for one in of_row])),
        position=at(*(position for one in of_row for position in one)),
        load=loads(mbytes for one in of_row for mbytes in one.values()),
    )
    return replace(view, bundles=replace(view.bundles, detail=detail))

"""A namespace on a real Pulsar cluster, for demos and tests: a topic in every bundle, all bundles on one broker."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count, cycle, islice, pairwise
from typing import Final

import numpy as np

from controller.adapters.pulsar.admin import PulsarAdmin, PulsarError
from controller.model.errors import TrimtabError
from controller.model.load import Floats
from controller.model.names import find_bundle, topic_hash

#: msg/s into the topics of eight bundles, of the next eight, and so on: few are hot, most are not.
RATES: Final = (60.0, 8.0, 20.0, 8.0, 20.0, 8.0, 20.0, 8.0)
_RATE_KEYS: Final = ("msgRateIn", "msgRateOut")
_TRIES: Final = 20
_CONFLICT: Final = 409
_AGAIN_SECONDS: Final = 0.2


class StageAdmin(PulsarAdmin):
    """Pulsar's admin API, with a call that creates a namespace."""

    def create_namespace(self, name: str, bundles: int) -> None:
        """The namespace *name* with so many bundles, and its tenant, where they are not there yet."""
        tenant = name.partition("/")[0]
        policies = {"bundles": {"numBundles": bundles}, "replication_clusters": [self._cluster]}
        self._put_once(f"/admin/v2/tenants/{tenant}", {"allowedClusters": [self._cluster]})
        self._put_once(f"/admin/v2/namespaces/{name}", policies)

    def _put_once(self, path: str, body: object) -> None:
        try:
            self._put(path, body)
        except PulsarError as error:
            if error.status != _CONFLICT:  # it is there already
                raise

    def _put(self, path: str, body: object) -> None:
        self._call("PUT", path, {}, body=json.dumps(body).encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A namespace, its bundles, and a topic in each of them."""

    admin: PulsarAdmin
    namespace: str
    bundles: tuple[str, ...]
    topics: tuple[str, ...]
    #: Topic -> msg/s that are to be sent to it.
    rates: Mapping[str, float]

    def gather(self, broker: str) -> None:
        """Bring all bundles to *broker*.  TrimtabError where one does not go there."""
        for bundle in self.bundles:
            self.bring(bundle, broker)

    def msg_rates(self, brokers: Sequence[str]) -> Floats:
        """(brokers,) msg/s in and out of this namespace's topics, as each of *brokers* tells it."""
        return np.array([self._msg_rate(broker) for broker in brokers])

    def _msg_rate(self, broker: str) -> float:
        ranges = self.admin.topic_stats(broker).get(self.namespace, {})
        topics = [topic for kinds in ranges.values() for named in kinds.values() for topic in named.values()]
        return float(sum(topic.get(key, 0.0) for topic in topics for key in _RATE_KEYS))

    def bring(self, bundle: str, broker: str) -> None:
        """Bring *bundle* to *broker*.  TrimtabError where it does not go there."""
        problem = ""
        for _ in range(_TRIES):
            try:
                # A lookup assigns an unowned bundle; only an owned bundle can be unloaded to a destination.
                if self.admin.lookup(bundle) == broker:
                    return
                self.admin.unload(bundle, broker)
            except PulsarError as error:
                problem = f": {error}"
                time.sleep(_AGAIN_SECONDS)
        raise TrimtabError(f"{bundle} does not go to {broker}{problem}")


def set_stage(admin: StageAdmin, namespace: str, bundles: int, rates: Sequence[float] = RATES) -> Stage:
    """Make *namespace* with so many *bundles*, and find the name of a topic for each.

    *rates*: msg/s of the first topics, of as many others behind them, and so on.
    """
    admin.create_namespace(namespace, bundles)
    boundaries = admin.boundaries(namespace)
    ranges = list(pairwise(boundaries))
    topic_of: dict[tuple[int, int], str] = {}
    for number in count():
        if len(topic_of) == len(ranges):
            break
        topic = f"persistent://{namespace}/topic-{number}"
        topic_of.setdefault(find_bundle(boundaries, topic_hash(topic)), topic)
    topics = tuple(topic_of[each] for each in ranges)
    return Stage(
        admin=admin,
        namespace=namespace,
        bundles=tuple(f"{namespace}/0x{lower:08x}_0x{upper:08x}" for lower, upper in ranges),
        topics=topics,
        rates=dict(zip(topics, islice(cycle(rates), len(topics)), strict=True)),
    )

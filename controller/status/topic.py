"""One scalable topic (Pulsar 5.0): which brokers serve its segments now, and how unevenly."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from controller.adapters.pulsar.admin import PulsarAdmin, PulsarError
from controller.aggregate.scalable_topics import serving_brokers
from controller.model.errors import TrimtabError
from controller.model.isolation_policies import isolation_policy
from controller.model.policies import Policies
from controller.model.topic_name import TopicName, excerpt, parse_topic
from controller.wire.base import printable

#: Names of rates in a segment's load record.
_RATES: Final = ("msgRateIn", "msgRateOut", "byteRateIn", "byteRateOut")
_ACTIVE: Final = "ACTIVE"
_MAX_RATE: Final = 1e15


class LiveSegment(NamedTuple):
    """An active segment as the brokers have it."""

    #: The first and the last hash of its keys.
    first: int
    last: int
    number: int
    #: "": no broker says that it serves it.
    owner: str
    #: msg/s in and out, bytes/s in and out, as its broker reported them last.
    load: tuple[float, float, float, float]

    @property
    def traffic(self) -> float:
        """Bytes/s in and out."""
        return self.load[2] + self.load[3]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTopic:
    """A scalable topic as the brokers have it now."""

    topic: str
    #: Why there is no such scalable topic; "" where there is.
    missing: str = ""
    #: Active ones, in the order of their keys.
    segments: tuple[LiveSegment, ...] = ()
    #: How many are sealed, and how many cannot be read.
    sealed: int = 0
    unreadable: int = 0
    #: Active brokers, and those of them that may serve the topic by isolation policies.
    brokers: int = 0
    may_serve: int = 0

    @property
    def on_brokers(self) -> dict[str, float]:
        """Broker -> bytes/s of the segments there, in + out; the most first."""
        traffic: dict[str, float] = {}
        for segment in self.segments:
            if segment.owner:
                traffic[segment.owner] = traffic.get(segment.owner, 0.0) + segment.traffic
        return dict(sorted(traffic.items(), key=lambda pair: (-pair[1], pair[0])))

    @property
    def unevenness(self) -> float | None:
        """Bytes/s of the busiest broker over the mean of all that may serve the topic; None without traffic."""
        traffic = self.on_brokers.values()
        mean = sum(traffic) / max(self.may_serve, 1)
        return max(traffic) / mean if mean > 0 else None


def scalable_topic_of(text: str) -> TopicName:
    """The scalable topic that *text* names, itself or by one of its segments.  TrimtabError."""
    topic = parse_topic(text).whole
    if not topic.is_scalable:
        raise TrimtabError(
            f"{excerpt(text)!r} is not a scalable topic: expected topic://tenant/namespace/topic, or one of its"
            " segments; `trimtab lookup` finds the bundle of an ordinary topic"
        )
    if "/" in topic.local_name:
        raise TrimtabError(
            f"{excerpt(text)!r}: a topic with / in its own name cannot be asked about by the brokers' REST API"
        )
    return topic


def live_topic(admin: PulsarAdmin, topic: TopicName) -> LiveTopic:
    """Ask the brokers about the scalable *topic*.  PulsarError."""
    try:
        layout = admin.scalable_topic(topic).get("layout")
    except PulsarError as error:
        if error.status == 404:
            return LiveTopic(topic=str(topic), missing=f"the cluster has no scalable topic {excerpt(str(topic))}")
        raise
    listed = layout.get("segments") if isinstance(layout, dict) else None
    entries = list(listed.values()) if isinstance(listed, dict) else []
    active = [each for each in entries if isinstance(each, dict) and each.get("state") == _ACTIVE]
    segments = sorted(_segments(topic, active))
    brokers = admin.brokers()
    policies = Policies(isolation=tuple(map(isolation_policy, admin.isolation_policies().values())))
    return LiveTopic(
        topic=str(topic),
        segments=tuple(segments),
        sealed=len(entries) - len(active),
        unreadable=len(active) - len(segments),
        brokers=len(brokers),
        may_serve=int(serving_brokers(policies, tuple(sorted(brokers)), topic.namespace).sum()),
    )


def _segments(topic: TopicName, entries: list[dict[str, Any]]) -> Iterator[LiveSegment]:
    """Those of *entries* that can be read and belong to *topic*."""
    for entry in entries:
        try:
            name = parse_topic(str(entry.get("name")))
        except TrimtabError:
            continue
        if name.segment is not None and name.whole == topic:
            load = entry.get("load")
            yield LiveSegment(
                first=name.segment.start,
                last=name.segment.end,
                number=name.segment.number,
                owner=printable(str(entry.get("ownerBroker") or "")),
                load=_load(load if isinstance(load, dict) else {}),
            )


def _load(load: Mapping[str, Any]) -> tuple[float, float, float, float]:
    rates = [load.get(name, 0.0) for name in _RATES]
    numbers = [float(rate) if isinstance(rate, int | float) and 0 <= rate <= _MAX_RATE else 0.0 for rate in rates]
    return numbers[0], numbers[1], numbers[2], numbers[3]

"""The kinds of topics that a bundle holds or a broker serves (persistent, non-persistent or both), a byte of flags.

A bundle's byte also says whether some of its topics are segments of scalable topics.

A broker refuses to load a topic of a kind that its broker.conf switches off (enablePersistentTopics,
enableNonPersistentTopics), whatever policy placed it there.

Pulsar: BrokerService.loadOrCreatePersistentTopic, BrokerService.getNonPersistentTopic
"""

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import or_
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

#: (n,) flags of bundles or brokers.
KindFlags: TypeAlias = NDArray[np.uint8]

PERSISTENT: Final = 1
NON_PERSISTENT: Final = 2
BOTH: Final = PERSISTENT | NON_PERSISTENT
#: The bundle has topics, and no record names them: their kinds are unknown.  Not a flag of brokers.
UNLISTED: Final = 4

#: Some of the bundle's topics are segments of scalable topics.  Not a flag of brokers.
SEGMENTS: Final = 8

#: What brokers write before the name of a non-persistent topic.  Every other domain is persistent, as in Pulsar: also
#: ``segment://`` of 5.0.
NON_PERSISTENT_DOMAIN: Final = "non-persistent://"
SEGMENT_DOMAIN: Final = "segment://"

#: What switches a kind on and off in broker.conf.  Pulsar: ServiceConfiguration.
SWITCHES: Final = {PERSISTENT: "enablePersistentTopics", NON_PERSISTENT: "enableNonPersistentTopics"}


def serves(settings: Mapping[str, str], kind: int) -> bool | None:
    """Whether a broker that runs with *settings* serves topics of *kind*; None where they do not say."""
    text = settings.get(SWITCHES[kind], "").strip().lower()
    return text == "true" if text in ("true", "false") else None


def kind_of(topic: str) -> int:
    """The flags of one topic, by its full name as brokers write it."""
    if topic.startswith(NON_PERSISTENT_DOMAIN):
        return NON_PERSISTENT
    return PERSISTENT | SEGMENTS if topic.startswith(SEGMENT_DOMAIN) else PERSISTENT


def kinds_of(topics: Iterable[str]) -> int:
    """The flags of *topics*, given by their full names; 0 where there are none."""
    return reduce(or_, map(kind_of, topics), 0)


def kinds_of_bundles(kinds: KindFlags, served: KindFlags) -> KindFlags:
    """(n,) the kinds that bundles hold or may hold: flags without UNLISTED.

    *kinds* (n,) are what records say, *served* (n,) what the broker of each bundle serves.  Where the kinds are not
    known, or no topic is loaded, the bundle may hold all that its broker serves.
    """
    unknown = (kinds & BOTH == 0) | (kinds & UNLISTED != 0)
    kinds_of_bundles: KindFlags = np.where(unknown, kinds | served, kinds) & np.uint8(BOTH | SEGMENTS)
    return kinds_of_bundles

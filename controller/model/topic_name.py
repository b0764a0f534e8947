"""Parses topic names as Pulsar does, and completes their short forms.

Since Pulsar 5.0 there are scalable topics, ``topic://tenant/namespace/topic``.  Their messages lie in segments, each of
which has a range of the keys' hashes and a number: ``segment://tenant/namespace/topic/0000-3fff-0``.  Each of these
names has a position of its own on the ring, that of the whole name, so segments of a topic lie in several bundles.

Names of every release are read: those with a cluster in them (V1) although Pulsar 5.0 refuses them.

Pulsar: org.apache.pulsar.common.naming.{TopicName, TopicDomain, NamespaceName, NamedEntity},
org.apache.pulsar.common.scalable.{HashRange, SegmentTopicName} (5.0)
"""

import re
from typing import Final, NamedTuple

from controller.model.errors import TrimtabError
from controller.model.names import topic_hash

#: The text between the name of a partitioned topic and the number of a partition.
PARTITION_SUFFIX: Final = "-partition-"
_ORDINARY: Final = ("persistent", "non-persistent")
_SCALABLE: Final = "topic"
_SEGMENT: Final = "segment"
_DOMAINS: Final = (*_ORDINARY, _SCALABLE, _SEGMENT)
#: Names of tenants, clusters and namespaces; the local name of a topic may have any characters.
_NAMED_ENTITY: Final = re.compile(r"[-=:.\w]+", re.ASCII)
_MAX_INT: Final = 2**31 - 1
_MAX_LONG: Final = 2**63 - 1
#: The last of the hashes that segments divide among themselves.
_MAX_KEY_HASH: Final = 0xFFFF
#: A number without a sign of minus, as Integer.parseInt and Long.parseLong read it.
_NUMBER: Final = re.compile(r"\+?[\da-fA-F]+")
#: Characters of a name that are shown.
_MOST_SHOWN: Final = 200
#: What Python makes of a byte of the command line that is not UTF-8; no such text has a place on the ring.
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
#: Python counts these as white space, Java does not.
_NOT_BLANK_IN_JAVA: Final = "\x85\xa0\u2007\u202f"
#: Java stores a digit beyond U+FFFF as two chars, and neither of them is a digit.
_END_OF_FIRST_PLANE: Final = "\uffff"


class Segment(NamedTuple):
    """The part of a scalable topic whose keys have the hashes *start* .. *end*, both included, 0 .. 0xffff."""

    start: int
    end: int
    number: int

    def __str__(self) -> str:
        return f"{self.start:04x}-{self.end:04x}-{self.number}"


class TopicName(NamedTuple):
    """``domain://tenant/namespace/local_name`` (V2), or ``domain://tenant/cluster/namespace/local_name`` (V1).

    A segment has its scalable topic's local name, and ``/<start>-<end>-<number>`` behind it.
    """

    domain: str
    tenant: str
    #: None in V2 names.
    cluster: str | None
    #: The namespace without its tenant.
    namespace_portion: str
    local_name: str
    #: That of the local name; -1 if the topic is not a partition.
    partition_index: int
    #: None if the topic is no segment.
    segment: Segment | None = None

    @property
    def namespace(self) -> str:
        """The full namespace, as in bundle names: with the tenant."""
        return "/".join(part for part in (self.tenant, self.cluster, self.namespace_portion) if part is not None)

    @property
    def position(self) -> int:
        """The topic's position on the hash ring, 0 .. 2**32-1."""
        return topic_hash(str(self))

    @property
    def is_scalable(self) -> bool:
        """Whether this is a scalable topic, whose messages lie in its segments."""
        return self.domain == _SCALABLE

    @property
    def whole(self) -> "TopicName":
        """The scalable topic that a segment belongs to; the topic itself if it is no segment."""
        return self if self.segment is None else self._replace(domain=_SCALABLE, segment=None)

    def partition(self, index: int) -> str:
        """The full name of partition *index*; the name itself for -1, or if it has that suffix already."""
        suffix = f"{PARTITION_SUFFIX}{index}"
        return str(self) if index == -1 or str(self).endswith(suffix) else str(self) + suffix

    def __str__(self) -> str:
        name = f"{self.domain}://{self.namespace}/{self.local_name}"
        return name if self.segment is None else f"{name}/{self.segment}"


def excerpt(name: str) -> str:
    """*name* as people are shown it: only the beginning of a very long one, for Pulsar allows names of any length."""
    return name if len(name) <= _MOST_SHOWN else f"{name[:_MOST_SHOWN]}... ({len(name):,} characters)"


def is_named_entity(text: str) -> bool:
    """Whether Pulsar allows *text* as the name of a tenant, cluster or namespace.  Pulsar: NamedEntity.checkName."""
    return _NAMED_ENTITY.fullmatch(text) is not None


def parse_topic(name: str) -> TopicName:
    """Parse *name*: a full name, ``tenant/namespace/topic``, or ``topic`` alone (in public/default).

    Raises TrimtabError that says what is wrong with the name.
    """
    if _SURROGATE.search(name) is not None:
        raise TrimtabError(f"{excerpt(name)!r} is not a topic: it is not valid UTF-8")
    full = name if "://" in name else _filled_in(name)
    domain, _, rest = full.partition("://")
    domain = domain.lower()
    if domain not in _DOMAINS:
        raise TrimtabError(
            f"{excerpt(name)!r} is not a topic: its domain is {excerpt(domain)!r}, not {', '.join(_DOMAINS)}"
        )
    # No other domains have V1 names, so the local name of a scalable topic may have slashes.
    parts = rest.split("/", 3 if domain in _ORDINARY else 2)
    if len(parts) < 3:
        raise TrimtabError(
            f"{excerpt(name)!r} is not a topic: expected domain://tenant/namespace/topic, or a short form of that"
        )
    tenant, *cluster, namespace, local = parts
    for part in (tenant, *cluster, namespace):
        if not is_named_entity(part):
            raise TrimtabError(
                f"{excerpt(name)!r} is not a topic: {excerpt(part)!r} is not a valid tenant, cluster or namespace"
                " (allowed: letters, digits and - = : . _)"
            )
    segment = None
    if domain == _SEGMENT:
        local, _, descriptor = local.rpartition("/")
        segment = _segment(name, descriptor)
    if _is_blank(local):
        raise TrimtabError(f"{excerpt(name)!r} is not a topic: the part after the namespace is blank")
    return TopicName(
        domain=domain,
        tenant=tenant,
        cluster=cluster[0] if cluster else None,
        namespace_portion=namespace,
        local_name=local,
        partition_index=partition_index(local),
        segment=segment,
    )


def partition_index(topic: str) -> int:
    """The partition number at the end of *topic*, or -1.

    As in Pulsar it counts only if Java can read it as an int and would write it with the same number of digits.
    """
    _, suffix, number = topic.rpartition(PARTITION_SUFFIX)
    if not suffix or not number.isdecimal() or max(number) > _END_OF_FIRST_PLANE:
        return -1
    # An int has at most ten digits.
    index = int(number[:11])
    return index if index <= _MAX_INT and len(number) == len(str(index)) else -1


def _segment(name: str, descriptor: str) -> Segment:
    """The segment *name*, which ends with *descriptor*."""
    # Java's split ignores empty parts at the end.
    parts = descriptor.rstrip("-").split("-")
    if len(parts) == 3:
        start, end = (_number(part, 16) for part in parts[:2])
        number = _number(parts[2], 10)
        if 0 <= start <= end <= _MAX_KEY_HASH and 0 <= number <= _MAX_LONG:
            return Segment(start, end, number)
    raise TrimtabError(
        f"{excerpt(name)!r} is not a segment: expected segment://tenant/namespace/topic/<start>-<end>-<number>, such as"
        f" {_SEGMENT}://acme/prod/orders/0000-3fff-0, with hexadecimal start <= end <= ffff;"
        f" {excerpt(descriptor)!r} is not that"
    )


def _number(text: str, base: int) -> int:
    """The number that Java reads in *text*, -1 where it reads none."""
    if _NUMBER.fullmatch(text) is None or max(text) > _END_OF_FIRST_PLANE:
        return -1
    try:
        return int(text, base)
    except ValueError:  # a letter in a decimal number, or thousands of digits
        return -1


def _filled_in(short: str) -> str:
    """The full form of a name without a domain; empty parts are ignored, as by Pulsar's splitter."""
    parts = [part for part in short.split("/") if part]
    if len(parts) == 3:
        return f"persistent://{short}"
    if len(parts) == 1:
        return f"persistent://public/default/{parts[0]}"
    raise TrimtabError(f"{excerpt(short)!r} is not a topic: a short name is topic or tenant/namespace/topic")


def _is_blank(text: str) -> bool:
    return all(char.isspace() and char not in _NOT_BLANK_IN_JAVA for char in text)

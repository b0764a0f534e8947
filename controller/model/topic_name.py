"""Parses topic names as Pulsar does, and completes their short forms.

Pulsar: org.apache.pulsar.common.naming.{TopicName, TopicDomain, NamespaceName, NamedEntity}
"""

import re
from typing import Final, NamedTuple

from controller.model.errors import TrimtabError
from controller.model.names import topic_hash

#: The text between the name of a partitioned topic and the number of a partition.
PARTITION_SUFFIX: Final = "-partition-"
_DOMAINS: Final = ("persistent", "non-persistent")
#: Names of tenants, clusters and namespaces; the local name of a topic may have any characters.
_NAMED_ENTITY: Final = re.compile(r"[-=:.\w]+", re.ASCII)
_MAX_INT: Final = 2**31 - 1
#: Python counts these as white space, Java does not.
_NOT_BLANK_IN_JAVA: Final = "\x85\xa0\u2007\u202f"
#: Java stores a digit beyond U+FFFF as two chars, and neither of them is a digit.
_END_OF_FIRST_PLANE: Final = "\uffff"


class TopicName(NamedTuple):
    """``domain://tenant/namespace/local_name`` (V2), or ``domain://tenant/cluster/namespace/local_name`` (V1)."""

    domain: str
    tenant: str
    #: None in V2 names.
    cluster: str | None
    #: The namespace without its tenant.
    namespace_portion: str
    local_name: str
    #: -1 if the topic is not a partition.
    partition_index: int

    @property
    def namespace(self) -> str:
        """The full namespace, as in bundle names: with the tenant."""
        return "/".join(part for part in (self.tenant, self.cluster, self.namespace_portion) if part is not None)

    @property
    def position(self) -> int:
        """The topic's position on the hash ring, 0 .. 2**32-1."""
        return topic_hash(str(self))

    def partition(self, index: int) -> str:
        """The full name of partition *index*; the name itself for -1, or if it has that suffix already."""
        suffix = f"{PARTITION_SUFFIX}{index}"
        return str(self) if index == -1 or str(self).endswith(suffix) else str(self) + suffix

    def __str__(self) -> str:
        return f"{self.domain}://{self.namespace}/{self.local_name}"


def is_named_entity(text: str) -> bool:
    """Whether Pulsar allows *text* as the name of a tenant, cluster or namespace.  Pulsar: NamedEntity.checkName."""
    return _NAMED_ENTITY.fullmatch(text) is not None


def parse_topic(name: str) -> TopicName:
    """Parse *name*: a full name, ``tenant/namespace/topic``, or ``topic`` alone (in public/default).

    Raises TrimtabError that says what is wrong with the name.
    """
    full = name if "://" in name else _filled_in(name)
    domain, _, rest = full.partition("://")
    if domain.lower() not in _DOMAINS:
        raise TrimtabError(f"{name!r} is not a topic: its domain is {domain!r}, not {' or '.join(_DOMAINS)}")
    parts = rest.split("/", 3)
    if len(parts) < 3:
        raise TrimtabError(
            f"{name!r} is not a topic: expected domain://tenant/namespace/topic, or a short form of that"
        )
    tenant, *cluster, namespace, local = parts
    for part in (tenant, *cluster, namespace):
        if not is_named_entity(part):
            raise TrimtabError(
                f"{name!r} is not a topic: {part!r} is not a valid tenant, cluster or namespace"
                " (allowed: letters, digits and - = : . _)"
            )
    if _is_blank(local):
        raise TrimtabError(f"{name!r} is not a topic: the part after the namespace is blank")
    return TopicName(
        domain=domain.lower(),
        tenant=tenant,
        cluster=cluster[0] if cluster else None,
        namespace_portion=namespace,
        local_name=local,
        partition_index=partition_index(full),
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


def _filled_in(short: str) -> str:
    """The full form of a name without a domain; empty parts are ignored, as by Pulsar's splitter."""
    parts = [part for part in short.split("/") if part]
    if len(parts) == 3:
        return f"persistent://{short}"
    if len(parts) == 1:
        return f"persistent://public/default/{parts[0]}"
    raise TrimtabError(f"{short!r} is not a topic: a short name is topic or tenant/namespace/topic")


def _is_blank(text: str) -> bool:
    return all(char.isspace() and char not in _NOT_BLANK_IN_JAVA for char in text)

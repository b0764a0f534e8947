"""A topic's name taken apart as Pulsar takes it apart, its short forms filled in.

Pulsar: org.apache.pulsar.common.naming.{TopicName, TopicDomain, NamespaceName, NamedEntity}
"""

import re
from typing import Final, NamedTuple

from controller.model.errors import TrimtabError
from controller.model.names import topic_hash

#: What stands between a partitioned topic's name and the number of a partition.
PARTITION_SUFFIX: Final = "-partition-"
_DOMAINS: Final = ("persistent", "non-persistent")
#: What the tenant, the cluster and the namespace may be made of; a topic's own name may hold anything.
_NAMED_ENTITY: Final = re.compile(r"[-=:.\w]+", re.ASCII)
_MAX_INT: Final = 2**31 - 1
#: Python takes these for white space, Java does not.
_NOT_BLANK_IN_JAVA: Final = "\x85\xa0\u2007\u202f"
#: Beyond the first plane a digit is two Java chars, neither of which is one.
_END_OF_FIRST_PLANE: Final = "\uffff"


class TopicName(NamedTuple):
    """``domain://tenant/namespace/local_name``, in the old form ``domain://tenant/cluster/namespace/local_name``."""

    domain: str
    tenant: str
    #: None in the present form.
    cluster: str | None
    #: The namespace without its tenant.
    namespace_portion: str
    local_name: str
    #: -1 for a topic that is no partition.
    partition_index: int

    @property
    def namespace(self) -> str:
        """The namespace as bundles carry it, tenant included."""
        return "/".join(part for part in (self.tenant, self.cluster, self.namespace_portion) if part is not None)

    @property
    def is_v2(self) -> bool:
        """Whether the name is of the present form, without a cluster."""
        return self.cluster is None

    @property
    def is_partitioned(self) -> bool:
        """Whether it is a partition of a partitioned topic."""
        return self.partition_index != -1

    @property
    def partitioned_topic_name(self) -> str:
        """The full name of the topic that this is a partition of; its own where it is none."""
        return str(self).rpartition(PARTITION_SUFFIX)[0] if self.is_partitioned else str(self)

    @property
    def position(self) -> int:
        """Where it lies on the hash ring, 0 .. 2**32-1."""
        return topic_hash(str(self))

    def partition(self, index: int) -> str:
        """The full name of partition *index*; this very name for -1, and where it ends like that already."""
        suffix = f"{PARTITION_SUFFIX}{index}"
        return str(self) if index == -1 or str(self).endswith(suffix) else str(self) + suffix

    def __str__(self) -> str:
        return f"{self.domain}://{self.namespace}/{self.local_name}"


def parse_topic(name: str) -> TopicName:
    """Take *name* apart: a full one, ``tenant/namespace/topic``, or ``topic`` alone, which lies in public/default.

    Raises TrimtabError naming what is wrong with it.
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
        if not _NAMED_ENTITY.fullmatch(part):
            raise TrimtabError(
                f"{name!r} is not a topic: {part!r} is no name of a tenant, cluster or namespace"
                " (letters, digits and any of - = : . _)"
            )
    if _is_blank(local):
        raise TrimtabError(f"{name!r} is not a topic: its own name is blank")
    return TopicName(
        domain=domain.lower(),
        tenant=tenant,
        cluster=cluster[0] if cluster else None,
        namespace_portion=namespace,
        local_name=local,
        partition_index=partition_index(full),
    )


def partition_index(topic: str) -> int:
    """The number at the end of a partition's name, or -1: one that Java reads as an int and would write as long."""
    _, suffix, number = topic.rpartition(PARTITION_SUFFIX)
    if not suffix or not number.isdecimal() or max(number) > _END_OF_FIRST_PLANE:
        return -1
    # Eleven digits are more than an int has, whatever they are.
    index = int(number[:11])
    return index if index <= _MAX_INT and len(number) == len(str(index)) else -1


def _filled_in(short: str) -> str:
    """The full form of a name without a domain; Java's split sees no empty parts, and neither does this."""
    parts = [part for part in short.split("/") if part]
    if len(parts) == 3:
        return f"persistent://{short}"
    if len(parts) == 1:
        return f"persistent://public/default/{parts[0]}"
    raise TrimtabError(f"{short!r} is not a topic: a short name is topic or tenant/namespace/topic")


def _is_blank(text: str) -> bool:
    return all(char.isspace() and char not in _NOT_BLANK_IN_JAVA for char in text)

"""Names of bundles and namespaces as Pulsar writes them, and the positions of topics on the hash ring.

Pulsar: org.apache.pulsar.common.naming.{TopicName, NamespaceBundle, NamespaceBundles},
ConsistentHashingTopicBundleAssigner (always CRC32 of the full topic name).
"""

import re
import zlib
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from controller.model.errors import TrimtabError

FULL_LOWER = 0x00000000
#: The ring's end; only the last bundle includes it.
FULL_UPPER = 0xFFFFFFFF

#: Characters not allowed in a name: control characters, line breaks of every kind, lone surrogates.  Names are printed,
#: logged, and joined by line breaks.  Topic names may have any character: they are only hashed.
NO_NAME_HAS = r"\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
#: Maximum length of a name, in characters; about ten times the usual length.  Names are kept in the state and in every
#: snapshot, and a bundle name contains the names of its tenant and namespace.
LONGEST_NAME = 1024

_NOT_IN_NAMES = re.compile(f"[{NO_NAME_HAS}]")
_PART = f"[^/{NO_NAME_HAS}]+"
_BUNDLE = re.compile(
    rf"(?P<namespace>{_PART}/{_PART}(?:/{_PART})?)/0x(?P<lower>[0-9a-f]{{8}})_0x(?P<upper>[0-9a-f]{{8}})"
)
_SYSTEM_NAMESPACES = frozenset({"pulsar/system"})
#: SLA monitor: ``sla-monitor/cluster/host:port``, or ``sla-monitor/host:port`` since Pulsar 4.2; heartbeat:
#: ``pulsar/host:port`` or ``pulsar/cluster/host:port``.  A host may be an IPv6 address, with or without brackets, which
#: Pulsar's own patterns do not match (apache/pulsar 14732).  As there, a port is of ASCII digits.
_BROKER_OWN_NAMESPACE = re.compile(r"(?:sla-monitor|pulsar)/.*[^/]:\d+", re.ASCII)


class BundleName(NamedTuple):
    """A parsed bundle name: ``tenant/ns/0xLLLLLLLL_0xUUUUUUUU``."""

    namespace: str
    lower: int
    upper: int

    @property
    def range(self) -> str:
        """The range, as in Pulsar's admin API: ``0xLLLLLLLL_0xUUUUUUUU``."""
        return f"0x{self.lower:08x}_0x{self.upper:08x}"

    def __str__(self) -> str:
        return f"{self.namespace}/{self.range}"


def parse_bundle(name: str) -> BundleName:
    """Parse *name*; raises TrimtabError with the expected form if it is not a bundle name."""
    match = _BUNDLE.fullmatch(name) if len(name) <= LONGEST_NAME else None
    if match is not None:
        bundle = BundleName(match["namespace"], int(match["lower"], 16), int(match["upper"], 16))
        if bundle.lower < bundle.upper:
            return bundle
    quoted = repr(name) if len(name) <= LONGEST_NAME else f"a text of {len(name)} characters"
    hint = "; `trimtab lookup` finds the bundle of a topic" if "://" in name else ""
    raise TrimtabError(
        f"{quoted} is not a bundle name: expected tenant/namespace/0xLLLLLLLL_0xUUUUUUUU with lower < upper{hint}"
    )


def is_bundle(text: str) -> bool:
    """Whether *text* has the form of a bundle's name."""
    return len(text) <= LONGEST_NAME and _BUNDLE.fullmatch(text) is not None


def is_name(text: str) -> bool:
    """Whether *text* is a valid name (of a broker, a sweep, a namespace): not empty, printable, not too long."""
    return 0 < len(text) <= LONGEST_NAME and _NOT_IN_NAMES.search(text) is None


def namespace_of(bundle: str) -> str:
    """The namespace of *bundle*: everything before the last slash; the name is not checked."""
    return bundle.rpartition("/")[0]


def is_system_owned(namespace: str) -> bool:
    """True for namespaces whose bundles no load manager moves: heartbeat, SLA monitor, system.

    Pulsar: NamespaceService.isSystemServiceNamespace, isHeartbeatNamespace, isSLANamespace.
    """
    return namespace in _SYSTEM_NAMESPACES or is_broker_own(namespace)


def is_broker_own(namespace: str) -> bool:
    """True for the heartbeat or SLA monitor namespace of one broker, which only that broker may serve.

    Pulsar: NamespaceService.isSLAOrHeartbeatNamespace.
    """
    # Namespaces of users hardly ever contain a colon, so the regex seldom runs.
    return ":" in namespace and _BROKER_OWN_NAMESPACE.fullmatch(namespace) is not None


def topic_hash(topic: str) -> int:
    """Position of a full topic name on the ring, 0 .. 2**32-1.

    Pulsar: NamespaceBundleFactory.getLongHashCode with its default CRC32.
    """
    return zlib.crc32(topic.encode())


def find_bundle(boundaries: Sequence[int], position: int) -> tuple[int, int]:
    """The (lower, upper) pair of *boundaries* that holds *position*.

    Raises IndexError for a position in no bundle.  As in Pulsar, 0xffffffff is one (tests/vectors/README.md).
    Pulsar: NamespaceBundles.getBundle.
    """
    i = bisect_right(boundaries, position) - 1
    if not 0 <= i < len(boundaries) - 1:
        raise IndexError(f"no bundle holds the position 0x{position:08x}")
    return boundaries[i], boundaries[i + 1]


def default_boundaries(bundles: int) -> tuple[int, ...]:
    """The *bundles* + 1 boundaries of a new namespace: multiples of one step, then the end of the ring.

    *bundles* is 1 .. 2**32.  Pulsar: PoliciesUtil.getBundles.
    """
    step = (FULL_UPPER + 1) // bundles
    return (*(i * step for i in range(bundles)), FULL_UPPER)


def can_split(lower: int, upper: int) -> bool:
    """Whether a bundle's range has a position inside to split at.  Pulsar: NamespaceBundleFactory.canSplitBundle."""
    return upper > lower + 1

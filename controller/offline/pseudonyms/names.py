"""Other names for tenants, namespaces, topics and hosts: the same one for a name every time, made with a secret key.

Where names decide, they decide as before.  A topic keeps its place on the hash ring: its pseudonym ends with digits
that give it the same CRC32.  A segment keeps its hash range and its number, too, behind a name that all segments of its
topic share.  Brokers that are known beforehand keep their order.  What the name of a namespace means to
Pulsar (heartbeat, SLA monitor, system) stays.
"""

import hashlib
import hmac
import re
import zlib
from collections.abc import Collection
from functools import lru_cache
from typing import Final

from controller.model.errors import TrimtabError
from controller.model.names import BundleName, is_broker_own, parse_bundle, topic_hash
from controller.model.topic_kinds import NON_PERSISTENT, NON_PERSISTENT_DOMAIN, kind_of
from controller.model.topic_name import TopicName, parse_topic

_SYSTEM: Final = frozenset({"pulsar/system"})
_PARTITION: Final = re.compile(r"-partition-\d{1,9}\Z", re.ASCII)
_PORT: Final = re.compile(r":\d{1,5}\Z", re.ASCII)
#: Octal digits that bring a topic's name to its place: three free bits each, and 32 bits to reach.
_DIGITS: Final = 12
_BITS: Final = 32
#: Hex digits of a pseudonym.
_LETTERS: Final = 10


class Pseudonyms:
    """The other names, by *key*."""

    def __init__(self, key: bytes, *, brokers: Collection[str] = ()) -> None:
        """*brokers*: those that keep their order."""
        self._key = key
        width = len(str(len(brokers)))
        self._brokers = {name: f"b{i:0{width}d}-" for i, name in enumerate(sorted(brokers), start=1)}
        self.topic = lru_cache(maxsize=1 << 20)(self._topic)
        self.namespace = lru_cache(maxsize=1 << 18)(self._namespace)

    def text(self, kind: str, name: str) -> str:
        """Another text for *name*, which is one of *kind*; "" for "" alone."""
        if not name:
            return ""
        digest = hmac.new(self._key, f"{kind}\0{name}".encode(errors="surrogatepass"), hashlib.sha256)
        return f"{kind}-{digest.hexdigest()[:_LETTERS]}"

    def broker(self, name: str) -> str:
        """``host:port`` with another host and the same port."""
        if not name:
            return ""
        port = _PORT.search(name)
        host = name[: port.start()] if port else name
        order = self._brokers.get(name, "")
        return f"{order}{self.text('host', host)}{port[0] if port else ''}"

    def bundle(self, name: str) -> str:
        """The same range of another namespace.  TrimtabError where it is no bundle."""
        parts = parse_bundle(name)
        return str(BundleName(self.namespace(parts.namespace), parts.lower, parts.upper))

    def _namespace(self, name: str) -> str:
        if name in _SYSTEM:
            return name
        if "/" not in name:
            return self.text("nsp", name)
        first, *middle, last = name.split("/")
        if is_broker_own(name):
            return "/".join([first, *(self.text("clu", each) for each in middle), self.broker(last)])
        # The same local name in two tenants is two names.
        return "/".join([self.text("ten", first), *(self.text("clu", each) for each in middle),
                         self.text("nsp", name)])  # fmt: skip

    def namespace_or_bundle(self, name: str) -> str:
        """Another name for either."""
        try:
            return self.bundle(name)
        except TrimtabError:
            return self.namespace(name)

    def _topic(self, name: str) -> str:
        topic = _parsed(name)
        whole = name if topic is None else str(topic.whole)
        partition = _PARTITION.search(whole)
        end = partition[0] if partition else ""
        head = NON_PERSISTENT_DOMAIN if kind_of(name) & NON_PERSISTENT else ""
        head = head if topic is None else f"{topic.domain}://{self.namespace(topic.namespace)}/"
        local = self.text("top", whole.removesuffix(end) if end else whole)
        # CRC32 goes on from that of what stands before: the same tail keeps equal hashes equal.
        tail = "" if topic is None or topic.segment is None else f"/{topic.segment}"
        return _with_hash(f"{head}{local}-", end, topic_hash(name.removesuffix(tail))) + tail


def _parsed(name: str) -> TopicName | None:
    """*name*, where it is the full name of a topic as Pulsar writes it."""
    try:
        topic = parse_topic(name)
    except TrimtabError:
        return None
    return topic if str(topic) == name else None


def _with_hash(head: str, end: str, position: int) -> str:
    """*head*, some digits and *end*, which together have the hash *position*."""
    far = position ^ topic_hash(f"{head}{'0' * _DIGITS}{end}")
    flips = 0
    for bit, way in enumerate(_ways(len(end.encode()))):
        if far >> bit & 1:
            flips ^= way
    digits = "".join(str(flips >> (3 * i) & 7) for i in range(_DIGITS))
    return f"{head}{digits}{end}"


@lru_cache(maxsize=16)
def _ways(behind: int) -> tuple[int, ...]:
    """For each bit of the hash which bits of the digits to flip, so that it alone changes; *behind*: bytes that follow.

    CRC32 is linear: flipping a bit of the text changes the same bits of the hash, whatever else is in the text.
    """
    zero = zlib.crc32(bytes(_DIGITS + behind))
    rows: list[tuple[int, int]] = []
    for flip in range(3 * _DIGITS):
        text = bytearray(_DIGITS + behind)
        text[flip // 3] = 1 << (flip % 3)
        rows.append((zlib.crc32(bytes(text)) ^ zero, 1 << flip))
    for bit in range(_BITS):
        pivot = next(i for i in range(bit, len(rows)) if rows[i][0] >> bit & 1)
        rows[bit], rows[pivot] = rows[pivot], rows[bit]
        hash_of, flips = rows[bit]
        rows = [
            (value ^ hash_of, way ^ flips) if i != bit and value >> bit & 1 else (value, way)
            for i, (value, way) in enumerate(rows)
        ]
    return tuple(way for _, way in rows[:_BITS])

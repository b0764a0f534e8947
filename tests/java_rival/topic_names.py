"""Random names of topics, scalable topics and segments, many of them invalid."""

from random import Random
from typing import Final

_DOMAINS: Final = (
    ("segment",) * 6 + ("topic",) * 3 + ("persistent", "non-persistent", "Segment", "segments", "", " topic")
)
_ENTITIES: Final = ("acme", "a", "prod", "a.b:c=d-1", "x_y", "public", "", "a b", "\u00fc", "a!")
_LOCALS: Final = (
    "orders", "a/b", "orders-partition-3", "orders-partition-03", "a%2Fb", "-", "a-b-c", " ", "", "\u00a0", "\u00fc",
    "0000-3fff-0", "a/0000-3fff-0", "a-partition-2/b", "x://y", "a/", "/a", "a//b", "\U0001f600", "a b", "a?b#c",
)  # fmt: skip
_HASHES: Final = (
    "0000", "3fff", "4000", "ffff", "FFFF", "0", "7F", "10000", "0000003fff", "+1", "-1", "", " 1", "g", "0x1", "1_0",
    "\u0663", "\U0001d7d8", "00000000000000000001", "7fffffff", "ffffffff", "100000000", "1.0",
)  # fmt: skip
_NUMBERS: Final = (
    "0", "1", "63", "007", "+5", "-1", "", "a", "9223372036854775807", "9223372036854775808", " 2", "2 ", "\u0663",
    "1_0", "1e3", "0" * 30 + "7",
)  # fmt: skip


def topic_name(random: Random) -> str:
    """A random name; every third one has a flaw or two."""
    if random.random() < 0.05:
        return "/".join(_some(random, _LOCALS, 8) for _ in range(random.randint(1, 4)))
    domain = random.choice(_DOMAINS)
    parts = [_some(random, _ENTITIES, 6), _some(random, _ENTITIES, 6), random.choice(_LOCALS)]
    if domain.lower() == "segment" and random.random() < 0.95:
        parts.append(_descriptor(random))
    elif random.random() < 0.1:
        parts.append(random.choice(_LOCALS))
    if random.random() < 0.05:
        del parts[random.randrange(len(parts))]
    return f"{domain}://{'/'.join(parts)}"


def _descriptor(random: Random) -> str:
    start, end = sorted(random.randrange(1 << 16) for _ in range(2))
    parts = [f"{start:04x}", f"{end:04x}", str(random.randrange(70))]
    for place, odd in enumerate((_HASHES, _HASHES, _NUMBERS)):
        if random.random() < 0.2:
            parts[place] = random.choice(odd)
    parts += [""] * (random.random() < 0.05)
    parts += ["0"] * (random.random() < 0.03)
    return random.choice("/-_").join(parts) if random.random() < 0.03 else "-".join(parts)


def _some(random: Random, names: tuple[str, ...], good: int) -> str:
    """Mostly one of the first *good* of *names*."""
    return random.choice(names[:good] if random.random() < 0.93 else names)

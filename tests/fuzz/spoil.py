"""Valid samples spoilt at random: as bytes, as JSON trees, as text of lines.  The same seed spoils in the same way."""

import json
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from random import Random
from typing import Any, TypeAlias

Spoil: TypeAlias = Callable[[bytes, Random], bytes]

#: Where lengths, counts, depths and characters go wrong.
NUMBERS: tuple[Any, ...] = (
    0, -1, 1, 2**31 - 1, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, 2**63, 2**64, -(2**63), 10**1000, -0.0,
    0.5, 1e308, 1e-320, float("nan"), float("inf"), 10**12, 10**12 + 1,
)  # fmt: skip
TEXTS: tuple[str, ...] = (
    "", "\n", "a\nb", "\r", "\0", "\x1b[2J", "\x7f", "\x85", "\u2028", "\ud800", "é", "😀", "a" * 1024, "a" * 1025,
    "x" * 70_000, "NaN", "Infinity", "0x00000000_0x00000000", "a/b/0x00000000_0xffffffff", "http://h:1/", "../../etc",
)  # fmt: skip
ODD: tuple[Any, ...] = (None, True, False, [], {}, [[]], [None], {"": {}}, {"bundle": 1}, [{}] * 50)
_LENGTHS = (0, 1, 7, 8, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**32 - 1, 2**62, 2**63 - 1, 2**64 - 1)


def spoilt_bytes(value: bytes, rng: Random) -> bytes:
    """*value* with a few bytes changed, taken away, doubled, or replaced by a length that cannot be."""
    spoilt = bytearray(value)
    for _ in range(rng.choice((1, 1, 1, 2, 5, 20))):
        at = rng.randrange(len(spoilt) + 1)
        match rng.randrange(7):
            case 0 if spoilt:
                spoilt[at % len(spoilt)] ^= 1 << rng.randrange(8)
            case 1:
                del spoilt[at : at + rng.choice((1, 2, 8, 64))]
            case 2:
                spoilt[at:at] = rng.randbytes(rng.choice((1, 4, 8)))
            case 3:
                spoilt[at : at + 4] = (rng.choice(_LENGTHS) % 2**32).to_bytes(4, "little")
            case 4:
                aligned = at // 8 * 8
                spoilt[aligned : aligned + 8] = rng.choice(_LENGTHS).to_bytes(8, "little")
            case 5:
                end = rng.randrange(len(spoilt) + 1)
                spoilt[at:at] = spoilt[min(at, end) : max(at, end)][:4096]
            case _ if rng.random() < 0.3:
                del spoilt[at:]
    return bytes(spoilt)


def spoilt_json(value: bytes, rng: Random) -> bytes:
    """The JSON *value* with a few of its parts replaced, left out, renamed, given twice or nested deeply."""
    tree = json.loads(value)
    for _ in range(rng.choice((1, 1, 2, 4))):
        places = list(_places(tree))
        if places:
            here, key = rng.choice(places)
            _spoil(here, key, rng)
    if rng.random() < 0.05:
        tree = _deep(tree, rng.choice((50, 150, 190)))
    text = json.dumps(tree, ensure_ascii=rng.random() < 0.5)
    if rng.random() < 0.02:  # deeper than Python itself could write
        levels = rng.choice((210, 5000))
        text = '{"a":[' * levels + text + "]}" * levels
    if rng.random() < 0.2:
        text = text.replace("NaN", "1e999").replace("Infinity", "1" * 1001)
    spoilt = text.encode(errors="surrogatepass")
    return spoilt_bytes(spoilt, rng) if rng.random() < 0.1 else spoilt


def spoilt_lines(value: bytes, rng: Random) -> bytes:
    """Lines of *value* left out, doubled, swapped, given another value; or its bytes spoilt."""
    lines = value.split(b"\n")
    for _ in range(rng.choice((1, 2, 5))):
        at = rng.randrange(len(lines))
        key, cut, _ = lines[at].partition(b"=")
        match rng.randrange(5):
            case 0 if cut:
                odd = rng.choice((*NUMBERS[:8], *TEXTS, "[]", "{}", "[" * 3000, "true", "'", '"a', "9" * 5000))
                lines[at] = key + b"=" + str(odd).encode(errors="surrogatepass")
            case 1:
                lines[at : at + 1] = []
            case 2:
                lines.insert(at, rng.choice(lines) if lines else b"")
            case 3 if lines:
                lines[at % len(lines)] = spoilt_bytes(lines[at % len(lines)], rng)
            case _:
                lines.insert(at, rng.choice((b"a.b.c = 1", b"[a]", b"[[a]]", b"\\u12", b"a" * 5000, b"\xff\xfe", b"=")))
        lines = lines or [b""]
    return b"\n".join(lines)


def spoilt(samples: Sequence[bytes], spoil: Spoil, seed: int) -> bytes:
    """One of *samples*, spoilt by chance, or bytes of pure chance."""
    rng = Random(seed)
    if rng.random() < 0.03:
        return rng.choice((b"", b"\xff\xff\xff\xff", b"{", b"[")) + rng.randbytes(rng.randrange(200))
    return spoil(rng.choice(samples), rng)


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) in *tree*."""
    waiting = [tree]
    while waiting:
        here = waiting.pop()
        keys = list(here) if isinstance(here, dict) else range(min(len(here), 8)) if isinstance(here, list) else ()
        for key in keys:
            yield here, key
            waiting.append(here[key])


def _spoil(here: Any, key: Any, rng: Random) -> None:
    if isinstance(here, list) and key >= len(here):
        return
    if isinstance(here, dict) and key not in here:
        return
    match rng.randrange(8):
        case 0 | 1:
            here[key] = rng.choice(NUMBERS)
        case 2 | 3:
            here[key] = rng.choice(TEXTS)
        case 4:
            here[key] = deepcopy(rng.choice(ODD))
        case 5:
            del here[key]
        case 6 if isinstance(here, dict):
            here[rng.choice(TEXTS)] = here.pop(key)
        case _:
            here[key] = _deep(here[key], rng.choice((1, 3, 60)))


def _deep(value: Any, levels: int) -> Any:
    for level in range(levels):
        value = [value] if level % 2 else {"report": value}
    return value

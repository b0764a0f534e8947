"""Patterns of namespaces: ``*`` in a part of the name stands for any text without a slash."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

ANY: Final = "*"


def is_pattern(name: str) -> bool:
    """Whether *name* is a pattern, and no name."""
    return ANY in name


def matches(pattern: str, namespace: str) -> bool:
    """Whether *namespace* is *pattern*, or has as many parts, each of which fits.  Linear in the name's length."""
    parts, texts = pattern.split("/"), namespace.split("/")
    return len(parts) == len(texts) and all(map(_fits, parts, texts))


def _fits(part: str, text: str) -> bool:
    first, *middle = part.split(ANY)
    if not middle:
        return part == text
    last = middle.pop()
    if len(text) < len(first) + len(last) or not (text.startswith(first) and text.endswith(last)):
        return False
    # The leftmost place of each piece leaves the most room for the next.
    at, end = len(first), len(text) - len(last)
    for piece in middle:
        position = text.find(piece, at, end)
        if position < 0:
            return False
        at = position + len(piece)
    return True


@dataclass(frozen=True, slots=True)
class Namespaces:
    """A set of namespaces, by name and by pattern."""

    names: frozenset[str]
    patterns: tuple[str, ...]

    @classmethod
    def of(cls, entries: Iterable[str]) -> "Namespaces":
        """Those that *entries*, names and patterns, name."""
        names = frozenset(entries)
        return cls(frozenset(each for each in names if not is_pattern(each)), tuple(sorted(filter(is_pattern, names))))

    def __contains__(self, namespace: str) -> bool:
        return namespace in self.names or any(matches(each, namespace) for each in self.patterns)

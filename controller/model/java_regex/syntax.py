"""The parts of a regular expression, as the parser finds them and the translation reads them."""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Char:
    """One character, as it is."""

    char: str


@dataclass(frozen=True, slots=True)
class OneOf:
    """One character of a set of ASCII ones; see ascii_sets."""

    mask: int


@dataclass(frozen=True, slots=True)
class Sequence:
    """One part after the other."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """One of several."""

    options: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part, *min_count* to *max_count* times; None: without a limit.

    Which of them is tried first makes a difference in an atomic group alone.
    """

    part: "Node"
    min_count: int
    max_count: int | None
    lazy: bool = False
    possessive: bool = False


@dataclass(frozen=True, slots=True)
class Edge:
    r"""A position: ``^`` the start, ``$`` the end, ``\b`` a border of a word, ``\B`` none."""

    re2: str


@dataclass(frozen=True, slots=True)
class Lookaround:
    """A look at what follows, or at what stands before."""

    part: "Node"
    ahead: bool
    negative: bool


@dataclass(frozen=True, slots=True)
class Atomic:
    """A part that is not tried in a second way once it matched."""

    part: "Node"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A part that may match anything, or nothing: *why* says what it is."""

    why: str


Node: TypeAlias = Char | OneOf | Sequence | Alternation | Repeat | Edge | Lookaround | Atomic | Unreadable

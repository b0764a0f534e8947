"""From the parts of a Java expression to RE2, which matches in linear time.

What RE2 lacks is first brought into a form that it has and that matches the same texts: a look at the text around a
place that is always equally far from the start or the end becomes an expression of its own, and a possessive repetition
behind which nothing can begin with what it repeats is an ordinary one.  The rest is refused by name, and *bounded*: the
expression that stands for it matches whatever the given one could match, and more.
"""

import re
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field, replace
from typing import Final

from controller.model.java_regex import ascii_sets as sets
from controller.model.java_regex.syntax import (
    Alternation,
    Atomic,
    Char,
    Edge,
    Lookaround,
    Node,
    OneOf,
    Repeat,
    Sequence,
    Unreadable,
)

#: RE2's limit: of one count, and of the product of counts one within another.
_MAX_COUNT: Final = 1000
_PLAIN: Final = frozenset(char for char in map(chr, range(128)) if char.isalnum() or char in "/-_:@,")
#: What names have of ASCII: printable ones.
_PRINTABLE: Final = sets.span(" ", "~")
_ANY: Final = "."
#: Parts of RE2's that all may be empty, or be all of a text.
_ALL_TEXTS = re.compile(r"(?:\.\*|\(\?:\.\)\*)+")
#: A text behind which the whole alphabet may follow.
_ANYTHING: Final = Repeat(OneOf(sets.ALL), 0, None)


@dataclass(frozen=True, slots=True)
class Condition:
    """Another expression in RE2 that the whole text must match, or must not."""

    re2: str
    must_match: bool


@dataclass(frozen=True, slots=True)
class Translation:
    """An expression for RE2: a whole text matches where it matches ``re2`` and meets all conditions."""

    re2: str
    conditions: tuple[Condition, ...] = ()
    #: Why this matches more than the given expression; none: it matches the same.
    refused: tuple[str, ...] = ()

    @property
    def is_any(self) -> bool:
        """Whether it matches any text."""
        return not self.conditions and _ALL_TEXTS.fullmatch(self.re2) is not None


def translate(node: Node) -> Translation:
    """*node* for RE2."""
    parts, conditions = _without_looks(_parts(node))
    made = _Writer()
    text = "".join(made.written(part, follow) for part, follow in _followed(parts, _Follow(0)))
    return Translation(text, conditions, tuple(dict.fromkeys(made.refused)))


def prefix_of(node: Node) -> str:
    """What each text that *node* could match begins with."""
    if isinstance(node, Alternation):
        return _common([prefix_of(option) for option in node.options])
    chars = list[str]()
    for part in _parts(node):
        if isinstance(part, Char):
            chars.append(part.char)
        elif not isinstance(part, Lookaround | Edge):
            return "".join(chars) + (prefix_of(part) if isinstance(part, Alternation) else "")
    return "".join(chars)


def _parts(node: Node) -> tuple[Node, ...]:
    """*node* as a sequence, without groups that only hold a sequence."""
    if not isinstance(node, Sequence):
        return (node,)
    return tuple(part for each in node.parts for part in (_parts(each) if isinstance(each, Sequence) else (each,)))


def _common(texts: SequenceOf[str]) -> str:
    low, high = min(texts), max(texts)
    same = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    return low[:same]


# Looks around


def _without_looks(parts: tuple[Node, ...]) -> tuple[list[Node], tuple[Condition, ...]]:
    """*parts* without looks whose place in a text is known, and the conditions that these are."""
    rest, conditions = list[Node](), list[Condition]()
    for at, part in enumerate(parts):
        condition = None
        if isinstance(part, Lookaround) and part.ahead and _are_fixed(rest):
            condition = _condition([*rest, part.part, _ANYTHING], part)
        elif isinstance(part, Lookaround) and not part.ahead and _is_fixed(part.part):
            behind = [each for each in parts[at + 1 :] if not isinstance(each, Lookaround)]
            condition = _condition([_ANYTHING, part.part, *behind], part) if _are_fixed(behind) else None
        if condition is None:
            rest.append(part)
        else:
            conditions.append(condition)
    return rest, tuple(conditions)


def _condition(parts: list[Node], look: Lookaround) -> Condition | None:
    made = _Writer()
    text = "".join(made.written(part, _Follow(sets.ALL)) for part in parts)
    return None if made.refused else Condition(text, not look.negative)


def _are_fixed(parts: SequenceOf[Node]) -> bool:
    return all(map(_is_fixed, parts))


def _is_fixed(node: Node) -> bool:
    """Whether all that *node* matches has one length, and it is plain to see."""
    match node:
        case Char() | OneOf() | Edge():
            return True
        case Repeat():
            return node.min_count == node.max_count and _is_fixed(node.part)
        case Sequence():
            return _are_fixed(node.parts)
    return False


# What can follow


@dataclass(frozen=True, slots=True)
class _Follow:
    """The characters with which what follows may begin."""

    mask: int

    def behind(self, node: Node) -> "_Follow":
        """What follows on whatever stands before *node*, if this follows on *node*."""
        return _Follow(_first(node) | (self.mask if _may_be_empty(node) else 0))


def _followed(parts: SequenceOf[Node], last: _Follow) -> list[tuple[Node, _Follow]]:
    pairs = list[tuple[Node, _Follow]]()
    for part in reversed(parts):
        pairs.append((part, last))
        last = last.behind(part)
    return pairs[::-1]


def _first(node: Node) -> int:
    match node:
        case Char():
            return sets.of(node.char)
        case OneOf():
            return node.mask
        case Repeat() | Atomic():
            return _first(node.part)
        case Alternation():
            mask = 0
            for option in node.options:
                mask |= _first(option)
            return mask
        case Sequence():
            mask = 0
            for part in node.parts:
                mask |= _first(part)
                if not _may_be_empty(part):
                    break
            return mask
        case Unreadable():
            return sets.ALL
    return 0


def _may_be_empty(node: Node) -> bool:
    match node:
        case Char() | OneOf():
            return False
        case Repeat():
            return node.min_count == 0 or _may_be_empty(node.part)
        case Atomic():
            return _may_be_empty(node.part)
        case Alternation():
            return any(map(_may_be_empty, node.options))
        case Sequence():
            return all(map(_may_be_empty, node.parts))
    return True


# RE2


@dataclass(slots=True)
class _Writer:
    """Writes parts for RE2, and notes what it has to refuse."""

    refused: list[str] = field(default_factory=list)
    #: The product of the counts around the part that is written.
    _times: int = 1

    def written(self, node: Node, follow: _Follow) -> str:
        """*node*, on which *follow* follows."""
        match node:
            case Char():
                return _set(sets.of(node.char)) if node.char not in _PLAIN else node.char
            case OneOf():
                return _set(node.mask)
            case Edge():
                return node.re2
            case Sequence():
                return "".join(self.written(part, behind) for part, behind in _followed(node.parts, follow))
            case Alternation():
                return f"(?:{'|'.join(self.written(option, follow) for option in node.options)})"
            case Repeat():
                return self._repeat(node, follow)
            case Atomic():
                return self._atomic(node, follow)
            case Lookaround():
                self.refused.append("a look around at a place that varies")
                return ""
        self.refused.append(node.why)
        return ".*"

    def _atomic(self, node: Atomic, follow: _Follow) -> str:
        parts = _parts(node.part)
        last = parts[-1] if parts else None
        if isinstance(last, Repeat) and not last.lazy and _are_fixed(parts[:-1]):
            return self.written(Sequence((*parts[:-1], replace(last, possessive=True))), follow)
        if not _are_fixed(parts):
            self.refused.append("an atomic group (?>...)")
        return self.written(node.part, follow)

    def _repeat(self, node: Repeat, follow: _Follow) -> str:
        part, least, most = node.part, node.min_count, node.max_count
        if node.possessive and not self._is_possessive_by_itself(node, follow):
            self.refused.append("a possessive repetition that gives back what follows needs")
        inner = part.parts[0] if isinstance(part, Sequence) and len(part.parts) == 1 else part
        if _is_empty(inner):
            # Once is as good as often.
            written = self.written(inner, follow)
            return written if least else f"(?:{written})?"
        if isinstance(inner, Repeat) and inner.min_count <= 1 and inner.max_count is None and most != 0 and least <= 1:
            # (x*)*, (x+){1,9} and their like: RE2's own cost for counts of it is for nothing.
            return self._repeat(replace(inner, min_count=min(inner.min_count, least)), follow)
        return self._counted(part, least, most, follow)

    def _counted(self, part: Node, least: int, most: int | None, follow: _Follow) -> str:
        again = _Follow(_first(part) | follow.mask)
        times = max(least, most or 0, 1)
        if self._times * times > _MAX_COUNT:
            self.refused.append(f"counts that come to more than {_MAX_COUNT:,} repetitions")
            return f"(?:{self.written(part, again)}){'+' if least else '*'}"
        self._times *= times
        body = f"(?:{self.written(part, again)})"
        self._times //= times
        if most is None:
            return body + ("*" if least == 0 else "+" if least == 1 else f"{{{least},}}")
        return body + ("?" if (least, most) == (0, 1) else f"{{{least},{most}}}")

    def _is_possessive_by_itself(self, node: Repeat, follow: _Follow) -> bool:
        """Whether an ordinary repetition could not give back anything of use either."""
        if not isinstance(node.part, Char | OneOf):
            return _is_fixed(node)
        return node.min_count == node.max_count or not _first(node.part) & follow.mask & _PRINTABLE


def _is_empty(node: Node) -> bool:
    """Whether *node* matches nothing but an empty text, if that."""
    match node:
        case Edge():
            return True
        case Sequence():
            return all(map(_is_empty, node.parts))
        case Alternation():
            return all(map(_is_empty, node.options))
        case Repeat() | Atomic():
            return _is_empty(node.part)
    return False


def _set(mask: int) -> str:
    """A set of printable characters.  Never one of line ends: names are matched side by side, a line each."""
    mask &= _PRINTABLE
    if mask == _PRINTABLE:
        return _ANY
    ranges, start = list[str](), -1
    for code in range(32, 128):
        inside = bool(mask >> code & 1)
        if inside and start < 0:
            start = code
        elif not inside and start >= 0:
            ranges.append(_hex(start) if start == code - 1 else f"{_hex(start)}-{_hex(code - 1)}")
            start = -1
    return f"[{''.join(ranges)}]" if ranges else r"[^\x00-\xff]"


def _hex(code: int) -> str:
    return chr(code) if chr(code) in _PLAIN and chr(code) != "-" else f"\\x{code:02x}"

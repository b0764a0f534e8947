"""Many expressions at once: which of them match a name.

A cluster's policies list thousands, and nearly all are names, names with ``.`` in them, or such a beginning and ``.*``.
These are *simple*: they lie in tables by where their characters are fixed, and a name is looked up.  The others are
matched one by one, and their number is limited.
"""

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Final, NamedTuple

from controller.model.java_regex.expression import LONGEST, Expression, NameBatch, literal_prefix

#: Maximum number of expressions that are not simple, and of characters of one of them on average.
MAX_PATTERNS: Final = 2_000
_CHARACTERS: Final = 200
#: So many names are matched at once: no call takes long.
_AT_ONCE: Final = 10_000

_SIMPLE = re.compile(r"((?:[^\\^$.|?*+()\[\]{}]|\\[^a-zA-Z0-9]|\.(?![*+?{]))*)(\.\*)?", re.DOTALL)
_QUOTE = re.compile(r"\\Q(.*?)\\E", re.DOTALL)
_QUOTES = re.compile(r"(?:[^\\]|\\Q.*?\\E)*", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class Hit(NamedTuple):
    """The first expression that matches a name, by its number; or that might, where it cannot be read exactly."""

    number: int
    sure: bool


class _Shape(NamedTuple):
    """How long a simple expression is, where it fixes no character, and whether anything may follow."""

    length: int
    holes: tuple[int, ...]
    open_ended: bool


class Expressions:
    """Java regular expressions in order; see the package.

    Names have no line ends: see ``NO_NAME_HAS`` in controller.model.names.
    """

    def __init__(self, regexes: Iterable[str], max_patterns: int = MAX_PATTERNS) -> None:
        """*max_patterns*: the maximum number of those that are not simple."""
        self._max_patterns = max_patterns
        #: Expression -> its number; those that match the same for a plain reason share one.
        self.number: Final = dict[str, int]()
        #: Expression -> why it cannot be read exactly.
        self.refused: Final = dict[str, str]()
        #: Those that are refused, and of which nothing is known at all.
        self.unbounded: Final = set[str]()
        self._simple = dict[_Shape, dict[str, int]]()
        #: Beginning of a name -> the first of those beyond the limit that it might match.
        self._beyond = dict[str, int]()
        self._others = dict[int, Expression]()
        self._characters = 0
        for number, regex in enumerate(regexes):
            if regex not in self.number:
                self.number[regex] = self._add(number, regex)
        self._shapes = sorted(self._simple.items())
        self._lengths = sorted({len(prefix) for prefix in self._beyond})

    def first(self, names: Sequence[str]) -> dict[str, Hit]:
        """The first hit of each of *names* that has one."""
        hits = dict[str, Hit]()
        for at in range(0, len(names), _AT_ONCE):
            hits |= self._first(names[at : at + _AT_ONCE])
        return hits

    def hits(self, names: Sequence[str], numbers: Set[int] | None = None) -> dict[str, list[Hit]]:
        """All hits of each of *names* that has some; *numbers*: of these expressions alone."""
        hits_by_name = {name: list(self._looked_up(name)) for name in names}
        if numbers is not None:
            hits_by_name = {name: [hit for hit in hits if hit.number in numbers] for name, hits in hits_by_name.items()}
        together = NameBatch(names)
        for number, each in self._others.items():
            if numbers is None or number in numbers:
                hit, perhaps = Hit(number, sure=True), Hit(number, sure=False)
                sure, unsure = each.match(together)
                for name in sure:
                    hits_by_name[name].append(hit)
                for name in unsure:
                    hits_by_name[name].append(perhaps)
        return {name: hits for name, hits in hits_by_name.items() if hits}

    def _add(self, number: int, regex: str) -> int:
        simple = _SIMPLE.fullmatch(_escaped(regex)) if len(regex) <= LONGEST else None
        shape, text = _shape(simple) if simple is not None else (None, "")
        if shape is not None and (not shape.holes or shape in self._simple or self._is_within_limit(regex)):
            return self._simple.setdefault(shape, {}).setdefault(text, number)
        if shape is not None or not self._is_within_limit(regex):
            self.refused[regex] = f"one of too many: more than {self._max_patterns:,}, or too long together"
            return self._refuse(number, regex)
        expression = Expression(regex)
        if expression.refused:
            self.refused[regex] = expression.refused
            if expression.is_unbounded:
                self.unbounded.add(regex)
        self._others[number] = expression
        return number

    def _refuse(self, number: int, regex: str) -> int:
        prefix = literal_prefix(regex)
        if not prefix:
            self.unbounded.add(regex)
        return self._beyond.setdefault(prefix, number)

    def _is_within_limit(self, regex: str) -> bool:
        # Of one that is too long no more than its beginning is read.
        characters = self._characters + min(len(regex), LONGEST)
        if len(self._others) + len(self._simple) >= self._max_patterns or characters > self._max_patterns * _CHARACTERS:
            return False
        self._characters = characters
        return True

    def _first(self, names: Sequence[str]) -> dict[str, Hit]:
        first_hits = {name: min(hits) for name in names if (hits := list(self._looked_up(name)))}
        unmatched = _Unmatched(names)
        for number, each in self._others.items():
            sure, unsure = each.match(unmatched.names)
            for name in sure | unsure:
                hit = Hit(number, name in sure)
                first_hits[name] = min(first_hits.get(name, hit), hit)
            # Whatever comes behind a hit does not count.
            unmatched.without(sure | unsure)
        return first_hits

    def _looked_up(self, name: str) -> Iterator[Hit]:
        for shape, table in self._shapes:
            if shape.length > len(name):
                break
            if shape.open_ended or shape.length == len(name):
                text = name[: shape.length]
                for hole in shape.holes:
                    text = f"{text[:hole]}.{text[hole + 1 :]}"
                if text in table:
                    yield Hit(table[text], sure=True)
        for length in self._lengths:
            if name[:length] in self._beyond:
                yield Hit(self._beyond[name[:length]], sure=False)


class _Unmatched:
    """Names that are still to be matched.  Sorting them anew pays where half of them are done."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = NameBatch(names)
        self._done = set[str]()

    def without(self, done: Set[str]) -> None:
        self._done |= done
        if 2 * len(self._done) > len(self.names.texts):
            self.names, self._done = NameBatch(set(self.names.texts) - self._done), set()


def _escaped(regex: str) -> str:
    r"""*regex* with backslashes instead of ``\Q...\E``, where it has no others."""
    if "\\Q" not in regex or not _QUOTES.fullmatch(regex):
        return regex
    return _QUOTE.sub(lambda quotation: _by_backslashes(quotation[1]), regex)


def _shape(simple: re.Match[str]) -> tuple[_Shape, str]:
    """Where a simple expression is open, and its text, with a dot at each place that is."""
    parts = _ESCAPE.split(simple[1])  # every other one was escaped
    holes, at = list[int](), 0
    for number, part in enumerate(parts):
        if number % 2 == 0:
            holes += [at + i for i, char in enumerate(part) if char == "."]
        at += len(part)
    return _Shape(at, tuple(holes), simple[2] is not None), "".join(parts)


def matches(regexes: Iterable[str], name: str) -> bool:
    """Whether one of *regexes* matches the whole *name*; one that is refused matches nothing."""
    return any(hit.sure for hit in Expressions(regexes).hits([name]).get(name, ()))


def quoted(text: str) -> str:
    """An expression that matches *text* alone."""
    return _by_backslashes(text) if "\\E" in text else f"\\Q{text}\\E"


def _by_backslashes(text: str) -> str:
    return "".join(f"\\{char}" if char.isascii() and not char.isalnum() else char for char in text)

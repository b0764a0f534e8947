r"""Java regular expressions (of Pulsar's isolation policies), translated to Python's ``re``.

Pulsar uses ``String.matches``: it matches the whole text, with ASCII classes.  These parts are translated:

    \Q...\E  ->  the text, quoted           (?<name>...)  ->  (?P<name>...)        \k<name>  ->  (?P=name)
    \z       ->  \Z                         \p{Alpha} ... ->  [a-zA-Z] ...         \Z  ->  (?=\n?\Z)

What Python lacks or reads differently is *not understood*: nested sets and intersections (``[a-z&&[^b]]``), other
Unicode properties, flags other than a leading ``(?i)``, ``(?s)``, ``(?m)``, octal, ``\h``, ``\v``, ``\R``, ``\X``,
``\G`` and lookbehind of variable length.  Names contain no line ends, so differences of ``.`` and ``$`` there do not
matter.

Python backtracks, and some expressions, such as ``(a+)+b``, would take practically for ever.  So an expression is also
not understood if it is longer than 1,000 characters, if it repeats a part that can itself match in several ways, or if
it has more than a million ways to match.  The ways of consecutive parts are multiplied, those of alternatives added; a
repetition without an upper bound counts as 100 ways.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.model.weighed_cache import WeighedCache

_POSIX: Final = {
    "Lower": "a-z", "Upper": "A-Z", "Alpha": "a-zA-Z", "Digit": "0-9", "Alnum": "a-zA-Z0-9", "XDigit": "0-9a-fA-F",
}  # fmt: skip
#: Letters that mean the same after a backslash in Java and Python: outside a set, and inside a set.
_SAME: Final = frozenset("AbBdDsSwWtnrfaxu123456789")
_SAME_IN_SET: Final = frozenset("dDsSwWtnrfaxu")

_QUOTED = re.compile(r"\\Q(.*?)(?:\\E|\Z)", re.DOTALL)
_PROPERTY = re.compile(r"\\([pP])\{(\w+)\}")
_BACK_REFERENCE = re.compile(r"\\k<(\w+)>")
_GROUP = re.compile(r"\((?!\?)|\(\?(?::|=|!|>|<=|<!)")
_NAMED_GROUP = re.compile(r"\(\?<([a-zA-Z]\w*)>")
_FLAGS = re.compile(r"\(\?[ism]+\)")
_COUNT = re.compile(r"\{(\d+)(?:,(\d*))?\}")

#: An expression of these is a text.
_NO_SIGNS = re.compile(r"[^\\^$.|?*+()\[\]{}]*")

#: Maximum length of an expression, in characters.
_LONGEST: Final = 1_000
#: Maximum number of ways in which an expression may match.
_MOST_WAYS: Final = 1_000_000
#: Ways counted for ``*``, ``+`` and ``{n,}``: about the length of a name.
_UNBOUNDED: Final = 100
#: Bytes of lists of expressions that are kept translated: several times those of 10,000 policies.
_MOST_KEPT: Final = 64 << 20
#: Bytes at least of what is kept of a list, of a text in it, and of an expression that is none; and at most of each of
#: its characters.
_OF_AN_ENTRY, _OF_A_TEXT, _OF_A_PATTERN, _OF_A_SIGN = 800, 80, 600, 40
#: Largest count in ``{n}``.
_MOST_TIMES: Final = 255


@lru_cache(maxsize=4096)
def java_pattern(regex: str) -> re.Pattern[str] | None:
    """*regex* compiled for ``fullmatch``, or None if it is not understood."""
    try:
        return re.compile(_Translation(regex).text(), re.ASCII)
    except (re.error, ValueError, OverflowError, RecursionError):
        return None


class Expressions(NamedTuple):
    """Several expressions, translated once.  Policies may list thousands, most of which are the names themselves."""

    #: Those without signs, each of which matches itself alone.
    texts: frozenset[str]
    #: The others, as they are given, in order; and each as a pattern, None where it is not understood.
    others: tuple[str, ...]
    translated: tuple[re.Pattern[str] | None, ...]
    #: Those of them that are understood.
    patterns: tuple[re.Pattern[str], ...]

    @property
    def understood(self) -> bool:
        """Whether all are understood."""
        return len(self.patterns) == len(self.others)

    @property
    def not_understood(self) -> tuple[str, ...]:
        """Those that are not."""
        return tuple(regex for regex, pattern in zip(self.others, self.translated, strict=True) if pattern is None)

    def match(self, text: str) -> bool:
        """Whether one of them matches the whole *text*; one that is not understood matches nothing."""
        if text in self.texts:
            return True
        for pattern in self.patterns:  # noqa: SIM110  half the time of any()
            if pattern.fullmatch(text) is not None:
                return True
        return False

    def that_match(self, text: str) -> list[str]:
        """Those that match the whole *text*, and those that are not understood: they might."""
        found = [text] if text in self.texts else []
        for regex, pattern in zip(self.others, self.translated, strict=True):
            if pattern is None or pattern.fullmatch(text) is not None:
                found.append(regex)
        return found


def _translated(regexes: tuple[str, ...]) -> Expressions:
    texts = frozenset(regex for regex in regexes if len(regex) <= _LONGEST and _NO_SIGNS.fullmatch(regex))
    others = tuple(regex for regex in regexes if regex not in texts)
    found = tuple(map(java_pattern, others))
    return Expressions(texts, others, found, tuple(pattern for pattern in found if pattern is not None))


def _bytes_of_texts(texts: tuple[str, ...]) -> int:
    return sum(map(len, texts)) + _OF_A_TEXT * len(texts)


def bytes_of(regexes: tuple[str, ...], found: Expressions) -> int:
    """About the memory that they take, and what was *found* in them."""
    patterns = _OF_A_PATTERN * len(found.others) + _OF_A_SIGN * sum(map(len, found.others))
    return _OF_AN_ENTRY + _bytes_of_texts(regexes) + patterns


def bytes_of_mask(key: tuple[tuple[str, ...], tuple[str, ...]], mask: NDArray[np.bool_]) -> int:
    """About the memory that a mask takes, and its list of expressions; the texts are those of all masks."""
    return _OF_AN_ENTRY + _bytes_of_texts(key[0]) + mask.nbytes


#: *regexes*, ready to match.
expressions: Final = WeighedCache(_translated, weigh=bytes_of, most=_MOST_KEPT)


def matches(regexes: Iterable[str], text: str) -> bool:
    """Whether one of *regexes* matches the whole *text*; an expression that is not understood matches nothing."""
    return expressions(tuple(regexes)).match(text)


def matching(regexes: tuple[str, ...], texts: tuple[str, ...]) -> NDArray[np.bool_]:
    """(texts,) whether one of *regexes* matches each text.  Cached: the brokers seldom change."""
    return _masks((regexes, texts))


def _mask(key: tuple[tuple[str, ...], tuple[str, ...]]) -> NDArray[np.bool_]:
    regexes, texts = key
    mask = np.array(list(map(expressions(regexes).match, texts)), np.bool_)
    mask.setflags(write=False)
    return mask


_masks: Final = WeighedCache(_mask, weigh=bytes_of_mask, most=_MOST_KEPT)


class _Translation:
    """Translates one regex from Java to Python; raises ValueError if that is not possible."""

    def __init__(self, regex: str) -> None:
        self._regex = regex
        self._at = 0
        #: For each open group (the whole expression first): the ways of its finished alternatives, and of the current
        #: alternative.
        self._ended, self._ways = [0], [1]
        #: The ways of the last part, which a repetition would multiply; there is none yet.
        self._last = 0

    def text(self) -> str:
        if len(self._regex) > _LONGEST:
            raise ValueError(f"longer than {_LONGEST} characters")
        head = self._take(_FLAGS)
        made = [head[0]] if head else []
        while self._at < len(self._regex):
            made.append(self._next())
        return "".join(made)

    def _next(self) -> str:
        char = self._regex[self._at]
        if char in "*+?{":
            return self._repetition(char)
        self._last = 1
        if char == "\\":
            return self._escape(in_set=False)
        if char == "[":
            return self._set()
        if char == "(":
            self._ended.append(0)
            self._ways.append(1)
            named = self._take(_NAMED_GROUP)
            return f"(?P<{named[1]}>" if named else self._must(_GROUP)[0]
        if char == "|":
            self._ended[-1] += self._ways[-1]
            self._ways[-1] = 1
        elif char == ")":
            self._end_group()
        self._at += 1
        return char

    def _end_group(self) -> None:
        if len(self._ways) == 1:
            raise ValueError("a closing parenthesis without an opening one")
        self._last = self._ended.pop() + self._ways.pop()
        self._multiply(self._last)

    def _repetition(self, char: str) -> str:
        """A repetition with its suffix: ``?`` (lazy) or ``+`` (possessive)."""
        if char == "{":
            count = self._must(_COUNT)
            least, most = int(count[1]), count[2]
            if max(least, int(most or 0)) > _MOST_TIMES:
                raise ValueError(f"a repetition of more than {_MOST_TIMES} times")
            text, ways = count[0], 1 if most is None else int(most) - least + 1 if most else _UNBOUNDED
        else:
            self._at += 1
            text, ways = char, 2 if char == "?" else _UNBOUNDED
        if self._last > 1 and text != "?":
            raise ValueError("a repetition of a part that can match in several ways")
        self._multiply(ways)
        if self._regex.startswith(("?", "+"), self._at):
            text += self._regex[self._at]
            self._at += 1
        return text

    def _multiply(self, ways: int) -> None:
        self._ways[-1] *= ways
        if self._ways[-1] > _MOST_WAYS:
            raise ValueError(f"more than {_MOST_WAYS} ways to match")

    def _set(self) -> str:
        """A set; a leading ``]`` is a member in Java and in Python."""
        made = self._must(re.compile(r"\[\^?\]?"))[0]
        while not self._regex.startswith("]", self._at):
            if self._at == len(self._regex) or self._regex.startswith(("[", "&&"), self._at):
                raise ValueError("an unclosed set, a nested set, or an intersection")
            if self._regex[self._at] == "\\":
                made += self._escape(in_set=True)
            else:
                # Python warns about doubled signs, which it reserves for later use.
                made += re.escape(self._regex[self._at]) if self._regex[self._at] in "&~|" else self._regex[self._at]
                self._at += 1
        self._at += 1
        return made + "]"

    def _escape(self, *, in_set: bool) -> str:
        if quoted := None if in_set else self._take(_QUOTED):
            return re.escape(quoted[1])
        if named := self._take(_PROPERTY):
            members = _POSIX.get(named[2])
            if members is None or (in_set and named[1] == "P"):
                raise ValueError("an unknown property")
            return members if in_set else f"[{'^' if named[1] == 'P' else ''}{members}]"
        if back := None if in_set else self._take(_BACK_REFERENCE):
            return f"(?P={back[1]})"
        escaped = self._regex[self._at : self._at + 2]
        self._at += 2
        if escaped in ("\\z", "\\Z") and not in_set:
            return r"\Z" if escaped == "\\z" else r"(?=\n?\Z)"
        if escaped == "\\" or (escaped[1].isalnum() and escaped[1] not in (_SAME_IN_SET if in_set else _SAME)):
            raise ValueError("an escape that Python does not have")
        return escaped

    def _take(self, what: re.Pattern[str]) -> re.Match[str] | None:
        found = what.match(self._regex, self._at)
        if found:
            self._at = found.end()
        return found

    def _must(self, what: re.Pattern[str]) -> re.Match[str]:
        found = self._take(what)
        if found is None:
            raise ValueError(f"not a {what.pattern}")
        return found

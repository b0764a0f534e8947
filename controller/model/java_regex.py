r"""Regular expressions that operators wrote for Pulsar, which means for Java, read by Python's ``re``.

Pulsar tests ``String.matches``: the whole text, ASCII classes.  What the two write differently is translated here:

    \Q...\E  ->  the text, quoted           (?<name>...)  ->  (?P<name>...)        \k<name>  ->  (?P=name)
    \z       ->  \Z                         \p{Alpha} ... ->  [a-zA-Z] ...         \Z  ->  (?=\n?\Z)

What Python lacks or takes for something else is *not understood*: sets in sets and intersections (``[a-z&&[^b]]``),
other Unicode properties, flags but ``(?i)``, ``(?s)``, ``(?m)`` at the head, octal, ``\h``, ``\v``, ``\R``, ``\X``,
``\G`` and lookbehind of no fixed length.  Names hold no line ends, so what ``.`` and ``$`` make of them is left alone.

Python tries one way after the other, and some expressions, such as ``(a+)+b``, have more ways than anybody can wait
for.  So an expression is not understood either when it is longer than 1,000 characters, when it repeats what can itself
match in several ways, or when it has more than a million ways to match: those of its parts multiplied, those of its
alternatives added.  A repetition without an upper bound counts as a hundred.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

_POSIX: Final = {
    "Lower": "a-z", "Upper": "A-Z", "Alpha": "a-zA-Z", "Digit": "0-9", "Alnum": "a-zA-Z0-9", "XDigit": "0-9a-fA-F",
}  # fmt: skip
#: Letters that mean the same behind a backslash in both, outside a set and in one.
_SAME: Final = frozenset("AbBdDsSwWtnrfaxu123456789")
_SAME_IN_SET: Final = frozenset("dDsSwWtnrfaxu")

_QUOTED = re.compile(r"\\Q(.*?)(?:\\E|\Z)", re.DOTALL)
_PROPERTY = re.compile(r"\\([pP])\{(\w+)\}")
_BACK_REFERENCE = re.compile(r"\\k<(\w+)>")
_GROUP = re.compile(r"\((?!\?)|\(\?(?::|=|!|>|<=|<!)")
_NAMED_GROUP = re.compile(r"\(\?<([a-zA-Z]\w*)>")
_FLAGS = re.compile(r"\(\?[ism]+\)")
_COUNT = re.compile(r"\{(\d+)(?:,(\d*))?\}")

#: Characters of an expression that is looked at.
_LONGEST: Final = 1_000
#: In how many ways an expression may match.
_MOST_WAYS: Final = 1_000_000
#: ``*``, ``+`` and ``{n,}``: about as many as a name has characters.
_UNBOUNDED: Final = 100
#: ``{n}``: so often at most.
_MOST_TIMES: Final = 255


@lru_cache(maxsize=4096)
def java_pattern(regex: str) -> re.Pattern[str] | None:
    """*regex* for ``fullmatch``, or None when it is not understood."""
    try:
        return re.compile(_Translation(regex).text(), re.ASCII)
    except (re.error, ValueError, OverflowError, RecursionError):
        return None


def matches(regexes: Iterable[str], text: str) -> bool:
    """Whether one of *regexes* matches the whole *text*; one that is not understood matches nothing."""
    patterns = map(java_pattern, regexes)
    return any(pattern is not None and pattern.fullmatch(text) is not None for pattern in patterns)


@lru_cache(maxsize=4096)
def matching(regexes: tuple[str, ...], texts: tuple[str, ...]) -> NDArray[np.bool_]:
    """(texts,) which of *texts* one of *regexes* matches.  Kept: the brokers are the same interval by interval."""
    mask = np.array([matches(regexes, text) for text in texts], np.bool_)
    mask.setflags(write=False)
    return mask


class _Translation:
    """One regex on its way from Java to Python; ValueError where there is none."""

    def __init__(self, regex: str) -> None:
        self._regex = regex
        self._at = 0
        #: Of each group that is open, the whole expression first: the ways of the alternatives that have ended, and of
        #: the one that has not.
        self._ended, self._ways = [0], [1]
        #: The ways of the part that came last, which a repetition would multiply.
        self._last = 1

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
            raise ValueError("a group that ends and does not begin")
        self._last = self._ended.pop() + self._ways.pop()
        self._multiply(self._last)

    def _repetition(self, char: str) -> str:
        """A repetition, and what says how it is tried (``?`` or ``+`` behind it)."""
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
            raise ValueError("a repetition of what can match in several ways")
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
        """A set; ``]`` right at its head is a member in both."""
        made = self._must(re.compile(r"\[\^?\]?"))[0]
        while not self._regex.startswith("]", self._at):
            if self._at == len(self._regex) or self._regex.startswith(("[", "&&"), self._at):
                raise ValueError("a set without end, in a set, or an intersection")
            if self._regex[self._at] == "\\":
                made += self._escape(in_set=True)
            else:
                # Python warns that doubled signs may one day mean something.
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
            raise ValueError("an escape that only Java knows")
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

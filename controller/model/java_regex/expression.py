"""One expression, ready to match many names at once.  The only file that knows RE2."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import cached_property, lru_cache
from typing import Final

import re2

from controller.model.java_regex.parser import ParseError, parse
from controller.model.java_regex.translation import Condition, Translation, prefix_of, translate

#: Maximum length of an expression, in characters.
LONGEST: Final = 8192
#: Maximum size of what RE2 makes of an expression, in its instructions: ``.{0,1000}`` has 3,006.
_MAX_INSTRUCTIONS: Final = 4000
#: Bytes that RE2 may take for one of them: its program, and what it remembers of texts.
_MAX_BYTES: Final = 4 << 20
#: So many stay compiled; the others are compiled anew when there are new names to match.
_MAX_COMPILED: Final = 16

_PLAIN = re.compile(r"[ -~]+")
_LITERAL_HEAD = re.compile(r"[^\\^$.|?*+()\[\]{}]*")


class NameBatch:
    """Texts that are matched together, sorted.  None has line ends: see ``NO_NAME_HAS`` in controller.model.names."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = tuple(sorted(set(texts)))
        #: Those that are not printable ASCII.
        self.odd = [text for text in self.texts if not _PLAIN.fullmatch(text)]

    def beginning_with(self, prefix: str) -> range:
        """Where in ``texts`` those that begin with *prefix* are."""
        low, size = bisect_left(self.texts, prefix), len(prefix)
        return range(low, bisect_right(self.texts, prefix, low, key=lambda text: text[:size]))

    @cached_property
    def lines(self) -> tuple[bytes, list[int]]:
        """The texts, a line each, and where each begins; of those that are not printable ASCII an empty line."""
        odd = set(self.odd)
        lines = [b"" if text in odd else text.encode() for text in self.texts]
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line) + 1)
        return b"\n".join(lines), starts


class Expression:
    """A Java regular expression; see the package.

    ``refused`` says why it cannot be read exactly, "" where it can.  Then it could at most match what its bound in RE2
    matches, or, where even that is too large, what begins with ``prefix``.
    """

    def __init__(self, regex: str) -> None:
        self.prefix, self.refused = literal_prefix(regex), ""
        self._translation: Translation | None = None
        if len(regex) > LONGEST:
            self.refused = f"longer than {LONGEST:,} characters"
            return
        try:
            parts = parse(regex)
        except ParseError as error:
            self.refused = str(error)
            return
        self.prefix = prefix_of(parts)
        translation = translate(parts)
        self.refused = "; ".join(translation.refused)
        try:
            _compiled(translation)
        except re2.error:
            self.refused = self.refused or "too large"
        else:
            self._translation = translation

    @property
    def is_unbounded(self) -> bool:
        """Whether nothing is known of what it could match."""
        return bool(self.refused) and not self.prefix and (self._translation is None or self._translation.is_any)

    def match(self, names: NameBatch) -> tuple[set[str], set[str]]:
        """Those of *names* that match, and those that might: this cannot be told of them."""
        rows = names.beginning_with(self.prefix)
        if not rows or self._translation is None:
            return set(), set(names.texts[rows.start : rows.stop])
        matched = {names.texts[row] for row in _rows(_compiled(self._translation), names, rows)}
        odd = {text for text in names.odd if text.startswith(self.prefix)}
        return (set(), matched | odd) if self.refused else (matched, odd)


def literal_prefix(regex: str) -> str:
    """What each text that *regex* could match begins with, whatever is wrong with it."""
    if _may_have_choice(regex):
        return ""
    head = _LITERAL_HEAD.match(regex)
    assert head is not None
    prefix = head[0]
    # What is repeated may be missing.
    return prefix[:-1] if regex[len(prefix) : len(prefix) + 1] in ("?", "*", "+", "{") else prefix


def _may_have_choice(regex: str) -> bool:
    """Whether *regex* may have a ``|`` that is in no group."""
    if "|" not in regex:
        return False
    if any(sign in regex for sign in "\\[#"):  # a parenthesis may be none
        return True
    depth = 0
    for char in regex:
        depth += (char == "(") - (char == ")")
        if char == "|" and depth <= 0:
            return True
    return False


@lru_cache(maxsize=_MAX_COMPILED)
def _compiled(translation: Translation) -> list[tuple["re2._Regexp", bool]]:
    """*translation* for lines, and whether each of its parts is wanted; re2.error where it is too large."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _MAX_BYTES
    options.log_errors = False
    options.never_capture = True
    made = list[tuple["re2._Regexp", bool]]()
    for each in (Condition(translation.re2, must_match=True), *translation.conditions):
        made.append((re2.compile(f"(?m:^(?:{each.re2})$)".encode("ascii"), options), each.must_match))
    # Its own cache would hold more of them.
    re2.purge()
    if sum(compiled.programsize for compiled, _ in made) > _MAX_INSTRUCTIONS:
        raise re2.error("too many instructions")
    return made


def _rows(compiled: list[tuple["re2._Regexp", bool]], names: NameBatch, rows: range) -> set[int]:
    """Those of *rows* that match; none of those whose names are not plain."""
    lines, starts = names.lines
    first = starts[rows.start]
    text = lines[first : starts[rows.stop] - 1]
    remaining = set[int]()
    for number, (pattern, must_match) in enumerate(compiled):
        begins = (match.start() for match in pattern.finditer(text) if match.end() > match.start())
        matched = {bisect_left(starts, first + begin) for begin in begins}
        remaining = matched if number == 0 else remaining & matched if must_match else remaining - matched
    return remaining

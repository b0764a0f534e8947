"""Sets of ASCII characters as 128-bit masks, with the names that Java has for them.

Java: java.util.regex.CharPredicates.
"""

from typing import Final

#: All of ASCII.
ALL: Final = (1 << 128) - 1


def of(characters: str) -> int:
    """The set of *characters*; what is not ASCII is left out."""
    mask = 0
    for character in characters:
        if ord(character) < 128:
            mask |= 1 << ord(character)
    return mask


def span(first: str, last: str) -> int:
    """The ASCII characters from *first* to *last*."""
    low, high = ord(first), min(ord(last), 127)
    return ((1 << (high + 1)) - (1 << low)) if low <= high else 0


def folded(mask: int) -> int:
    """*mask* and the same letters in the other case."""
    return mask | (mask & UPPER) << 32 | (mask & LOWER) >> 32


LOWER: Final = span("a", "z")
UPPER: Final = span("A", "Z")
DIGIT: Final = span("0", "9")
WORD: Final = LOWER | UPPER | DIGIT | of("_")
SPACE: Final = of(" \t\n\x0b\f\r")
HORIZONTAL: Final = of(" \t")
VERTICAL: Final = of("\n\x0b\f\r")
_GRAPH: Final = span("!", "~")
_ALNUM: Final = LOWER | UPPER | DIGIT

#: Sets that hold letters of one case.  Java 15 changed what (?i) does to them.
CASED: Final = frozenset({"Lower", "Upper", "Lu", "Ll", "Lt", "Lowercase", "Uppercase"})

#: POSIX names: ASCII in Java, too.
_POSIX: Final = {
    "Lower": LOWER,
    "Upper": UPPER,
    "ASCII": ALL,
    "Alpha": LOWER | UPPER,
    "Digit": DIGIT,
    "Alnum": _ALNUM,
    "Punct": _GRAPH & ~_ALNUM,
    "Graph": _GRAPH,
    "Print": _GRAPH | of(" "),
    "Blank": HORIZONTAL,
    "Cntrl": span("\0", "\x1f") | of("\x7f"),
    "XDigit": DIGIT | span("a", "f") | span("A", "F"),
    "Space": SPACE,
}
#: Binary properties of Unicode, restricted to ASCII.
_BINARY: Final = {
    "Alphabetic": LOWER | UPPER,
    "Letter": LOWER | UPPER,
    "Digit": DIGIT,
    "Lowercase": LOWER,
    "Uppercase": UPPER,
    "White_Space": SPACE,
    "Latin": LOWER | UPPER,
}


#: General categories of Unicode, restricted to ASCII: the same in all versions.
_FINE: Final = {
    "Lu": UPPER,
    "Ll": LOWER,
    "Nd": DIGIT,
    "Cc": span("\0", "\x1f") | of("\x7f"),
    "Zs": of(" "),
    "Pc": of("_"),
    "Pd": of("-"),
    "Ps": of("([{"),
    "Pe": of(")]}"),
    "Po": of("!\"#%&'*,./:;?@\\"),
    "Sm": of("+<=>|~"),
    "Sc": of("$"),
    "Sk": of("^`"),
}


def _with_wide_ones(fine: dict[str, int]) -> dict[str, int]:
    """*fine*, those that have nothing of ASCII, and the categories of one letter."""
    categories = (
        dict.fromkeys(("Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "Nl", "No", "Pi", "Pf", "So", "Zl", "Zp"), 0) | fine
    )
    for name, mask in fine.items():
        categories[name[0]] = categories.get(name[0], 0) | mask
    return categories


_CATEGORIES: Final = _with_wide_ones(_FINE)


def of_property(name: str) -> int | None:
    r"""The ASCII characters of ``\p{name}``; None where the name is not known here."""
    if name.startswith("Is"):
        return _BINARY.get(name[2:], _CATEGORIES.get(name[2:]))
    return _POSIX.get(name, _CATEGORIES.get(name))

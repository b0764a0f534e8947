"""Random regular expressions of Java's dialect, most of them valid, and names that they may match."""

from random import Random
from typing import Final

_LITERALS: Final[tuple[str, ...]] = (
    *"aabbcA1-_/B ", r"\.", r"\-", r"\Qa.b\E", r"\Q*\E", r"\x41", r"\u0061", r"\0141", r"\x{62}", r"\cA", r"\c!", "é",
    r"\/", "&", ",", "#", "]", "}", r"\Q1\E", r"\e", "K", "s",
)  # fmt: skip
_SETS: Final = (
    ".", ".", r"\d", r"\w", r"\s", r"\D", r"\W", r"\S", r"\h", r"\H", r"\v", r"\V", r"\p{Lower}", r"\p{Upper}",
    r"\P{Alpha}", r"\p{Punct}", r"\p{L}", r"\pL", r"\PN", r"\p{IsAlphabetic}", r"\p{Lu}", r"\p{IsLatin}", r"\p{Alnum}",
    r"\p{javaLowerCase}", r"\R", r"\X", r"\p{ASCII}", r"\p{Graph}", r"\p{Print}", r"\p{Blank}", r"\p{XDigit}",
    r"\p{Cntrl}", r"\p{Space}", r"\p{IsDigit}", r"\p{Nd}", r"\p{Pd}", r"\p{S}", r"\P{Zs}", r"\p{IsUppercase}",
    r"\p{IsLowercase}", r"\p{IsWhite_Space}", r"\p{IsLetter}", r"\p{Po}", r"\p{Sm}", r"\p{Sk}", r"\p{Ps}",
)  # fmt: skip
_EDGES: Final = ("^", "$", r"\A", r"\z", r"\Z", r"\b", r"\B", r"\G")
_OTHERS: Final = (
    "(?i)", "(?s)", "(?x)", "(?iu)", "(?-i)", "(?m)", "(?d)", "(?i-s)", "(?x) # a\n", r"\1", r"\k<n>", "(?u)",
)  # fmt: skip
_GROUPS: Final = (
    "(", "(?:", "(?:", "(", "(?<n>", "(?i:", "(?x:", "(?>", "(?=", "(?!", "(?<=", "(?<!", "(?s:", "(?i-s:", "(?-i:",
    "(?mx: ",
)  # fmt: skip
_COUNTS: Final = (
    "*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "{0}", "*?", "+?", "??", "{1,2}?", "*+", "++", "?+", "{1,2}+",
    "{2}+",
)  # fmt: skip
_RANGES: Final = ("a-z", "A-Z", "0-9", "a-c", "!-/", r"\x41-C", "B-b", " -~", "+--")
_IN_SETS: Final = (
    r"\Q-]\E", r"\]", r"\-", r"\^", r"\[", r"\\", r"\Q^a\E", "]", "-", r"\.", r"\b",
)  # fmt: skip
_STRAY: Final = (" ", "{", "*", r"\E", "(", "|")


def expression(random: Random, depth: int = 0) -> str:
    """A random expression."""
    options = random.choice([1, 1, 1, 2, 3] if depth else [1, 1, 1, 1, 2])
    return "|".join(_sequence(random, depth) for _ in range(options))


def names(random: Random) -> list[str]:
    """Names that such expressions often match, and others."""
    some = {"".join(random.choice("aaaabbbAB1-_") for _ in range(random.randint(1, 7))) for _ in range(15)}
    others = {"".join(random.choice("aabAB1-_/. c!s") for _ in range(random.randint(1, 7))) for _ in range(10)}
    return sorted(some | others | {"a", "b", "ab", "aab", "-"})


def _sequence(random: Random, depth: int) -> str:
    made = ""
    for _ in range(random.choice([0, 1, 1, 2, 2, 3, 3, 4]) if depth else random.randint(1, 4)):
        made += _part(random, depth)
        made += random.choice(_COUNTS) if random.random() < 0.35 else ""
        made += random.choice(_STRAY) if random.random() < 0.02 else ""
    return made


def _part(random: Random, depth: int) -> str:
    kind = random.random()
    if kind < 0.38:
        return random.choice(_LITERALS)
    if kind < 0.5:
        return random.choice(_SETS)
    if kind < 0.62:
        return _set(random)
    if kind < 0.68:
        return random.choice(_EDGES)
    if kind < 0.7:
        return random.choice(_OTHERS)
    if depth >= 4:
        return random.choice("ab-")
    return f"{random.choice(_GROUPS)}{expression(random, depth + 1)})"


def _set(random: Random, depth: int = 0) -> str:
    made = "[^" if random.random() < 0.3 else "["
    for _ in range(random.randint(1, 4)):
        kind = random.random()
        if kind < 0.35:
            made += random.choice("ab1-A_.^/$*&B c")
        elif kind < 0.55:
            made += random.choice(_RANGES)
        elif kind < 0.7:
            made += random.choice(_SETS[2:])
        elif kind < 0.75:
            made += random.choice(_IN_SETS)
        elif depth < 3 and kind < 0.88:
            made += _set(random, depth + 1)
        else:
            made += "&&" + random.choice(["", "", _set(random, depth + 1)] if depth < 3 else [""])
    return made + "]"

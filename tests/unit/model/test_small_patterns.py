"""Java's regular expressions, put together by chance, are translated as before; so the same bundles may go to a broker.

The number is tests.small_worlds.digits of all translations, and of what they match.
"""

from random import Random
from typing import Any, Final

from controller.model.java_regex import java_pattern, matches
from tests.small_worlds import digits

PARTS: Final = (
    "a", "b-", "0", ".", ".*", "[a-c]", "[^b]", "[]", "[^]]", "[a&b]", "[a&&b]", "[[]", "[-a]", "\\d", "\\w+",
    "\\.", "\\Qa.b\\E", "\\Q", "\\p{Alpha}", "\\P{Digit}", "\\p{IsGreek}", "(", "(?:", "(?<n>", "(?=", "(?!",
    "(?<=", "(?>", "(?i)", ")", ")", "|", "*", "+", "?", "*+", "??", "{2}", "{1,3}", "{2,}", "{,3}", "{256}",
    "{255}", "\\k<n>", "\\1", "\\z", "\\Z", "^", "$", "\\x41", "\\u0042", "\\07", "\\h", "é", "x" * 334,
)  # fmt: skip
TEXTS: Final = ("", "a", "ab-", "b-0", "a.b", "aa", "0123", "A", "B", "aé", "a|b")


def translated(seed: int) -> int:
    chance, said = Random(seed), list[Any]()
    for _ in range(80):
        regex = "".join(chance.choice(PARTS) for _ in range(chance.choice((1, 1, 2, 3, 4))))
        found = java_pattern(regex)
        said.append([regex, None if found is None else [found.pattern, [matches([regex], text) for text in TEXTS]]])
    return digits(said)


TRANSLATED: Final = 61_122_264


def test_expressions_mean_the_same_brokers() -> None:
    assert digits([translated(seed) for seed in range(14)]) == TRANSLATED

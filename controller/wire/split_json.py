"""JSON split into its text and its numbers, and joined again to the same bytes.

The sweeps of a broker have the same text every minute, and other numbers.  A recording keeps both apart: columns of
numbers are small, and a text that was read once need not be read again.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from controller.model.load import Floats, Ints

#: Stands in the text where a number was; JSON has no such byte.
HOLE: Final = b"\x00"
#: Numbers as most writers write them: no sign, no exponent, no needless zero in front.  Not with ``?+`` and ``}+``:
#: by them Python 3.11.2 takes "5." for one.
_NUMBER: Final = re.compile(rb"(?<=[:,\[])((?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,22})?)(?=[,\]}])")
#: So many digits are less than the largest int64, whichever they are.
_MOST_DIGITS: Final = 18
#: Decimals at most: ten to their power is a float without rounding.
_MOST_DECIMALS: Final = 22
_POWERS: Final = 10.0 ** np.arange(_MOST_DECIMALS + 1)
#: Up to here whole numbers are floats without rounding.
_EXACT: Final = 1 << 53

#: Decimals of each number.
Decimals: TypeAlias = NDArray[np.uint8]


class SplitJson(NamedTuple):
    """A record's text with holes, and the numbers that belong there."""

    text: bytes
    #: (holes,) each number's digits, its point left out.
    digits: Ints
    #: (holes,) how many of them stand behind the point.
    decimals: Decimals


def split(value: bytes) -> SplitJson | None:
    """*value* split; None where it would not come back as it was: it has a hole or a number that is too long."""
    if HOLE in value:
        return None
    parts = _NUMBER.split(value)
    numbers = _numbers(parts[1::2])
    return None if numbers is None else SplitJson(HOLE.join(parts[::2]), *numbers)


def _numbers(texts: Sequence[bytes]) -> tuple[Ints, Decimals] | None:
    """Digits and decimals of the numbers *texts*; None where one is too large.  Many at once: a sweep has thousands."""
    text = b",".join([*texts, b""])
    characters = np.frombuffer(text, np.uint8)
    (ends,), (points,) = (characters == ord(",")).nonzero(), (characters == ord(".")).nonzero()
    decimals = np.zeros(len(texts), np.uint8)
    behind = np.searchsorted(ends, points)
    decimals[behind] = ends[behind] - points - 1
    whole = text[:-1].replace(b".", b"")
    if max(map(len, texts), default=0) > _MOST_DIGITS:
        try:
            return np.array([int(digits) for digits in whole.split(b",")], np.int64), decimals
        except OverflowError:
            return None
    return np.fromstring(whole, np.int64, sep=","), decimals


def joined(parts: SplitJson) -> bytes:
    """The value that was split.  ValueError where the numbers do not fit the text."""
    texts = parts.text.split(HOLE)
    if len(texts) != len(parts.digits) + 1 or len(parts.decimals) != len(parts.digits):
        raise ValueError(f"{len(parts.digits)} numbers for {len(texts) - 1} places")
    pairs = zip(parts.digits.tolist(), parts.decimals.tolist(), strict=True)
    return _woven(texts, [_number(*pair) for pair in pairs])


def floats(digits: Ints, decimals: Decimals) -> Floats:
    """(n,) the numbers as floats, rounded as a JSON parser rounds them."""
    numbers: Floats = digits / _POWERS[np.minimum(decimals, _MOST_DECIMALS)]
    for at in np.flatnonzero((digits > _EXACT) | (decimals > _MOST_DECIMALS)).tolist():
        numbers[at] = float(_number(int(digits[at]), int(decimals[at])))
    return numbers


def filled(text: bytes, numbers: Sequence[int]) -> bytes:
    """*text* with whole *numbers* in its holes."""
    return _woven(text.split(HOLE), [b"%d" % each for each in numbers])


def _woven(texts: Sequence[bytes], numbers: Sequence[bytes]) -> bytes:
    """Each of *texts* with the number that follows it; of the last one there is none."""
    whole = [b""] * (2 * len(texts) - 1)
    whole[::2], whole[1::2] = texts, numbers
    return b"".join(whole)


def _number(digits: int, decimals: int) -> bytes:
    if not decimals:
        return b"%d" % digits
    text = b"%0*d" % (decimals + 1, digits)
    return text[:-decimals] + b"." + text[-decimals:]

"""Columns of numbers as text, and back: so a strategy's memory has a number for every bundle, and the journal keeps it.

What is packed and unpacked again is what counts: so a restart changes nothing.  Every machine finds the same bytes.
"""

from base64 import b64decode, b64encode
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from controller.model.load import Floats, Ints

_FLOAT: Final = np.dtype("<f4")
_HALF: Final = np.dtype("<u2")
_BYTE: Final = np.dtype("<i1")
_KEY: Final = np.dtype("<u8")
#: Of a float32: the lower half is dropped, after half a step was added.
_DROPPED: Final = 16
_ROUNDING: Final = np.uint32(1 << (_DROPPED - 1))

Keys: TypeAlias = NDArray[np.uint64]


def pack_floats(values: Floats) -> str:
    """*values* with 24 bits of precision, 4 bytes each."""
    return _text(values.astype(_FLOAT))


def unpack_floats(text: str) -> Floats:
    """What ``pack_floats`` packed."""
    return _array(text, _FLOAT).astype(np.float64)


def pack_halves(values: Floats) -> str:
    """*values* with 8 bits of precision, 2 bytes each: the upper half of a float32."""
    bits = values.astype(_FLOAT).view("<u4")
    return _text(((bits + _ROUNDING) >> _DROPPED).astype(_HALF))


def unpack_halves(text: str) -> Floats:
    """What ``pack_halves`` packed."""
    bits = _array(text, _HALF).astype("<u4") << _DROPPED
    return bits.view(_FLOAT).astype(np.float64)


def pack_bytes(values: Ints) -> str:
    """*values*, from -128 to 127, a byte each."""
    return _text(values.astype(_BYTE))


def unpack_bytes(text: str) -> Ints:
    """What ``pack_bytes`` packed."""
    return _array(text, _BYTE).astype(np.int64)


def pack_codes(values: Ints) -> str:
    """*values*, from 0 to 65,535, 2 bytes each."""
    return _text(values.astype(_HALF))


def unpack_codes(text: str) -> Ints:
    """What ``pack_codes`` packed."""
    return _array(text, _HALF).astype(np.int64)


def pack_keys(values: Keys) -> str:
    """*values*, 8 bytes each."""
    return _text(values.astype(_KEY))


def unpack_keys(text: str) -> Keys:
    """What ``pack_keys`` packed."""
    return _array(text, _KEY).astype(np.uint64)


def _text(values: NDArray[Any]) -> str:
    return b64encode(values.tobytes()).decode()


def _array(text: str, kind: "np.dtype[Any]") -> NDArray[Any]:
    """The numbers in *text*; none where it is not a whole number of them."""
    try:
        data = b64decode(text, validate=True)
    except ValueError:
        data = b""
    return np.frombuffer(data if len(data) % kind.itemsize == 0 else b"", kind)

"""Columns as bytes: the blob format of shard states and snapshots.

A blob is a 4-byte magic, the length of the header, a JSON header, then the raw arrays, little-endian.  The header has
a version, so that a state of another version is refused, and never misread.
"""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.model.errors import StateError

_MAGIC = b"TRIM"
_LENGTH = 8
#: The type of the number of names, and of their lengths.
_SIZE = np.dtype("<i8")
#: UTF-8 has no lone surrogates; a state must be able to store them all the same.
_ANY_TEXT = "surrogatepass"


class Unpacked(NamedTuple):
    """The contents of a blob."""

    version: int
    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def pack(version: int, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """*header* (values of JSON) and *arrays* as one blob.  O(bytes)."""
    layout = [(name, array.dtype.str, array.shape) for name, array in arrays.items()]
    # Not as escapes: two lone surrogates would come back as one character.
    head = json.dumps({"version": version, "header": header, "layout": layout}, ensure_ascii=False)
    encoded = head.encode(errors=_ANY_TEXT)
    parts = [_MAGIC, len(encoded).to_bytes(_LENGTH, "little"), encoded]
    parts += [np.ascontiguousarray(array).tobytes() for array in arrays.values()]
    return b"".join(parts)


def unpack(blob: bytes, *, versions: Collection[int]) -> Unpacked:
    """Read a blob of :func:`pack`.

    Raises StateError for a version not in *versions*, and for a blob that is damaged or cut off.
    """
    if not blob.startswith(_MAGIC):
        raise StateError(f"stored state does not begin with {_MAGIC!r}: trimtab did not write it")
    start = len(_MAGIC) + _LENGTH
    end = start + int.from_bytes(blob[len(_MAGIC) : start], "little")
    if end > len(blob):
        raise StateError(f"stored state is truncated: its header ends at byte {end}, it has {len(blob)} bytes")
    try:
        head = json.loads(blob[start:end])
        version, header, layout = head["version"], head["header"], head["layout"]
    except (ValueError, TypeError, KeyError) as error:
        raise StateError(f"the header of a stored state cannot be read: {error!r}") from error
    if version not in versions:
        raise StateError(
            f"stored state has version {version}, but this version of trimtab reads "
            f"{', '.join(map(str, versions))}: start the release that wrote it, or with a new checkpoint"
        )
    try:
        return Unpacked(version, header, _arrays(layout, blob, end))
    except (ValueError, TypeError, OverflowError, SyntaxError) as error:  # the last: of a type that NumPy parses
        raise StateError(f"the columns of a stored state cannot be read: {error!r}") from error


def _arrays(layout: Any, blob: bytes, end: int) -> dict[str, NDArray[Any]]:
    """The columns of *layout*, which lie in *blob* from *end* to its own end."""
    arrays = {}
    for name, dtype, shape in layout:
        kind, count = np.dtype(dtype), math.prod(shape)
        if count < 0 or count * kind.itemsize > len(blob) - end:
            raise StateError(
                f"stored state is truncated in column {name}: {count} values of {dtype} do not fit into "
                f"{len(blob)} bytes"
            )
        arrays[name] = np.frombuffer(blob, kind, count, end).reshape(shape)
        end += arrays[name].nbytes
    if end != len(blob):
        raise StateError(f"stored state has {len(blob)} bytes, but its columns end at byte {end}")
    return arrays


def names_to_bytes(names: Sequence[str]) -> NDArray[np.uint8]:
    """*names*, with any characters, as one array of bytes: their number, the length of each in bytes, the names."""
    text = "".join(names)
    encoded = text.encode(errors=_ANY_TEXT)
    # A short cut: nearly all names are ASCII and have as many bytes as characters.
    sizes = map(len, names) if text.isascii() else (len(name.encode(errors=_ANY_TEXT)) for name in names)
    head = np.array([len(names), *sizes], _SIZE)
    return np.frombuffer(head.tobytes() + encoded, np.uint8)


def names_from_bytes(array: NDArray[np.uint8]) -> list[str]:
    """The names that :func:`names_to_bytes` stored; raises StateError if the lengths do not add up."""
    stored, width = array.tobytes(), _SIZE.itemsize
    count = int.from_bytes(stored[:width], "little")
    if len(stored) < width or count > len(stored) // width - 1:
        raise StateError(f"stored state is truncated: {count} names in {len(stored)} bytes")
    sizes, text = np.frombuffer(stored, _SIZE, count, width), stored[(count + 1) * width :]
    ends = np.cumsum(sizes).tolist()
    if (sizes < 0).any() or (ends[-1] if ends else 0) != len(text):
        raise StateError(f"stored state has {len(text)} bytes of names, but their lengths add up to another number")
    places = zip([0, *ends], ends, strict=False)
    if text.isascii():
        letters = text.decode()
        return [letters[lo:hi] for lo, hi in places]
    return [text[lo:hi].decode(errors=_ANY_TEXT) for lo, hi in places]


def text_to_bytes(text: str) -> NDArray[np.uint8]:
    """*text*, with any characters, as an array of bytes."""
    return np.frombuffer(text.encode(errors=_ANY_TEXT), np.uint8)


def text_from_bytes(array: NDArray[np.uint8]) -> str:
    """The text that :func:`text_to_bytes` stored."""
    return array.tobytes().decode(errors=_ANY_TEXT)

"""Columns as bytes: the one blob format of shard states and snapshots.

A blob is a 4-byte magic, the header's length, a JSON header, then the raw arrays one after another, little-endian.
It carries its own version so that an old state is migrated, or refused, rather than misread.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.model.errors import StateError

_MAGIC = b"TRIM"
_LENGTH = 8
_SEPARATOR = "\n"
#: The type of a name's length, and of their number.
_SIZE = np.dtype("<i8")
#: Half a surrogate pair is no text that UTF-8 has; a state holds it all the same.
_ANY_TEXT = "surrogatepass"


class Unpacked(NamedTuple):
    """What a blob holds."""

    version: int
    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def pack(version: int, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Write *header* (JSON-able) and *arrays* as one blob.  O(bytes)."""
    layout = [(name, array.dtype.str, array.shape) for name, array in arrays.items()]
    # As escapes, two halves of a surrogate pair would come back as one character.
    head = json.dumps({"version": version, "header": header, "layout": layout}, ensure_ascii=False)
    encoded = head.encode(errors=_ANY_TEXT)
    parts = [_MAGIC, len(encoded).to_bytes(_LENGTH, "little"), encoded]
    parts += [np.ascontiguousarray(array).tobytes() for array in arrays.values()]
    return b"".join(parts)


def unpack(blob: bytes, *, versions: Collection[int]) -> Unpacked:
    """Read what :func:`pack` wrote.

    StateError for a version that is none of *versions*, and where the lengths in the blob do not come to its own.
    """
    if blob[:4] != _MAGIC:
        raise StateError(f"stored state begins with {blob[:4]!r}, not {_MAGIC!r}: it is not trimtab's")
    start = 4 + _LENGTH
    end = start + int.from_bytes(blob[4:start], "little")
    if end > len(blob):
        raise StateError(f"stored state is cut off: its header ends at byte {end}, it has {len(blob)} bytes")
    try:
        head = json.loads(blob[start:end])
        version, header, layout = head["version"], head["header"], head["layout"]
    except (ValueError, TypeError, KeyError) as error:
        raise StateError(f"stored state has a header that cannot be read: {error!r}") from error
    if version not in versions:
        raise StateError(
            f"stored state has version {version}, this trimtab reads {', '.join(map(str, versions))}: "
            "start with the release that wrote it, or with a new checkpoint"
        )
    arrays = {}
    for name, dtype, shape in layout:
        kind, count = np.dtype(dtype), int(np.prod(shape, dtype=np.int64))
        if count < 0 or count * kind.itemsize > len(blob) - end:
            raise StateError(f"stored state is cut off in {name}: {count} of {dtype} do not fit in {len(blob)} bytes")
        arrays[name] = np.frombuffer(blob, kind, count, end).reshape(shape)
        end += arrays[name].nbytes
    if end != len(blob):
        raise StateError(f"stored state has {len(blob)} bytes, its columns come to {end}")
    return Unpacked(version, header, arrays)


def names_to_bytes(names: Sequence[str]) -> NDArray[np.uint8]:
    """Names, whatever is in them, as one array of bytes: their number, the length of each in bytes, the names."""
    text = "".join(names)
    encoded = text.encode(errors=_ANY_TEXT)
    # A name of ASCII has as many bytes as characters, and nearly all names are such.
    sizes = map(len, names) if text.isascii() else (len(name.encode(errors=_ANY_TEXT)) for name in names)
    head = np.array([len(names), *sizes], _SIZE)
    return np.frombuffer(head.tobytes() + encoded, np.uint8)


def names_from_bytes(array: NDArray[np.uint8]) -> list[str]:
    """What :func:`names_to_bytes` was given; StateError where the lengths do not come to the array's."""
    stored, width = array.tobytes(), _SIZE.itemsize
    count = int.from_bytes(stored[:width], "little")
    if len(stored) < width or count > len(stored) // width - 1:
        raise StateError(f"stored state is cut off: {count} names in {len(stored)} bytes")
    sizes, text = np.frombuffer(stored, _SIZE, count, width), stored[(count + 1) * width :]
    ends = np.cumsum(sizes).tolist()
    if (sizes < 0).any() or (ends[-1] if ends else 0) != len(text):
        raise StateError(f"stored state has {len(text)} bytes of names, which is not the sum of their lengths")
    places = zip([0, *ends], ends, strict=False)
    if text.isascii():
        letters = text.decode()
        return [letters[lo:hi] for lo, hi in places]
    return [text[lo:hi].decode(errors=_ANY_TEXT) for lo, hi in places]


def text_to_bytes(text: str) -> NDArray[np.uint8]:
    """*text*, whatever is in it, as an array of bytes."""
    return np.frombuffer(text.encode(errors=_ANY_TEXT), np.uint8)


def text_from_bytes(array: NDArray[np.uint8]) -> str:
    """What :func:`text_to_bytes` was given."""
    return array.tobytes().decode(errors=_ANY_TEXT)


def names_from_lines(array: NDArray[np.uint8]) -> list[str]:
    """Names as states of version 1 hold them: one a line."""
    return array.tobytes().decode().split(_SEPARATOR) if len(array) else []

"""Columns as bytes: the one blob format of shard states and snapshots.

A blob is a 4-byte magic, the header's length, a JSON header, then the raw arrays one after another, little-endian.
It carries its own version so that an old state is migrated, or refused, rather than misread.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from controller.model.errors import StateError

_MAGIC = b"TRIM"
_LENGTH = 8
_SEPARATOR = "\n"


def pack(version: int, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Write *header* (JSON-able) and *arrays* as one blob.  O(bytes)."""
    layout = [(name, array.dtype.str, array.shape) for name, array in arrays.items()]
    head = json.dumps({"version": version, "header": header, "layout": layout}).encode()
    parts = [_MAGIC, len(head).to_bytes(_LENGTH, "little"), head]
    parts += [np.ascontiguousarray(array).tobytes() for array in arrays.values()]
    return b"".join(parts)


def unpack(blob: bytes, *, version: int) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read what :func:`pack` wrote; another version than *version* is refused with StateError."""
    if blob[:4] != _MAGIC:
        raise StateError(f"stored state begins with {blob[:4]!r}, not {_MAGIC!r}: it is not trimtab's")
    start = 4 + _LENGTH
    end = start + int.from_bytes(blob[4:start], "little")
    head = json.loads(blob[start:end])
    if head["version"] != version:
        raise StateError(
            f"stored state has version {head['version']}, this trimtab writes {version}: "
            "start with the release that wrote it, or with a new checkpoint"
        )
    arrays = {}
    for name, dtype, shape in head["layout"]:
        count = int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(blob, np.dtype(dtype), count, end).reshape(shape)
        end += arrays[name].nbytes
    return head["header"], arrays


def names_to_bytes(names: Sequence[str]) -> NDArray[np.uint8]:
    """Names (without line breaks) as one array of bytes."""
    return np.frombuffer(_SEPARATOR.join(names).encode(), np.uint8)


def names_from_bytes(array: NDArray[np.uint8]) -> list[str]:
    """What :func:`names_to_bytes` was given."""
    return array.tobytes().decode().split(_SEPARATOR) if len(array) else []

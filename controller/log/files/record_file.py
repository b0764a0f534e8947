"""A file that holds one record with its headers: a line ``{"headers":{...}}``, then the value as it is.

A mark, which says who took a partition over, is the line ``{"mark":...}`` alone.
"""

import json
from collections.abc import Mapping


def record_file(headers: Mapping[str, bytes], value: bytes) -> bytes:
    """The content of the file of a record."""
    # Bytes as the characters with their numbers: a header may be anything, and most are plain text.
    readable = {name: content.decode("latin-1") for name, content in headers.items()}
    return json.dumps({"headers": readable}, separators=(",", ":")).encode() + b"\n" + value


def mark_file(who: bytes) -> bytes:
    """The content of a mark."""
    return json.dumps({"mark": who.decode("latin-1")}, separators=(",", ":")).encode() + b"\n"


def header_of(content: bytes) -> tuple[Mapping[str, bytes] | None, bytes]:
    """The headers and the value in *content*; None where it is a mark.

    If the first line has another form, as in a damaged file, all of it is returned as the value.
    """
    line, end, value = content.partition(b"\n")
    try:
        first = json.loads(line)
        if "mark" in first and end:
            return None, b""
        return {name: text.encode("latin-1") for name, text in first["headers"].items()}, value
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {}, content

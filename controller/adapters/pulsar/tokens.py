"""Claims that a token makes about itself."""

import base64
import json
import re
from typing import Final

#: The end of the year 9999: no later time can be told.
_LAST_SECOND: Final = 253_402_300_800
#: What HTTP sends as it is in a header.
_SENDABLE: Final = re.compile("[!-~]*")


def is_sendable(token: str) -> bool:
    """Whether a header can hold *token* as it is."""
    return _SENDABLE.fullmatch(token) is not None


def end_of(token: str) -> float | None:
    """When *token* ends, epoch seconds; None where it does not say, or is no JSON Web Token."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        end = float(claims["exp"])
        return end if 0 <= end < _LAST_SECOND else None
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None

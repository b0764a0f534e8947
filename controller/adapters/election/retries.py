"""A write that replaces what was read, tried again where another writer was faster."""

import random
import time
from collections.abc import Callable
from typing import Final, TypeVar

from controller.model.errors import TrimtabError

T = TypeVar("T")

_TRIES: Final = 20
#: The longest wait after the first try; it doubles after each further one, up to the other.
_FIRST_SECONDS: Final = 0.005
_LONGEST_SECONDS: Final = 0.1


def retried(what: str, attempt: Callable[[], T | None]) -> T:
    """What *attempt* returns, which reads *what* and replaces it; None: another writer was faster, so try again.

    Between tries it waits a random time, so that two writers do not meet each time; 1.6 s in all at most.
    TrimtabError where others were faster each time.
    """
    for number in range(_TRIES):
        if number:
            time.sleep(random.uniform(0.0, min(_FIRST_SECONDS * 2 ** (number - 1), _LONGEST_SECONDS)))
        result = attempt()
        if result is not None:
            return result
    raise TrimtabError(f"others changed {what} during each of {_TRIES} tries, so this was not stored: try again")

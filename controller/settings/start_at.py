"""``start_at``: where a controller without a checkpoint begins to read its log."""

import re
from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator

#: Starting positions that are not a time.
_ENDS: Final = ("earliest", "latest")
_AGE: Final = re.compile(r"[0-9]{1,6}[mhd]")
_UNITS_MS: Final = {"m": 60_000, "h": 3_600_000, "d": 86_400_000}


def _start(text: str) -> str:
    if text not in _ENDS and not _AGE.fullmatch(text):
        raise ValueError("allowed: earliest, latest, or a time before now: 90m, 4h, 7d")
    return text


StartAt: TypeAlias = Annotated[str, AfterValidator(_start)]


def append_time_of(start_at: str, now_ms: int) -> int | None:
    """The append time that *start_at* means at *now_ms* (epoch ms); None for ``earliest`` and ``latest``."""
    if start_at in _ENDS:
        return None
    return max(0, now_ms - int(start_at[:-1]) * _UNITS_MS[start_at[-1]])

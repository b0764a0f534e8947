"""How many files and connections this process may have open: most systems give it 1,024, and more if it asks."""

import resource
from contextlib import suppress


def open_at_most(wanted: int) -> int:
    """Ask for *wanted* open files and connections; returns how many there may be, *wanted* at most."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed, most = (wanted if limit == resource.RLIM_INFINITY else min(limit, wanted) for limit in (soft, hard))
    if allowed < most:
        with suppress(OSError, ValueError):  # macOS allows fewer than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            return most
    return allowed

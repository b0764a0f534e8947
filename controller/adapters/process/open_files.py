"""How many files and connections this process may have open: most systems give it 1,024, and more if it asks."""

import resource
from contextlib import suppress


def open_at_most(files: int) -> int:
    """Ask for *files* open files and connections; returns how many there may be, *files* at most."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed, hard_limit = (files if limit == resource.RLIM_INFINITY else min(limit, files) for limit in (soft, hard))
    if allowed < hard_limit:
        with suppress(OSError, ValueError):  # macOS allows fewer than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard))
            return hard_limit
    return allowed

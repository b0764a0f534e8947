"""How hard tests try: the profile of hypothesis says it, also for tests that count their tries themselves."""

from typing import Final

from hypothesis import settings

#: The profile of scripts/test.
THOROUGH: Final = "thorough"
#: The marks by which plain pytest, without a file, folder or mark, chooses its tests.
PLAIN: Final = "not integration and not e2e and not slow and not extended"


def tries(*, plain: int, thorough: int) -> int:
    """*plain* of them with plain pytest, *thorough* with scripts/test."""
    return thorough if settings.get_current_profile_name() == THOROUGH else plain

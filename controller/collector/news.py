"""Messages that are logged when they change, not each time.  Pure."""

from collections.abc import Collection
from dataclasses import dataclass, field


@dataclass(slots=True)
class News:
    """The last message about each of some things, "" for most."""

    _last_reported: dict[str, str] = field(default_factory=dict)

    def retain(self, things: Collection[str]) -> None:
        """Forget all but *things*."""
        self._last_reported = {what: reported for what, reported in self._last_reported.items() if what in things}

    def is_news(self, what: str, message: str) -> bool:
        """Whether *message* about *what* differs from the last one and is not "".  Stores it."""
        before = self._last_reported.pop(what, "")
        if message:
            self._last_reported[what] = message
        return message != before

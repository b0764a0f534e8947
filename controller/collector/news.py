"""What is logged when it changes, and not each time it is seen.  Pure."""

from collections.abc import Collection
from dataclasses import dataclass, field


@dataclass(slots=True)
class News:
    """What was told last of each of some things; of most there is nothing to tell."""

    _told: dict[str, str] = field(default_factory=dict)

    def keep(self, things: Collection[str]) -> None:
        """Forget what was told of all but *things*."""
        self._told = {what: told for what, told in self._told.items() if what in things}

    def is_news(self, what: str, told: str) -> bool:
        """Whether *told* of *what* is not what was told last; "" is nothing to tell.  Keeps it."""
        before = self._told.pop(what, "")
        if told:
            self._told[what] = told
        return told != before

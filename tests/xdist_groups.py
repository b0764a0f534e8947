"""How pytest-xdist deals out the tests: a file stays together, and so do all files that share a server or a session."""

from collections.abc import Iterable
from typing import Final

import pytest
from xdist.scheduler import LoadGroupScheduling

#: Fixtures that only one worker may use at a time, by its tests one after the other.  Tests on the shared Pulsar move
#: its load and change its settings; a Spark session for each worker costs more than it gains.
EXCLUSIVE: Final = ("pulsar", "spark")
#: Which groups and folders start first: those that take long.  Whatever is in neither is quick, and comes last.
FIRST: Final = (
    "pulsar",
    "tests/e2e/",
    "spark",
    "tests/protocol/",
    "tests/simulation/",
    "tests/integration/",
    "tests/fuzz/",
    "tests/property/",
)


class FileOrGroupScheduling(LoadGroupScheduling):  # type: ignore[misc]  # xdist has no types
    """Tests without an ``xdist_group`` are a group by file, not each by itself."""

    def _split_scope(self, nodeid: str) -> str:
        group: str = super()._split_scope(nodeid)
        return nodeid.partition("::")[0] if group == nodeid else group


def arrange(items: list[pytest.Item]) -> None:
    """Put files with a fixture of EXCLUSIVE into its group, and the groups that take long in front."""
    groups = {_file(item): fixture for item in items for fixture in _exclusive(item)}
    for item in items:
        if group := groups.get(_file(item)):
            item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: _rank(groups.get(_file(item)) or _file(item)))


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _exclusive(item: pytest.Item) -> Iterable[str]:
    used = getattr(item, "fixturenames", ())
    # The first one is written last: what uses both runs beside the others on Pulsar.
    return [fixture for fixture in reversed(EXCLUSIVE) if fixture in used]


def _rank(group: str) -> int:
    return next((nth for nth, beginning in enumerate(FIRST) if group.startswith(beginning)), len(FIRST))

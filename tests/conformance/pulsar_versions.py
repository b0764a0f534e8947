"""The options by which trimtab decides as a release of Pulsar does."""

from collections.abc import Mapping
from typing import Any, Final

#: From a release on, major and minor version.
_SINCE: Final[Mapping[tuple[int, int], Mapping[str, Any]]] = {(4, 2): {"trimtabUniformLoadShedderSlack": 0}}


def options_of(release: str) -> dict[str, Any]:
    """Options of broker.conf with other values than trimtab's defaults."""
    major, minor = map(int, release.split(".")[:2])
    found: dict[str, Any] = {}
    for since, options in _SINCE.items():
        found |= options if (major, minor) >= since else {}
    return found

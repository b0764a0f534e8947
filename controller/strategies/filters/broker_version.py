"""Keep the brokers that run the latest version, so that a rolling upgrade fills the new ones.

If the version of any candidate is unknown or no semantic version (https://semver.org), versions cannot be compared, and
no broker is kept.  Pulsar then uses the brokers that the isolation policies allow, and so does modular_select_broker.

Pulsar: impl.BrokerVersionFilter
"""

import re
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from controller.model.decision import Reason
from controller.model.load import ClusterView, Ints
from controller.model.option import option
from controller.model.policies import Policies

#: Numbers, whether it is a release, and the identifiers of a pre-release, numbers before words.
Precedence: TypeAlias = tuple[tuple[int, ...], bool, tuple[tuple[bool, int, str], ...]]

_NUMBER = r"(?:0|[1-9]\d*)"
_IDENTIFIER = r"[0-9A-Za-z-]+"
_SEMANTIC = re.compile(
    rf"({_NUMBER}\.{_NUMBER}\.{_NUMBER})(?:-({_IDENTIFIER}(?:\.{_IDENTIFIER})*))?(?:\+{_IDENTIFIER}(?:\.{_IDENTIFIER})*)?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerVersion:
    """See the module docstring."""

    reason: ClassVar[Reason] = Reason.BROKER_VERSION
    binding: ClassVar[bool] = False

    prefer_later: bool = option(
        "preferLaterVersions", default=False, meaning="a bundle goes to a broker of the latest version"
    )

    def keep(
        self,
        view: ClusterView,
        bundle: int,  # noqa: ARG002  the same for every bundle
        candidates: Ints,
    ) -> Ints:
        """The *candidates* of the latest version, whichever build of it; none where a version is unknown."""
        if not self.prefer_later or not len(candidates):
            return candidates
        policies, names = view.policies, view.brokers.names
        rank = policies.derived(("versions", names), lambda: _ranks(policies, names))[candidates]
        latest: Ints = candidates[:0] if (rank < 0).any() else candidates[rank == rank.max()]
        return latest


def _ranks(policies: Policies, names: tuple[str, ...]) -> Ints:
    """(brokers,) numbers in the order of their versions; -1: unknown."""
    versions = [precedence(policies.broker_version.get(name, "")) for name in names]
    rank = {version: i for i, version in enumerate(sorted({version for version in versions if version is not None}))}
    return np.array([-1 if version is None else rank[version] for version in versions], np.int64)


def precedence(version: str) -> Precedence | None:
    """The key that orders *version*, or None when it is no semantic version.  Build metadata does not count."""
    match = _SEMANTIC.fullmatch(version)
    if match is None:
        return None
    identifiers = match[2].split(".") if match[2] else []
    if any(part.isdigit() and len(part) > 1 and part.startswith("0") for part in identifiers):
        return None
    ordered = tuple((not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in identifiers)
    return tuple(map(int, match[1].split("."))), not identifiers, ordered

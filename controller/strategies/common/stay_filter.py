"""Base of filters that decide whether a bundle may leave its broker, not where it goes."""

from dataclasses import dataclass
from typing import ClassVar

from controller.model.load import ClusterView, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class StayFilter:
    """Base of such a filter: it excludes no broker, and says by ``may_leave`` which bundles stay."""

    binding: ClassVar[bool] = False

    def keep(
        self,
        view: ClusterView,  # noqa: ARG002
        bundle: int,  # noqa: ARG002
        candidates: Ints,
    ) -> Ints:
        """All *candidates*."""
        return candidates

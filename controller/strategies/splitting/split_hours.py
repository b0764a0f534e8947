"""Split at quiet hours only: a split closes and reopens all topics of the bundle, which clients notice.

The hour is that of the interval, UTC, not that of the clock: a replay at noon splits what was split at night.
"""

import re
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from controller.model.decision import Reason, SplitDecision, Verdict
from controller.model.errors import SettingsError
from controller.model.load import ClusterView
from controller.model.option import option
from controller.model.strategy_memory import StrategyMemory
from controller.strategies.protocols import SplitPolicy, SplitThresholds

M = TypeVar("M", bound=StrategyMemory)

_KEY: Final = "trimtabSplitHours"
_SPAN: Final = re.compile(r"\s*(\d{1,2})\s*(?:-\s*(\d{1,2})\s*)?")
_HOUR_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitHours:
    """When bundles may be split."""

    text: str = option(
        _KEY,
        default="",
        unit="h, UTC",
        meaning="bundles are split at these hours only: 1-5,22-24 is from 01:00 to 05:00 and from 22:00 to midnight,"
        " 22-5 goes over midnight, 3 is the hour from 03:00; empty: at any hour",
    )

    def __post_init__(self) -> None:
        _hours(self.text)

    def hold(self, time_ms: int) -> bool:
        """Whether *time_ms*, epoch ms, lies in one of the hours."""
        hours = _hours(self.text)
        return not hours or time_ms // _HOUR_MS % 24 in hours


@dataclass(frozen=True, slots=True, kw_only=True)
class WithinHours:
    """A split policy whose splits outside of the hours are told, and not carried out; its memory always changes."""

    policy: SplitPolicy[Any]
    hours: SplitHours

    @property
    def wrapped(self) -> SplitPolicy[Any]:
        """The policy."""
        return self.policy

    @property
    def thresholds(self) -> SplitThresholds:
        """Those of the policy."""
        return self.policy.thresholds

    def initial_memory(self) -> StrategyMemory:
        """That of the policy."""
        memory: StrategyMemory = self.policy.initial_memory()
        return memory

    def decide(self, view: ClusterView, memory: M) -> tuple[SplitDecision, M]:
        """What the policy decides; outside of the hours NotThisInterval for each of its splits."""
        decision, after = self.policy.decide(view, memory)
        if self.hours.hold(view.as_of_ms):
            return decision, after
        detail = f"splits at {self.hours.text} h UTC only"
        refused = tuple(
            Verdict(subject=split.bundle, reason=Reason.NOT_THIS_INTERVAL, by=_KEY, detail=detail)
            for split in decision.splits
        )
        return replace(decision, splits=(), verdicts=(*decision.verdicts, *refused)), after


def _hours(text: str) -> frozenset[int]:
    """The hours of the day in *text*, or SettingsError."""
    hours = set[int]()
    for span in text.split(",") if text.strip() else ():
        match = _SPAN.fullmatch(span)
        first = int(match[1]) if match else 24
        end = first + 1 if match is None or match[2] is None else int(match[2])
        if first > 23 or end > 24 or first == end:
            raise SettingsError(
                f"{_KEY}={text}: {span.strip()!r} is no span of hours: allowed: 1-5,22-24 and the like, hours 0 to 23,"
                " the end not included"
            )
        hours.update(range(first, end) if first < end else (*range(first, 24), *range(end)))
    return frozenset(hours)

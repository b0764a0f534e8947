"""A scalable topic of Pulsar 5.0 in a modelled cluster: its segments, and how brokers split and merge them.

The topic's keys are equal parts, the topics of its namespace in the scenario.  A segment has some that are next to each
other.

Pulsar: AutoScalePolicyEvaluator
"""

from dataclasses import dataclass, field

import numpy as np

from controller.model.load import Floats, Ints
from controller.model.segment_code import KEY_HASHES
from controller.strategies.common.auto_scale import AutoScale


@dataclass(slots=True)
class _Segment:
    """The parts first .. end - 1."""

    first: int
    end: int
    number: int
    #: Since when it is below all thresholds to merge, epoch ms; None: it is not.
    cold_ms: int | None = None


@dataclass(slots=True)
class ModelledTopic:
    """One scalable topic."""

    #: tenant/namespace/topic.
    name: str
    parts: int
    #: At the start.
    segments: int
    scale: AutoScale
    _segments: list[_Segment] = field(init=False)
    _next: int = field(init=False)
    _split_ms: int | None = None
    _merged_ms: int | None = None

    def __post_init__(self) -> None:
        width = self.parts // self.segments
        self._segments = [_Segment(n * width, (n + 1) * width, n) for n in range(self.segments)]
        self._next = self.segments

    def names(self) -> list[str]:
        """(parts,) the name of each part's segment."""
        of_part = KEY_HASHES // self.parts
        return [
            f"segment://{self.name}/{each.first * of_part:04x}-{each.end * of_part - 1:04x}-{each.number}"
            for each in self._segments
            for _ in range(each.first, each.end)
        ]

    def starts(self) -> Ints:
        """(segments,) the first part of each."""
        return np.array([each.first for each in self._segments], np.int64)

    def scale_to(self, load: Floats, now_ms: int) -> bool:
        """Split or merge by *load*, (parts, 4), at *now_ms*, as a broker does once a minute; whether anything changed.

        One action at most: the hottest segment above a threshold to split, else the coldest pair that may be merged.
        """
        if not self.scale.acts:
            return False
        of_segment = np.add.reduceat(load, self.starts())
        for each, cold in zip(self._segments, self.scale.is_cold(of_segment).tolist(), strict=True):
            each.cold_ms = (each.cold_ms if each.cold_ms is not None else now_ms) if cold else None
        return self._split(of_segment, now_ms) or self._merge(of_segment, now_ms)

    def _split(self, load: Floats, now_ms: int) -> bool:
        if len(self._segments) >= self.scale.max_segments or _within(
            now_ms, self._split_ms, self.scale.split_cooldown_seconds
        ):
            return False
        pressure = self.scale.pressure(load)
        # A part is the finest that the scenario knows of.
        pressure[[each.end - each.first == 1 for each in self._segments]] = 0.0
        hottest = int(pressure.argmax())
        if pressure[hottest] <= 1.0:
            return False
        one = self._segments[hottest]
        middle = (one.first + one.end) // 2
        halves = _Segment(one.first, middle, self._next), _Segment(middle, one.end, self._next + 1)
        self._segments[hottest : hottest + 1] = halves
        self._next, self._split_ms = self._next + 2, now_ms
        return True

    def _merge(self, load: Floats, now_ms: int) -> bool:
        scale = self.scale
        if len(self._segments) <= scale.min_segments or _within(now_ms, self._merged_ms, scale.merge_cooldown_seconds):
            return False
        window = scale.merge_window_seconds * 1000
        cold = [each.cold_ms is not None and now_ms - each.cold_ms >= window for each in self._segments]
        total = load.sum(axis=1)
        pairs = [n for n in range(len(cold) - 1) if cold[n] and cold[n + 1]]
        if not pairs:
            return False
        at = min(pairs, key=lambda n: (float(total[n] + total[n + 1]), n))
        one, other = self._segments[at : at + 2]
        self._segments[at : at + 2] = [_Segment(one.first, other.end, self._next)]
        self._next, self._merged_ms = self._next + 1, now_ms
        return True


def _within(now_ms: int, last_ms: int | None, seconds: int) -> bool:
    return last_ms is not None and now_ms - last_ms < 1000 * seconds

"""The load of all topics of a scenario, interval by interval: seasons, drift, bursts, hot topics, growth.

Topics are columns.  Everything follows from the scenario and a seed.
"""

from typing import Final

import numpy as np

from controller.model.load import RATE_OUT, THROUGHPUT_OUT, Bools, Floats, Ints
from controller.settings.scenario import Scenario
from controller.settings.scenario_parts import LoadSettings, TurnNumber

_DAY_HOURS, _WEEK_HOURS, _HOUR_SECONDS = 24.0, 168.0, 3600.0
#: The hour of a week that is busiest: noon of the fourth day.
_BUSIEST_OF_WEEK: Final = 84.0
#: A drifting topic keeps so much of its distance from its mean in each interval.
_DRIFT_SHARE_KEPT: Final = 0.97
#: Standard deviation of the logarithm of a topic's message size.
_MESSAGE_SPREAD: Final = 0.5


class Demand:
    """The load that clients put on each topic."""

    def __init__(self, scenario: Scenario, chance: np.random.Generator) -> None:
        """Make the topics of all namespaces, in the order of the file, and give each its share of the load."""
        self._scenario, self._chance = scenario, chance
        spaces = scenario.namespaces
        sizes = [space.topics for space in spaces]
        #: (topics,) row of the topic's namespace in the scenario.
        self.namespace: Ints = np.repeat(np.arange(len(spaces)), sizes)
        #: (topics,) clients.
        self.producers: Ints = np.repeat([space.producers for space in spaces], sizes)
        self.consumers: Ints = np.repeat([space.consumers for space in spaces], sizes)
        self._mean = self._shares() * scenario.load.msg_rate
        self._bytes = self._message_bytes()
        self._drift: Floats = np.zeros(len(self._mean))
        self._hot = [self._hot_rate(number) for number in range(len(scenario.hot_topics))]
        #: Of each lag (topics,) what consumers have left so far, in messages/s times intervals.
        self._behind: list[Floats] = [np.zeros(len(self._mean)) for _ in scenario.lags]

    def __len__(self) -> int:
        return len(self._mean)

    def mean_load(self) -> Floats:
        """(topics, 4) msg/s and bytes/s at the mean of a day, without anything that happens."""
        return self._as_load(self._mean)

    def load(self, turn: TurnNumber) -> Floats:
        """(topics, 4) msg/s and bytes/s in *turn*; to be asked for every interval once, in order."""
        settings, rate = self._scenario.load, self._mean
        if settings.drift_percent:
            step = self._chance.standard_normal(len(rate))
            self._drift = _DRIFT_SHARE_KEPT * self._drift + settings.drift_percent / 100 * step
            rate = rate * np.exp(self._drift)
        rate = rate * self._season(turn, settings)[self.namespace]
        for burst in self._scenario.bursts:
            if burst.lasts_in(turn):
                rate = np.where(self._of(burst.namespace), burst.factor * rate, rate)
        for hot, more in zip(self._scenario.hot_topics, self._hot, strict=True):
            if hot.lasts_in(turn):
                rate = rate + more
        return self._with_lags(self._as_load(rate), turn)

    def _with_lags(self, load: Floats, turn: TurnNumber) -> Floats:
        """*load* (topics, 4) with what consumers leave in *turn*, and what they catch up."""
        for lag, behind in zip(self._scenario.lags, self._behind, strict=True):
            published = np.where(self._of(lag.namespace), load[:, RATE_OUT], 0.0)
            if lag.lasts_in(turn):
                more = -lag.percent / 100 * published
            else:
                more = np.minimum(behind, (lag.catch_up_factor - 1) * published)
            behind -= more
            load[:, RATE_OUT] += more
            load[:, THROUGHPUT_OUT] += more * self._bytes
        return load

    def _season(self, turn: TurnNumber, settings: LoadSettings) -> Floats:
        """(namespaces,) load in *turn* against the mean: of the hour, the day of the week, and growth."""
        hour = self._scenario.start_hour + turn * self._scenario.period_seconds / _HOUR_SECONDS
        peaks = np.array([space.peak_hour for space in self._scenario.namespaces])
        of_day = 1 + settings.daily_percent / 100 * np.cos(2 * np.pi * (hour - peaks) / _DAY_HOURS)
        of_week = 1 + settings.weekly_percent / 100 * np.cos(2 * np.pi * (hour - _BUSIEST_OF_WEEK) / _WEEK_HOURS)
        days = (hour - self._scenario.start_hour) / _DAY_HOURS
        season: Floats = of_day * of_week * (1 + settings.growth_percent_a_day / 100) ** days
        return season

    def _shares(self) -> Floats:
        """(topics,) of the cluster's messages; which topic of a namespace is the largest is chance."""
        spaces = self._scenario.namespaces
        total = sum(space.share for space in spaces)
        parts = []
        for space in spaces:
            # The partitions of a topic are alike.
            alike = max(space.partitions, 1)
            groups = -(-space.topics // alike)
            weight = self._chance.permutation(np.arange(1.0, groups + 1) ** -space.zipf)
            of_topic = np.repeat(weight, alike)[: space.topics]
            parts.append(of_topic / of_topic.sum() * space.share / total)
        return np.concatenate(parts)

    def _message_bytes(self) -> Floats:
        """(topics,) bytes of a message: alike for the partitions of a topic, and where all topics are equal."""
        parts = []
        for space in self._scenario.namespaces:
            alike = max(space.partitions, 1)
            spread = _MESSAGE_SPREAD if space.zipf else 0.0
            size = self._chance.lognormal(-(spread**2) / 2, spread, -(-space.topics // alike))
            parts.append(np.repeat(size, alike)[: space.topics])
        return self._scenario.load.message_bytes * np.concatenate(parts)

    def _hot_rate(self, number: int) -> Floats:
        """(topics,) what hot topic *number* of the scenario adds, msg/s."""
        hot = self._scenario.hot_topics[number]
        rows = np.flatnonzero(self._of(hot.namespace))
        chosen = self._chance.permutation(rows)[: hot.topics]
        more = np.zeros(len(self._mean))
        more[chosen] = hot.percent / 100 * self._scenario.load.msg_rate / len(chosen)
        return more

    def _of(self, namespace: str) -> Bools:
        """(topics,) whether each belongs to *namespace*; "" is any."""
        if not namespace:
            return np.ones(len(self.namespace), np.bool_)
        row = [space.name for space in self._scenario.namespaces].index(namespace)
        of_namespace: Bools = self.namespace == row
        return of_namespace

    def _as_load(self, rate: Floats) -> Floats:
        out = rate * self._scenario.load.subscriptions
        return np.stack([rate, out, rate * self._bytes, out * self._bytes], axis=1)

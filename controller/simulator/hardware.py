"""Converts load to usage in a scenario, and models the brokers' reports: right, wrong, stale or missing."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from controller.model.load import (
    BANDWIDTH_IN,
    BANDWIDTH_OUT,
    CPU,
    DIRECT_MEMORY,
    MEMORY,
    RATE_IN,
    RATE_OUT,
    RESOURCE_OF,
    THROUGHPUT_IN,
    THROUGHPUT_OUT,
    Bools,
    Floats,
    Ints,
)
from controller.settings.scenario import Scenario
from controller.settings.scenario_parts import Misreport, TurnNumber

#: CPU percent of 8 cores, memory and direct memory in MiB, of a broker of capacity 1.
_CPU_LIMIT, _MEMORY_LIMIT, _DIRECT_MEMORY_LIMIT = 800.0, 8192.0, 16384.0
_KBIT: Final = 8 / 1000
#: The heap usage between two garbage collections, as fractions.
_HEAP: Final = (0.2, 0.9)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reported:
    """The brokers' reports about themselves."""

    #: (brokers, 5) usage and limit in the units of LocalBrokerData.
    usage: Floats
    limit: Floats
    #: (brokers,) who reports nothing.
    missing: Bools


class Hardware:
    """The brokers' machines: what each can carry, and what it says about that."""

    def __init__(self, scenario: Scenario, mean_load: Floats, chance: np.random.Generator) -> None:
        """*mean_load*: (4,) msg/s and bytes/s of the whole cluster at the mean of a day."""
        self._settings, self._misreports, self._chance = scenario.hardware, scenario.misreports, chance
        groups = scenario.brokers
        counts = [group.count for group in groups]
        capacity = np.repeat([group.capacity for group in groups], counts)
        at_start = np.repeat([group.joins_at == 0 for group in groups], counts)
        share = capacity / capacity[at_start].sum()
        messages = mean_load[RATE_IN] + mean_load[RATE_OUT]
        #: (brokers,) messages in + out and bytes in or out, each a second, at 100 %.
        self._messages: Floats = share * messages / (scenario.hardware.cpu_percent / 100)
        busier = max(mean_load[THROUGHPUT_IN], mean_load[THROUGHPUT_OUT])
        self._bytes: Floats = share * busier / (scenario.hardware.network_percent / 100)
        #: (brokers, 5) the true limits.
        self.limit: Floats = np.column_stack(
            [
                _CPU_LIMIT * capacity,
                _MEMORY_LIMIT * capacity,
                _DIRECT_MEMORY_LIMIT * capacity,
                self._bytes * _KBIT,
                self._bytes * _KBIT,
            ]
        )
        self._before: Floats | None = None

    def usage_of(self, load: Floats) -> Floats:
        """(brokers, 5) true usage as fractions of the limits; *load* is (brokers, 4).

        Above 1: more is asked than the broker can do.  Heap and direct memory are 0 here: they say nothing about load.
        """
        usage = np.zeros((len(load), 5))
        usage[:, CPU] = self._settings.idle_percent / 100 + (load[:, RATE_IN] + load[:, RATE_OUT]) / self._messages
        usage[:, BANDWIDTH_IN] = load[:, THROUGHPUT_IN] / self._bytes
        usage[:, BANDWIDTH_OUT] = load[:, THROUGHPUT_OUT] / self._bytes
        return usage

    def cpu_of(self, messages: Floats, broker: Ints) -> Floats:
        """(n,) CPU usage that *messages* in + out a second cost on *broker*, as fractions."""
        cost: Floats = messages / self._messages[broker]
        return cost

    def reported(self, usage: Floats, turn: TurnNumber) -> Reported:
        """What the brokers report in *turn* of their true *usage*; to be asked for every interval once."""
        n, settings = len(usage), self._settings
        measured = usage.copy()
        measured[:, CPU] += settings.noise_percent / 100 * self._chance.standard_normal(n)
        measured[:, MEMORY] = self._chance.uniform(*_HEAP, n)
        measured[:, DIRECT_MEMORY] = settings.direct_memory_percent / 100 * self._chance.uniform(0, 1, n)
        # No machine is busier than all of it, however much is asked.
        reported_usage, limit = np.clip(measured, 0, 1) * self.limit, self.limit.copy()
        missing = np.zeros(n, np.bool_)
        for wrong in self._misreports:
            if wrong.lasts_in(turn):
                self._falsify(wrong, reported_usage, limit, missing)
        self._before = reported_usage
        return Reported(usage=np.round(reported_usage, 2), limit=np.round(limit, 2), missing=missing)

    def _falsify(self, wrong: Misreport, usage: Floats, limit: Floats, missing: Bools) -> None:
        brokers, resource = np.array(wrong.brokers) - 1, RESOURCE_OF[wrong.resource]
        missing[brokers] |= wrong.missing
        usage[brokers, resource] *= wrong.usage_factor
        limit[brokers, resource] *= wrong.limit_factor
        if wrong.stale and self._before is not None:
            usage[brokers] = self._before[brokers]

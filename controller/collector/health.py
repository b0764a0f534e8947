"""Which brokers do not answer, how long they are not queried, and when that is logged. Pure.

A broker that fails is retried at the next interval, then after more and more intervals.  The log has one line when it
becomes silent, and one when it is back.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

#: A broker that does not answer is asked at least once in so many intervals.
_LONGEST_PAUSE: Final = 4


@dataclass(frozen=True, slots=True)
class _Silence:
    failures: int
    #: The first interval in which it is asked again, epoch ms.
    again: int


@dataclass(slots=True)
class Health:
    """What one collector knows about the brokers that it queries."""

    period_ms: int
    _silent: dict[str, _Silence] = field(default_factory=dict)

    def retain(self, brokers: Collection[str]) -> None:
        """Forget all but *brokers*: those that are there now."""
        self._silent = {broker: silence for broker, silence in self._silent.items() if broker in brokers}

    def may_ask(self, broker: str, *, interval: int) -> bool:
        """Whether *broker* is to be asked in *interval*."""
        silence = self._silent.get(broker)
        return silence is None or interval >= silence.again

    def silent(self, brokers: Iterable[str]) -> int:
        """How many of *brokers* did not answer when they were asked last."""
        return sum(broker in self._silent for broker in brokers)

    def failures(self, broker: str) -> int:
        """Its number of consecutive failures; brokers that fail are queried last."""
        silence = self._silent.get(broker)
        return silence.failures if silence else 0

    def failed(self, broker: str, *, interval: int) -> bool:
        """Count a failure of *broker* in *interval*; True where it is the first one after an answer."""
        failures = self.failures(broker) + 1
        pause = min(2 ** (failures - 1), _LONGEST_PAUSE)
        self._silent[broker] = _Silence(failures, interval + pause * self.period_ms)
        return failures == 1

    def answered(self, broker: str) -> int:
        """*broker* was swept; returns its number of consecutive failures before."""
        silence = self._silent.pop(broker, None)
        return silence.failures if silence else 0

"""Records waiting to be published: the sweeps of this interval, and states until they are in the log."""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from controller.adapters.metrics.collector import CollectorMetrics
from controller.collector.news import News
from controller.collector.states import Due, State, key_of, records
from controller.collector.sweeper import Swept
from controller.log.ticks import CollectorLog
from controller.model.errors import AccessDeniedError, TrimtabError
from controller.wire.chunks import MAX_CHUNK_BYTES, KeyValue
from controller.wire.metrics import BrokerStateRecord
from controller.wire.readable import counted

log = logging.getLogger(__name__)

#: Sweeps that the log refuses are tried again after so long.
_AGAIN_MS: Final = 1000.0
#: The log has so long at least.
_LEAST_SECONDS: Final = 0.02
_SWEEPS, _STATES = "sweep", "state"


class Publisher:
    """Publishes sweeps and states apart from each other: a state that the log refuses holds up no sweep."""

    def __init__(
        self, log: CollectorLog, metrics: CollectorMetrics, now_ms: Callable[[], float], *, states_again_ms: int
    ) -> None:
        """*states_again_ms*: after so long an unchanged state is written again."""
        self._log, self._metrics, self._now_ms = log, metrics, now_ms
        # Of no interval: nothing is published before ``begin``.
        self._interval, self._until_ms = 0, 0.0
        self._sweeps: list[Swept] = []
        #: When to try again to publish the sweeps, epoch ms; states that are refused wait for the next interval.
        self._again_ms, self._states_refused = 0.0, False
        self._states: dict[tuple[str, str], State] = {}
        self._due = Due(states_again_ms)
        self._refused = News()

    def begin(self, interval: int, until_ms: float) -> None:
        """*interval* begins: sweeps of the last one come too late.  From *until_ms* on nothing is published."""
        self._interval, self._until_ms = interval, until_ms
        self._sweeps, self._again_ms, self._states_refused = [], 0.0, False

    def sweep(self, swept: Swept) -> None:
        """*swept* waits to be published."""
        self._sweeps.append(swept)

    def states(self, states: Iterable[State]) -> None:
        """Those of *states* that are due wait to be published."""
        self._states |= {key_of(state): state for state in self._due.of(states, self._interval)}

    def known_bundles(self) -> frozenset[str]:
        """The bundles whose stored averages are not due."""
        return self._due.bundles(self._interval)

    def everything_is_due(self) -> None:
        """Others may have written states since."""
        self._due.forget()

    def drop_states(self) -> None:
        """Discard waiting states; everything is due."""
        self._states = {}
        self._due.forget()

    def publish(self) -> None:
        """Publish waiting records, if it is time.  AccessDeniedError: the log does not allow it."""
        # A broker's state goes before its sweep: the tick may follow the last sweep at once.
        self._publish_states([state for state in self._states.values() if isinstance(state, BrokerStateRecord)])
        sweeps, states = self._sweeps, list(self._states.values())
        if sweeps and self._now_ms() >= self._again_ms:
            if self._written(_SWEEPS, [record for each in sweeps for record in each.records], len(sweeps)):
                self._sweeps = []
            else:
                self._again_ms = self._now_ms() + _AGAIN_MS
        self._publish_states(states)

    def _publish_states(self, states: Sequence[State]) -> None:
        """Publish *states*; what the log may refuse as too large goes by itself, and holds up no other."""
        if not states or self._states_refused:
            return
        encoded = list(zip(states, records(states), strict=True))
        usual = [each for each in encoded if len(each[1][1]) <= MAX_CHUNK_BYTES]
        for part in (usual, *([each] for each in encoded if len(each[1][1]) > MAX_CHUNK_BYTES)):
            of = "" if part is usual else " of ".join(key_of(part[0][0]))
            if part and self._written(_STATES, [record for _, record in part], len(part), of=of):
                written = [state for state, _ in part]
                self._due.written(written, self._interval)
                for state in written:
                    del self._states[key_of(state)]
        self._states_refused = any(key_of(state) in self._states for state in states)

    def _written(self, kind: str, published: list[KeyValue], number: int, *, of: str = "") -> bool:
        """Whether *published*, *number* of a *kind*, are in the log; without time left they are not.

        *of*: what is refused by itself, if it is.
        """
        remaining = (self._until_ms - self._now_ms()) / 1000
        if remaining <= 0:
            return False
        try:
            self._log.publish(published, max(remaining, _LEAST_SECONDS))
        except AccessDeniedError:
            raise
        except TrimtabError as error:
            if self._refused.is_news(of or kind, "refused"):
                subject = f"{of}, {len(published[0][1])} bytes" if of else counted(number, kind)
                log.warning("cannot publish %s, will retry: %s", subject, error)
            self._metrics.not_published(sweeps=kind == _SWEEPS)
            return False
        size = sum(len(value) for _, value in published)
        self._metrics.published(sweeps=number if kind == _SWEEPS else 0, records=len(published), size=size)
        if self._refused.is_news(of or kind, ""):
            log.info("%s can be published again", of or f"{kind}s")
        return True

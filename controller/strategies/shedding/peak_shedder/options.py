"""The options of PeakShedder."""

from dataclasses import dataclass, field
from typing import Final

from controller.model.option import option
from controller.model.resource_usage import ResourceWeights
from controller.planning.from_view import Counted
from controller.planning.solving.rounds import PartLimits

#: In one round so many bundles leave any broker at most; or such a part of the moves of a round, if that is more.
_MOVES_OF_A_BROKER: Final = 10
_BROKERS_THAT_GIVE: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakOptions(ResourceWeights):
    """Every option of PeakShedder."""

    max_moves: int = option(
        "trimtabPeakShedderMaxMoves",
        default=50,
        unit="bundles",
        meaning="so many bundles move in one round at most, and a fifth of them, or 10, off any one broker",
    )
    max_connections: int = option(
        "trimtabPeakShedderMaxConnections",
        default=0,
        meaning="so many producers and consumers reconnect in one round at most; 0: no limit",
    )
    goal_percent: float = option(
        "trimtabPeakShedderGoalPercentage",
        default=5.0,
        unit="%",
        meaning="a broker gives bundles until its usage is this near above the mean usage, as a share of the mean",
    )
    min_gain_percent: float = option(
        "trimtabPeakShedderMinGainPercentage",
        default=5.0,
        unit="points",
        meaning="a broker gives bundles only if its usage is this far above that goal; and nothing moves if no usage"
        " falls by as much, unless the moves of the round are used up",
    )
    broker_msg_rate: float = option(
        "trimtabPeakShedderBrokerMsgRate",
        default=0.0,
        unit="msg/s",
        meaning="messages in and out that a broker with the average CPU limit can carry; 0: they do not count",
    )
    broker_topics: int = option(
        "trimtabPeakShedderBrokerTopics",
        default=0,
        meaning="topics that a broker with the average CPU limit can carry; 0: they do not count",
    )
    broker_sessions: int = option(
        "trimtabPeakShedderBrokerSessions",
        default=0,
        meaning="producers and consumers that a broker with the average CPU limit can carry; 0: they do not count",
    )
    settle_minutes: float = option(
        "trimtabPeakShedderSettleMinutes",
        default=5.0,
        unit="min",
        meaning="so long after a broker came or went, or a tenth of the load jumped, only urgent moves are made; while"
        " brokers come and go one after the other, twice the longest time between two such changes",
    )
    urgent_percent: float = option(
        "trimtabPeakShedderUrgentPercentage",
        default=80.0,
        unit="%",
        meaning="a broker above this usage now gives bundles at once, whatever is foreseen, also while brokers come and"
        " go; 0: never",
    )
    move_cost: float = option(
        "trimtabPeakShedderMoveCost",
        default=10.0,
        unit="point-minutes",
        meaning="moves that disturb 1 % of the clients have to lower the highest usage by as much: 10 are 1 point for"
        " 10 minutes",
    )

    segment_percent: float = option(
        "trimtabPeakShedderSegmentPercentage",
        default=0.0,
        unit="%",
        meaning="segments of a scalable topic (Pulsar 5.0) are kept apart if the broker with most of the topic has this"
        " much more of it than an even spread would give it, in percent of a broker's mean traffic; 0: never",
    )

    #: No options: so many bundles leave a broker in one round at most, and so many come to it (0: a fifth of max_moves,
    #: or 10 if that is more); how many pairs the search looks at, about; and in how many of the last 3 rounds a broker
    #: was above its limit before it gives.
    max_moves_per_broker: int = field(default=0, metadata={"meaning": "moves off or to a broker in one round"})
    effort: int = field(default=1_000_000, metadata={"meaning": "pairs that the search looks at"})
    hold: int = field(default=2, metadata={"meaning": "rounds above its limit before a broker gives"})

    @property
    def counted(self) -> Counted:
        """Which resources count, and how much."""
        return Counted(
            weights={
                "cpu": self.cpu_weight,
                "direct memory": self.direct_memory_weight,
                "bandwidth in": self.bandwidth_in_weight,
                "bandwidth out": self.bandwidth_out_weight,
            },
            msg_rate=self.broker_msg_rate,
            topics=float(self.broker_topics),
            sessions=float(self.broker_sessions),
        )

    @property
    def min_gain(self) -> float:
        """As a share of the capacity."""
        return self.min_gain_percent / 100

    @property
    def round(self) -> PartLimits:
        """What one round may do."""
        return PartLimits(
            max_moves=self.max_moves,
            max_connections=float(self.max_connections) if self.max_connections else None,
            max_per_broker=self.max_moves_per_broker or max(_MOVES_OF_A_BROKER, self.max_moves // _BROKERS_THAT_GIVE),
        )

"""The options of PeakShedder."""

from dataclasses import dataclass

from controller.model.option import option
from controller.model.resource_usage import ResourceWeights
from controller.planning.from_view import Counted
from controller.planning.solving.rounds import PartLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakOptions(ResourceWeights):
    """Every option of PeakShedder."""

    max_moves: int = option(
        "trimtabPeakShedderMaxMoves", default=50, unit="bundles", meaning="so many bundles move in one round at most"
    )
    max_connections: int = option(
        "trimtabPeakShedderMaxConnections",
        default=0,
        meaning="so many producers and consumers reconnect in one round at most; 0: no limit",
    )
    max_moves_per_broker: int = option(
        "trimtabPeakShedderMaxMovesPerBroker",
        default=10,
        unit="bundles",
        meaning="so many bundles leave a broker in one round at most, and so many come to it",
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
    effort: int = option(
        "trimtabPeakShedderEffort",
        default=1_000_000,
        unit="pairs",
        meaning="how many pairs of a bundle and a broker are looked at, about, for a better plan than the first one",
    )
    hold: int = option(
        "trimtabPeakShedderHold",
        default=2,
        unit="rounds",
        meaning="a broker gives bundles once it was above its limit in so many of the last rounds",
    )
    hold_of: int = option(
        "trimtabPeakShedderHoldOf", default=3, unit="rounds", meaning="so many last rounds count for that"
    )
    settle_minutes: float = option(
        "trimtabPeakShedderSettleMinutes",
        default=5.0,
        unit="min",
        meaning="so long after a broker came or went only urgent moves are made; while brokers come and go one after"
        " the other, twice the longest time between two such changes",
    )
    load_settle_minutes: float = option(
        "trimtabPeakShedderLoadSettleMinutes",
        default=5.0,
        unit="min",
        meaning="so long after a tenth of the load jumped only urgent moves are made; 0: no jump counts, nor that load"
        " is elsewhere at other hours of the day, for which goal and limits are wider",
    )
    urgent_percent: float = option(
        "trimtabPeakShedderUrgentPercentage",
        default=80.0,
        unit="%",
        meaning="a broker above this usage now gives bundles at once, whatever is foreseen, also while brokers come and"
        " go; 0: never",
    )
    idle_percent: float = option(
        "trimtabPeakShedderIdlePercentage",
        default=25.0,
        unit="%",
        meaning="while a broker's usage is this far below the mean usage, as a share of the mean, the fullest brokers"
        " give it what it lacks; 100: never",
    )
    returned_percent: float = option(
        "trimtabPeakShedderReturnedPercentage",
        default=60.0,
        unit="%",
        meaning="the same of a broker that was away for an hour at most, for a day after it came back; no more than"
        " the above: as of any other broker",
    )
    forecast_minutes: float = option(
        "trimtabPeakShedderForecastMinutes",
        default=60.0,
        unit="min",
        meaning="so far ahead the trend of the load is followed, and so long a move may take to pay for itself;"
        " 0: only the load of now counts",
    )
    day_profile: bool = option(
        "trimtabPeakShedderDayProfile",
        default=True,
        meaning="true: plans also hold at the fullest hours of the next day, as far as the last days show them",
    )
    move_cost: float = option(
        "trimtabPeakShedderMoveCost",
        default=10.0,
        unit="point-minutes",
        meaning="moves that disturb 1 % of the clients have to lower the highest usage by as much: 10 are 1 point for"
        " 10 minutes",
    )
    undo: bool = option(
        "trimtabPeakShedderUndo",
        default=True,
        meaning="true: a move that made its destination fuller than its source was is undone once, if that pays",
    )

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
            max_per_broker=self.max_moves_per_broker,
        )

"""The answers of ``trimtab plan`` and ``trimtab apply``."""

from typing import Annotated, Final, Literal, TypeAlias

from controller.planning.problem import RATE_SHARE
from controller.wire.answers.base import DestinationBroker, JsonAnswer, Shown, SourceBroker

#: A share of a capacity.
_Share: TypeAlias = Annotated[float, Shown(form=".1%")]
_MsgRate: TypeAlias = Annotated[float, Shown(heading="msg/s", form=",.0f")]


class BrokerChangeAnswer(JsonAnswer):
    """How full a broker is before the plan and after it; usages are shares of the capacity."""

    broker: str
    resource: Annotated[str, Shown(heading="by")]
    """Its fullest resource before the plan."""
    before: Annotated[_Share, Shown(is_text=True)]
    after: Annotated[_Share, Shown(is_text=True)]
    highest: Annotated[_Share, Shown(heading="highest on the way", is_text=True)]
    """On the way, with bundles that move counted on both of their brokers."""
    bundles_before: int
    """Of those that may move."""
    bundles_after: int
    msg_rate_before: float
    """Messages/s in and out of the bundles that may move."""
    msg_rate_after: float
    fixed: Annotated[_Share, Shown(heading="cannot move", is_text=True)]
    """The part of ``before`` that no move takes away: the broker's own use, and bundles that must stay."""


class PlannedMoveAnswer(JsonAnswer):
    """One move."""

    bundle: str
    source: SourceBroker
    destination: DestinationBroker
    connections: int
    """Producers and consumers that reconnect."""
    msg_rate: _MsgRate
    """Messages/s in and out."""


class WaveTimeAnswer(JsonAnswer):
    """When a wave is carried out, in seconds from the begin of its step."""

    ready: float
    """The wave before is done, and the next decision may issue this one."""
    begins: float | None
    """Its first move is issued; null: none ever is, with the controllers' budgets and windows."""
    ends: float | None
    """Its last result is there; null: some of its moves are never issued."""
    delayed_by: str
    """Which budgets and windows delay it; "": none."""


class PlanStepAnswer(JsonAnswer):
    """Waves of moves that are carried out together."""

    task: Literal["spread", "empty", "fill"]
    brokers: list[str]
    """Those that are emptied, or filled."""
    seconds: float
    reached: float
    """The highest usage after it."""
    bound: float
    """No step of as many moves ends below this; of one that empties brokers: wherever else its bundles go."""
    bound_kind: str
    """Why: docs/objective.md."""
    bound_resource: str
    """The resource that the bound is about; "": all of them."""
    max_moves: int
    """As many moves the step could have."""
    waves: list[list[PlannedMoveAnswer]]
    wave_times: list[WaveTimeAnswer]
    """For each of the waves."""


class FrontierLevelAnswer(JsonAnswer):
    """How low so many moves bring the highest usage."""

    max_moves: Annotated[int, Shown(heading="at most")]
    moves: int
    """That the plan has; with more of them it found nothing lower."""
    connections: int
    """Producers and consumers that reconnect."""
    reached: Annotated[_Share, Shown(heading="highest usage")]
    """The highest usage after it, a share of the capacity."""
    times_mean: Annotated[float, Shown(heading="times the mean", form=".3f")]
    """The same as a multiple of the mean usage of the scarcest resource."""
    bound: Annotated[_Share, Shown(heading="no plan below")]
    """No plan of at most max_moves moves ends below this."""
    bound_kind: Annotated[str, Shown(heading="by")]
    """Why: docs/objective.md."""


class DisturbedAnswer(JsonAnswer):
    """Whose clients reconnect."""

    namespace: str
    moves: Annotated[int, Shown(heading="bundles")]
    connections: int
    msg_rate: _MsgRate


class PlanAnswer(JsonAnswer):
    """``trimtab plan --json``."""

    cluster: str
    interval: int
    """T of the load, epoch ms."""
    kind: Literal["balance", "drain", "join", "rolling_restart", "remove"]
    sha256: str
    """The hash of the plan, which is what gets approved."""
    file: str
    """Where the plan was written; "": nowhere."""
    moves: int
    fewest_moves: int | None
    """No plan that empties the same brokers has fewer; null: not known."""
    waves: int
    seconds: float
    """For all steps, with the controllers' budgets and windows; time that a person needs between steps is not
    included."""
    slowed: str
    """Which budgets and windows extend it, and how long it would take without them; "": none."""
    never_issued: list[str]
    """Moves that a budget or a window never permits, and why."""
    connections: int
    """Producers and consumers that reconnect."""
    connections_at_once: int
    """The maximum of any wave: its moves are issued together."""
    deadline_ms: int | None
    """Epoch ms; null: none was given."""
    in_time: bool | None
    before: float
    """The highest usage of any broker."""
    after: float
    brokers: list[BrokerChangeAnswer]
    steps: list[PlanStepAnswer]
    disturbed: list[DisturbedAnswer]
    frontier: list[FrontierLevelAnswer]
    """With --frontier: other numbers of moves, ascending."""
    stays: dict[str, str]
    """Bundle that stays on a broker that is to be empty, or whose named move is not possible -> why."""
    by_hand: dict[str, str]
    """Bundle of trimtab's own topics on a broker that is to be empty -> the command that moves it: trimtab does not."""
    notes: list[str]

    @property
    def whole(self) -> float:
        """The usage that is 100 %: 1; of message rates, of which no broker is full, that of all brokers together."""
        fullest = max(self.brokers, key=lambda each: each.before, default=None)
        if fullest is None or fullest.resource != RATE_SHARE:
            return 1.0
        return sum(each.before for each in self.brokers if each.resource == RATE_SHARE) or 1.0


class ApplyAnswer(JsonAnswer):
    """``trimtab apply --json``."""

    sha256: str
    """Of the plan."""
    step: int
    """From 1."""
    moves: int
    done: int
    """Moves whose bundle has reached its destination."""
    notes: list[str]
    left: list[str]
    """Bundles that are still on a broker that was to be empty."""
    restarted: list[str]
    """Brokers that the hook has restarted."""


class RightsizingAnswer(JsonAnswer):
    """``trimtab plan --headroom`` and ``--add``, with --json."""

    cluster: str
    interval: int
    """T of the load, epoch ms."""
    brokers: int
    highest: float
    """The highest usage of any broker, a share of the capacity."""
    mean: float
    """The mean usage of the scarcest resource."""
    headroom: float
    needed: int | None
    """A proven lower bound on the number of average brokers that keep the headroom; null: no number does."""
    enough: int | None
    """A sufficient number of brokers: all bundles were placed on them; null: none was found."""
    resource: str
    """What needs the most brokers."""
    added: int
    highest_after: float
    """With the brokers of --add, after a balance."""
    moves: int
    """Of that balance."""
    bound: float
    """No placement on these brokers is below it."""
    notes: list[str]


#: Name of the schema in docs/schemas -> answer.
ANSWERS: Final[dict[str, type[JsonAnswer]]] = {
    "answer.apply": ApplyAnswer,
    "answer.plan": PlanAnswer,
    "answer.rightsizing": RightsizingAnswer,
}

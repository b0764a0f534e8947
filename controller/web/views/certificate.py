"""The certificate of a plan's step in plain words: what is proved, by which bound, and what is not."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from controller.planning.plans.plan import EMPTY, FILL
from controller.planning.problem import FIXED, MEAN, PIGEONHOLE, PRICES, REMOVAL
from controller.wire.answers.plan import PlanStepAnswer
from controller.wire.readable import counted

#: Points below which two usages are written as the same.
_SAME: Final = 0.05
_BOUNDS: Final[Mapping[str, str]] = {
    MEAN: "Spread over all brokers as evenly as water, the load of {resource} is that high.",
    FIXED: "One broker has that much load of {resource} that no move takes away: its own use, and bundles that stay.",
    PIGEONHOLE: "There are more large bundles than brokers below that level have room for ({resource}).",
    REMOVAL: "To end lower, more bundles would have to leave the fullest brokers than the plan may move ({resource}).",
    PRICES: "With a price on each broker's usage, even the cheapest place of every bundle costs that much.",
}
#: What the checker looks at in every plan.
CHECKED: Final = (
    "Each bundle is where the plan says that it is, and ends where the plan says.",
    "No broker goes above its capacity on the way, with bundles that move counted on both of their brokers. In a"
    " balance of a cluster that is too full for that, none goes higher than it was or ends.",
    "No wave has more reconnecting connections than the plan's rate allows, or than one bundle has.",
    "The bound holds for the plan's numbers: the checker computes it again, and shares no code with the search.",
)
NOT_PROVED: Final = (
    "That the cluster is still as it was when the plan was made: trimtab apply --check compares the two.",
    "That the load stays as it is while the plan is carried out, and that the estimate of a bundle's CPU is right.",
    "That filters and isolation policies allow each move: they were asked when the plan was made, and are asked again"
    " before each command. They can only make a plan worse, so the bound holds.",
    "How long clients take to reconnect, and that brokers do not place a bundle elsewhere themselves.",
    "That nobody else notices: a client may close a connection that it also uses for bundles that stay.",
    "The time: freezes, late results, and splits that use the same budgets are not counted.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateText:
    """What is proved of one step."""

    #: "No plan of at most 20 moves ends with its fullest broker below 70.2 %."
    proved: str
    #: How near the plan comes to that.
    reached: str
    #: Why nothing is below the bound.
    because: str
    #: The bound's name in docs/objective.md.
    kind: str


def certificate_text(step: PlanStepAnswer, whole: float = 1.0) -> CertificateText:
    """The certificate of *step* in sentences; *whole*: the usage that is 100 %."""
    reached, bound = 100 * step.reached / whole, 100 * step.bound / whole
    moves = counted(step.max_moves, "move")
    if step.task == EMPTY:
        proved = f"Wherever else these bundles go, the fullest broker does not end below {bound:.1f} %."
    elif step.task == FILL:
        proved = f"No plan that fills the same brokers with at most {moves} ends below {bound:.1f} %."
    else:
        proved = f"No plan of at most {moves} ends with its fullest broker below {bound:.1f} %."
    above = reached - bound
    ends = f"This one ends at {reached:.1f} %"
    near = f"{ends}: no better one exists." if above < _SAME else f"{ends}, {above:.1f} points above what is proved."
    template = _BOUNDS.get(step.bound_kind, "")
    because = template.format(resource=step.bound_resource or "every resource")
    return CertificateText(proved=proved, reached=near, because=because, kind=step.bound_kind)

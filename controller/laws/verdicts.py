"""The side of its limit on which the observed value of a verdict must lie, for each reason."""

from collections.abc import Iterable, Mapping
from typing import Final

from controller.model.decision import Reason, Verdict

#: Reasons that a value gives which is at its limit or above.
_AT_LEAST: Final = (
    Reason.OVERLOADED,
    Reason.TOPICS,
    Reason.SESSIONS,
    Reason.MSG_RATE,
    Reason.BANDWIDTH,
    Reason.TOO_LARGE,
    Reason.NAMESPACE_FULL,
    Reason.LARGE_PARTITION,
    Reason.SEVERAL_CUTS,
    Reason.CATCHING_UP,
    Reason.BUDGET,
    Reason.UNPROVEN,
)
#: Reasons that a value gives which is at its limit or below.
_AT_MOST: Final = (
    Reason.BALANCED,
    Reason.BELOW_MINIMUM,
    Reason.TOO_FEW_TOPICS,
    Reason.HIT_COUNT,
    Reason.COOL_DOWN,
    Reason.WARMING_UP,
    Reason.GAP,
    Reason.NO_BROKERS,
)
#: +1 where the observed value is at least the limit, -1 where it is at most the limit.  A reason that is not here is
#: given by more than one comparison, or by none.
SIDES: Final[Mapping[Reason, int]] = {**dict.fromkeys(_AT_LEAST, 1), **dict.fromkeys(_AT_MOST, -1)}


def on_wrong_side(verdicts: Iterable[Verdict]) -> Verdict | None:
    """The first of *verdicts* whose numbers contradict its reason, or None.

    A verdict without an observed value or without a limit compares nothing, and contradicts nothing.
    """
    for verdict in verdicts:
        if verdict.observed is None or verdict.limit is None:
            continue
        if SIDES.get(verdict.reason, 0) * (verdict.observed - verdict.limit) < 0:
            return verdict
    return None

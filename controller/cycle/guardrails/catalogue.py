"""Every guardrail.  A new one is a file in this folder and a line here."""

from collections.abc import Mapping
from typing import Final

from controller.cycle.guardrails import (
    breaker,
    budgets,
    catching_up,
    fatal_bundles,
    freeze,
    grace,
    listing,
    operator,
    own_balancing,
    undescribed,
    unreadable,
    warm_up,
)
from controller.model.decision import Reason
from controller.model.reasons import Meaning

#: What the reasons of guardrails mean.
GUARDRAIL_MEANINGS: Final[Mapping[Reason, Meaning]] = {
    reason: meaning
    for guardrail in (
        operator,
        own_balancing,
        catching_up,
        warm_up,
        freeze,
        breaker,
        budgets,
        listing,
        fatal_bundles,
        undescribed,
        unreadable,
        grace,
    )
    for reason, meaning in guardrail.MEANINGS.items()
}

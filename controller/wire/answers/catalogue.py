"""All answers, by the name of their schema in docs/schemas.  ``trimtab commands tail --json`` prints trimtab.*.json."""

from typing import Final

from controller.wire.answers import (
    audit,
    bench,
    doctor,
    explain,
    offline,
    plan,
    proposals,
    recordings,
    simulate,
    status,
    what_if,
)
from controller.wire.answers.base import JsonAnswer

#: Name of the schema -> model.
MODELS: Final[dict[str, type[JsonAnswer]]] = {
    **audit.ANSWERS,
    **bench.ANSWERS,
    **doctor.ANSWERS,
    **explain.ANSWERS,
    **offline.ANSWERS,
    **plan.ANSWERS,
    **proposals.ANSWERS,
    **recordings.ANSWERS,
    **simulate.ANSWERS,
    **status.ANSWERS,
    **what_if.ANSWERS,
}

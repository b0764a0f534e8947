"""What the run of a plan asks for, and how it ends early."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from controller.model.controls import OperatorControls
from controller.model.errors import TrimtabError
from controller.offline.plans.progress import PlanProgress
from controller.offline.plans.source import PlanSource

#: Of a list as many are told.
_TOLD: Final = 5


class PlanHaltedError(TrimtabError):
    """A plan is not carried out further; the text says why, and what is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the run of a plan asks for; tests give their own."""

    #: Replace the controls, and return them.
    change: Callable[[Callable[[OperatorControls], OperatorControls]], OperatorControls]
    #: The cluster as of now.
    source: Callable[[], PlanSource]
    #: What became of the commands of a plan (its hash) after an interval.
    progress: Callable[[str, int], PlanProgress]
    #: Epoch ms.
    now_ms: Callable[[], int]
    sleep: Callable[[float], None]
    #: Say something to the person.
    say: Callable[[str], None]
    #: trimtab with these words, as a shell takes it.
    command: Callable[..., str]
    #: Who runs it, and a name of this process that no other has.
    by: str
    holder: str


def some(texts: Sequence[str]) -> str:
    """The first of *texts*, for an error."""
    more = f"; and {len(texts) - _TOLD} more" if len(texts) > _TOLD else ""
    return f"{'; '.join(texts[:_TOLD])}{more}"

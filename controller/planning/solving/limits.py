"""The limits of a search for a plan, and its budget of effort."""

from dataclasses import dataclass
from typing import Final

from controller.model.load import Floats

#: With more resources than so many, a step compares with fewer destinations, and counts for more.
FEW_RESOURCES: Final = 3
#: A step counts as so many pairs of a bundle and a broker, besides those that it looks at.
_PAIRS_OF_A_STEP: Final = 2000
#: Choosing one of some numbers takes as long as looking at so many pairs, and one more for so many numbers.
_PAIRS_OF_A_CHOICE: Final = 200
_NUMBERS_OF_A_PAIR: Final = 16
#: A question to the filters takes as long as looking at so many pairs.
_PAIRS_OF_A_QUESTION: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchLimits:
    """What a plan may do, and when it is good enough."""

    max_moves: int
    #: How many pairs of a bundle and a broker the search may look at, about, after it has a first plan.
    effort: int = 1_000_000
    #: Brokers above this utilisation give bundles; or (R,) above one for each resource,
    begin: float | Floats = 0.0
    #: until they are at or below this one.
    goal: float = 0.0


class Effort:
    """How much may still be looked at: pairs of a bundle and a broker.  Counted, so that no clock is needed."""

    def __init__(self, pairs: int) -> None:
        self.remaining_pairs = pairs

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left."""
        return self.remaining_pairs <= 0

    def spend(self, pairs: int, resources: int) -> None:
        """Count a step that looks at so many *pairs*; with more than FEW_RESOURCES resources, by their square.

        All else takes longer then, too, so that less time is left for this.
        """
        more = max(FEW_RESOURCES, resources)
        self.remaining_pairs -= (pairs + _PAIRS_OF_A_STEP) * more * more // FEW_RESOURCES**2

    def choose(self, numbers: int) -> None:
        """Count a choice of one of so many *numbers*."""
        self.remaining_pairs -= _PAIRS_OF_A_CHOICE + numbers // _NUMBERS_OF_A_PAIR

    def ask(self) -> None:
        """Count a question to the filters."""
        self.remaining_pairs -= _PAIRS_OF_A_QUESTION

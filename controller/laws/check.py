"""Search for an example that breaks a law, and report the simplest one found."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis.errors import Flaky, NoSuchExample

from controller.laws.assignment import ASSIGNMENT_LAWS
from controller.laws.law import Law
from controller.laws.placement import PLACEMENT_LAWS
from controller.laws.shedding import SHEDDING_LAWS
from controller.laws.splitting import SPLIT_ALGORITHM_LAWS, SPLIT_POLICY_LAWS
from controller.model.errors import StrategyError

#: The method, or property, that tells the kinds of strategies apart, and the laws of the kind.
_LAWS: Final[Sequence[tuple[str, tuple[Law, ...]]]] = (
    ("acceptable", PLACEMENT_LAWS),
    ("cuts", SPLIT_ALGORITHM_LAWS),
    ("assign", ASSIGNMENT_LAWS),
    ("thresholds", SPLIT_POLICY_LAWS),
    ("decide", SHEDDING_LAWS),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenLaw:
    """A law that a strategy breaks, with the simplest example that was found."""

    sentence: str
    #: What the strategy does wrong there.
    flaw: str
    #: The example in lines of words.
    example: tuple[str, ...]

    def __str__(self) -> str:
        lines = [self.sentence, f"  But {self.flaw}."]
        if self.example:
            lines += ["  The simplest example found:", *(f"    {line}" for line in self.example)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"\n{self}\n"  # pytest shows it where a list of them is not empty


def laws_of(strategy: Any) -> tuple[Law, ...]:
    """The laws of the kind of *strategy*; TypeError where it is of none."""
    for member, laws in _LAWS:
        if hasattr(strategy, member):
            return laws
    members = ", ".join(member for member, _ in _LAWS)
    raise TypeError(f"{strategy!r} is no strategy: it has none of {members}")


def broken_laws(
    strategy: Any, *, examples: int | None = None, done: Callable[[int], None] = lambda _: None
) -> list[BrokenLaw]:
    """The laws that *strategy* breaks on some of so many *examples* for each law; the same ones are tried each time.

    Without a number: as many as the settings of Hypothesis say, 100 unless a profile says otherwise.
    *done* is called after each law with the number of laws that were tried.
    """
    tried = settings().max_examples if examples is None else examples
    laws, broken = laws_of(strategy), list[BrokenLaw]()
    for number, law in enumerate(laws, 1):
        broken += _broken(strategy, law, tried)
        done(number)
    return broken


def _broken(strategy: Any, law: Law, examples: int) -> Iterable[BrokenLaw]:
    how = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    try:
        example = find(
            law.examples, lambda one: flaw_in(strategy, law, one) is not None, settings=how, random=Random(0)
        )
    except NoSuchExample:
        return
    except Flaky:
        yield BrokenLaw(sentence=law.sentence, flaw="asked again about the same, it answers differently", example=())
        return
    flaw = flaw_in(strategy, law, example) or "asked again about the same, it answers differently"
    yield BrokenLaw(sentence=law.sentence, flaw=flaw, example=tuple(law.describe(example)))


def flaw_in(strategy: Any, law: Law, example: Any) -> str | None:
    """What *strategy* does wrong with *example*, in words; an error that it raises is wrong as well."""
    try:
        return law.flaw(strategy, example)
    except StrategyError as error:
        return error.flaw
    except Exception as error:  # whatever a user's strategy raises
        return f"it raises {type(error).__name__}: {error}"

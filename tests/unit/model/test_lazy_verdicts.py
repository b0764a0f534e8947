"""Verdicts that are built on first access."""

from collections.abc import Iterator

from controller.model.decision import LazyVerdicts, Reason, UnloadDecision, Verdict

CALM = Verdict(subject="a", reason=Reason.BALANCED, by="x")
HOT = Verdict(subject="b", reason=Reason.OVERLOADED, by="x")


def test_verdicts_are_built_on_first_access_and_once() -> None:
    asked = []

    def tell() -> Iterator[Verdict]:
        asked.append(1)
        yield from (CALM, HOT)

    decision = UnloadDecision(verdicts=LazyVerdicts(tell), reason=Reason.BALANCED)
    assert asked == []
    assert (list(decision.verdicts), len(decision.verdicts), decision.verdicts[-1]) == ([CALM, HOT], 2, HOT)
    assert decision.verdicts[:1] == (CALM,)
    assert asked == [1]


def test_lazy_verdicts_equal_a_tuple_of_the_same_verdicts() -> None:
    told = UnloadDecision(verdicts=LazyVerdicts(lambda: [CALM]), reason=Reason.BALANCED)
    assert told == UnloadDecision(verdicts=LazyVerdicts(lambda: [CALM]), reason=Reason.BALANCED)
    assert told == UnloadDecision(verdicts=(CALM,), reason=Reason.BALANCED)
    assert told != UnloadDecision(verdicts=(HOT,), reason=Reason.BALANCED)
    assert repr(told.verdicts) == repr((CALM,))
    assert hash(told.verdicts) == hash((CALM,))

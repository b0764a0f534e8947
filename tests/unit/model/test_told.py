"""Verdicts that are put into words when they are read."""

from collections.abc import Iterator

from controller.model.decision import Reason, Told, UnloadDecision, Verdict

CALM = Verdict(subject="a", reason=Reason.BALANCED, by="x")
HOT = Verdict(subject="b", reason=Reason.OVERLOADED, by="x")


def test_nothing_is_said_before_somebody_reads_and_then_once() -> None:
    asked = []

    def tell() -> Iterator[Verdict]:
        asked.append(1)
        yield from (CALM, HOT)

    decision = UnloadDecision(verdicts=Told(tell), reason=Reason.BALANCED)
    assert asked == []
    assert (list(decision.verdicts), len(decision.verdicts), decision.verdicts[-1]) == ([CALM, HOT], 2, HOT)
    assert decision.verdicts[:1] == (CALM,)
    assert asked == [1]


def test_decisions_that_say_the_same_are_equal_however_they_say_it() -> None:
    told = UnloadDecision(verdicts=Told(lambda: [CALM]), reason=Reason.BALANCED)
    assert told == UnloadDecision(verdicts=Told(lambda: [CALM]), reason=Reason.BALANCED)
    assert told == UnloadDecision(verdicts=(CALM,), reason=Reason.BALANCED)
    assert told != UnloadDecision(verdicts=(HOT,), reason=Reason.BALANCED)
    assert repr(told.verdicts) == repr((CALM,))
    assert hash(told.verdicts) == hash((CALM,))

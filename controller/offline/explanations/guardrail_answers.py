"""The answer of each guardrail, in the order in which the cycle asks them, read from the verdicts of a decision.

The cycle stops at the first guardrail that holds commands back, so those behind it were not asked.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from controller.cycle import Policy
from controller.cycle.approval import BY_APPROVAL
from controller.cycle.guardrails.budgets import BUDGET_REASONS
from controller.cycle.guardrails.grace import GRACE_PERIOD
from controller.cycle.protected import GUARDRAILS
from controller.cycle.refusals import REFUSALS
from controller.model.decision import CLUSTER, Reason, Verdict
from controller.status.reasons import MEANINGS
from controller.wire.answers.explain import GivenAnswer
from controller.wire.decision_texts import reason_text
from controller.wire.readable import duration, utc

BUDGETS: Final = "guardrails: budgets"
#: Whether a verdict is the "no" of a guardrail.
_Says: TypeAlias = Callable[[Verdict], bool]


def no(question: str, verdict: Verdict) -> GivenAnswer:
    """The "no" of *question*, as *verdict* tells it."""
    meaning = MEANINGS[verdict.reason]
    return GivenAnswer(
        asked=question,
        answer="no",
        reason=verdict.reason,
        kind=meaning.kind.value,
        text=reason_text(verdict),
        means=meaning.text,
    )


def yes(question: str, text: str = "") -> GivenAnswer:
    """The "yes" of *question*."""
    return GivenAnswer(asked=question, answer="yes", reason="", kind="", text=text, means="")


def not_asked(question: str) -> GivenAnswer:
    """*question* was not asked."""
    return GivenAnswer(asked=question, answer="not asked", reason="", kind="", text="", means="")


def refusals(verdicts: Iterable[Verdict]) -> list[GivenAnswer]:
    """Whether anything may be issued in the interval of *verdicts*."""
    return list(_chain(verdicts, [(by, _by(by)) for by in REFUSALS]))


def approval(verdicts: Iterable[Verdict], subject: str) -> list[GivenAnswer]:
    """Whether persons let what strategies decided about *subject* be issued; nothing where they were not asked.

    The check of mode approve may refuse it before anybody is asked.
    """
    about = [each for each in verdicts if each.by == BY_APPROVAL and each.subject in (subject, CLUSTER)]
    if not about:
        return []
    against = next((each for each in about if each.reason in (Reason.CHECK_FAILED, Reason.AWAITS_APPROVAL)), None)
    return [yes(BY_APPROVAL) if against is None else no(BY_APPROVAL, against)]


def before_shedding(verdicts: Iterable[Verdict], policy: Policy, interval: int) -> list[GivenAnswer]:
    """Whether the shedder is asked at all in the *interval* (T, epoch ms) of *verdicts*; where not, when it is."""
    every, length = policy.balancer.shedding_interval_option, policy.balancer.shedding_interval_ms
    detail = f"the next round is at {utc(interval - interval % length + length)}, one every {duration(length / 1000)}"
    answers = [
        replace(each, detail=each.detail or detail)
        if (each.reason, each.by) == (Reason.NOT_THIS_INTERVAL, every)
        else each
        for each in verdicts
    ]
    return list(
        _chain(
            answers,
            [
                ("decisions.shed", lambda each: each.reason is Reason.DISABLED and each.by == "shed"),
                (every, lambda each: (each.reason, each.by) == (Reason.NOT_THIS_INTERVAL, every)),
                ("two brokers with data", lambda each: each.reason is Reason.NO_BROKERS and each.by == "shed"),
            ],
        )
    )


def about_bundle(guard: Verdict | None, recently: Verdict | None) -> list[GivenAnswer]:
    """Whether a bundle may be moved: *guard* is the guardrail against it, *recently* that of the grace period."""
    named = [(each.by, _is(guard, each.reason, each.by)) for each in reversed(GUARDRAILS)]
    answers = list(_chain([] if guard is None else [guard], named, about=None))
    return [*answers, yes(GRACE_PERIOD) if recently is None else no(GRACE_PERIOD, recently)]


def budget_against(verdicts: Iterable[Verdict], whose: Sequence[str]) -> Verdict | None:
    """The first budget of *whose*, the cluster, brokers and namespaces, that held something back; None: there is none.

    A budget says how many commands it held back and names the first, so that of another bundle may be meant.
    """
    return next((each for each in verdicts if each.reason in BUDGET_REASONS and each.subject in whose), None)


def _chain(
    verdicts: Iterable[Verdict], questions: Sequence[tuple[str, _Says]], *, about: str | None = CLUSTER
) -> Iterator[GivenAnswer]:
    """The answers of those that are *questions* one after the other, until one says no."""
    verdicts = [each for each in verdicts if about in (None, each.subject)]
    against: Verdict | None = None
    for name, says in questions:
        if against is not None:
            yield not_asked(name)
            continue
        against = next(filter(says, verdicts), None)
        yield yes(name) if against is None else no(name, against)


def _by(name: str) -> _Says:
    return lambda each: each.by == name


def _is(guard: Verdict | None, reason: Reason, by: str) -> _Says:
    return lambda each: each is guard and (each.reason, each.by) == (reason, by)

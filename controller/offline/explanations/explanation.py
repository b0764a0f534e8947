"""Why a bundle was moved or not, what was decided about a broker, and what an interval decided: one answer for each."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from controller.cycle import Policy
from controller.cycle.approval import BY_APPROVAL
from controller.cycle.dry_run import of_dry_run
from controller.cycle.guardrails.budgets import BUDGET_REASONS
from controller.cycle.guardrails.grace import GRACE_PERIOD
from controller.cycle.protected import GUARDRAILS
from controller.cycle.refusals import REFUSALS
from controller.model.decision import CLUSTER, Command, Reason, Verdict
from controller.model.names import namespace_of
from controller.model.pulsar_version import VersionInUse
from controller.model.reasons import ReasonClass
from controller.offline.explanations.destinations import destinations, ignored_filters
from controller.offline.explanations.examined import Examined, Placed
from controller.offline.explanations.guardrail_answers import (
    BUDGETS,
    about_bundle,
    approval,
    before_shedding,
    budget_against,
    no,
    not_asked,
    refusals,
    yes,
)
from controller.offline.explanations.topic import ExplainedTopic, explained_topic
from controller.strategies.common.auto_scale import AutoScale
from controller.strategies.shedding.peak_shedder import PeakShedder
from controller.wire.answers.base import CommandAnswer, PulsarVersionAnswer, VerdictAnswer
from controller.wire.answers.explain import ExplainAnswer, ExplainedSource, GivenAnswer, SubjectKind
from controller.wire.decision_texts import reason_text, verdict_text
from controller.wire.readable import counted, utc
from controller.wire.results import Result

#: Reasons by which a shedder selects a broker to unload.
_ASKS_FOR_A_MOVE: Final = frozenset({Reason.OVERLOADED, Reason.UNDERLOADED})
_DESTINATION: Final = "filters and placement"
_RECENT: Final = (Reason.RECENTLY_UNLOADED, Reason.DRY_RUN)
#: Maximum number of reasons in one sentence.
_MAX_NAMED: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedDecision:
    """The decision to explain, as far as it is known."""

    cluster: str
    interval: int
    source: ExplainedSource
    summary: str
    commands: tuple[tuple[Command, Result | None], ...]
    #: None: they are no longer stored, and could not be replayed.
    verdicts: tuple[Verdict, ...] | None
    policy: Policy
    #: The replayed decision; None if its load is not known.
    examined: Examined | None = None
    reproduced: bool | None = None
    notes: tuple[str, ...] = ()
    #: The version of Pulsar that decided.
    pulsar: VersionInUse | None = None


def explain(explained: ExplainedDecision, subject: str, kind: SubjectKind) -> ExplainAnswer:
    """The explanation of *subject*, of the *kind* bundle, broker or interval."""
    about = _About(explained, subject, kind)
    answers = about.answers()
    return ExplainAnswer(
        cluster=explained.cluster,
        subject=subject,
        kind=kind,
        interval=explained.interval,
        source=explained.source,
        summary=explained.summary,
        pulsar=PulsarVersionAnswer.of(explained.pulsar),
        because=about.because(answers),
        commands=[CommandAnswer.of(command, result) for command, result in about.commands],
        answers=answers,
        where_to=about.where_to(),
        topic=None if about.topic is None else about.topic.answer,
        brokers=None
        if about.placed is None or explained.examined is None
        else destinations(explained.examined.view, subject, explained.policy, about.placed),
        chosen=about.was_placed if about.placed is not None else None,
        verdicts=[VerdictAnswer.short(verdict) for verdict in about.verdicts],
        reproduced=explained.reproduced,
        notes=[*explained.notes, *about.notes()],
    )


def _decisive(answers: Sequence[GivenAnswer]) -> GivenAnswer | None:
    """The "no" that decided: the first one; those that hold back all commands precede those that pass by themselves."""
    against = [each for each in answers if each.answer == "no"]
    of_all = next((each for each in against if each.asked in (*REFUSALS, BY_APPROVAL)), None)
    first = next(iter(against), None)
    # Where the shedder asks for a move, it is not the shedder that holds it back.
    passes = first is not None and (first.kind == ReasonClass.THROTTLED.value or first.reason in _ASKS_FOR_A_MOVE)
    return of_all if of_all is not None and passes else first


class _About:
    """What is known about one subject."""

    def __init__(self, explained: ExplainedDecision, subject: str, kind: SubjectKind) -> None:
        self._explained, self._subject, self._kind = explained, subject, kind
        self._all = explained.verdicts or ()
        self.topic = self._found_topic() if kind == "topic" else None
        self._subjects = frozenset({subject}) if self.topic is None else self.topic.bundles
        self.commands = [each for each in explained.commands if self._names(each[0])]
        self.verdicts = [each for each in self._all if kind == "interval" or each.subject in self._subjects]
        placed = explained.examined.placed(subject) if explained.examined is not None and kind == "bundle" else None
        self.placed: Placed | None = None if placed is None else placed[0]
        self.was_placed = placed is not None and placed[1]
        self._shedder = type(explained.policy.shedder).__name__

    def _names(self, command: Command) -> bool:
        """Whether *command* is about the subject."""
        about = (command.source, command.destination) if self._kind == "broker" else (command.bundle,)
        return self._kind == "interval" or not self._subjects.isdisjoint(about)

    def _found_topic(self) -> ExplainedTopic | None:
        examined, shedder = self._explained.examined, self._explained.policy.shedder
        scale = shedder.auto_scale if isinstance(shedder, PeakShedder) else AutoScale()
        return None if examined is None else explained_topic(examined.view, self._subject, scale)

    def answers(self) -> list[GivenAnswer]:
        """Of guardrails and strategies, in the order of their weight: the first "no" decides."""
        if self._explained.verdicts is None:
            return []
        shedding = before_shedding(self._all, self._explained.policy, self._explained.interval)
        was_asked = all(each.answer == "yes" for each in shedding)
        if self._kind == "bundle":
            own = list(self._of_bundle(was_asked=was_asked))
        else:
            own = [self._of_shedder(was_asked=was_asked), self._of_budgets()]
        return [*shedding, *own, *refusals(self._all), *approval(self._all, self._subject)]

    def notes(self) -> Iterator[str]:
        """About the answers of the filters."""
        if self.placed is not None:
            ignored = ignored_filters(self._explained.policy, self.placed)
            yield from [ignored] if ignored else []
        elif self._kind == "bundle" and self._explained.examined is not None:
            yield "no broker with load data had the bundle, so it could not be moved"

    def because(self, answers: Sequence[GivenAnswer]) -> str:
        """One sentence: the reasons of the commands, else the first "no"."""
        reasons = list(dict.fromkeys(verdict_text(command.why) for command, _ in self.commands))
        if self._kind == "topic":
            placed = "its segments are not known" if self.topic is None else self.topic.text
            moved = (
                f"{counted(len(self.commands), 'command')} about their bundles" if self.commands else "nothing moves"
            )
            return "; ".join([placed, moved, *reasons[:_MAX_NAMED]])
        if self._kind == "broker" and self.commands:
            gives = sum(command.source == self._subject for command, _ in self.commands)
            reasons.insert(0, f"gives {counted(gives, 'bundle')}, gets {len(self.commands) - gives}")
        if reasons:
            more = f"; and {len(reasons) - _MAX_NAMED} more" if len(reasons) > _MAX_NAMED else ""
            return f"{'; '.join(reasons[:_MAX_NAMED])}{more}"
        against = _decisive(answers)
        if against is not None:
            return f"{against.asked}: {against.text}; {against.means}"
        if self._explained.verdicts is None:
            return f"not known, only the summary is stored: {self._explained.summary}"
        return "no verdict is about it: nothing forbids a move, and nothing requires one"

    # ---- a bundle ----

    def where_to(self) -> str:
        """Where the bundle goes or would go, or why to no broker; "" where that is not known."""
        command = next((each for each, _ in self.commands if each.destination), None)
        if self._kind != "bundle" or (command is None and self.placed is None):
            return ""
        if command is not None:
            return command.destination
        assert self.placed is not None
        return self.placed.destination or reason_text(self.placed.verdicts[-1])

    def _of_bundle(self, *, was_asked: bool) -> Iterator[GivenAnswer]:
        guard, recently = self._guard(), self._recently()
        # Without the load, only a guardrail that said no is known.
        known = self._explained.examined is not None or guard is not None or recently is not None
        guards = about_bundle(guard, recently) if known else []
        yield from guards
        free = was_asked and all(each.answer == "yes" for each in guards)
        why = self._chosen()
        if why is not None:
            yield yes(why.by or self._shedder, verdict_text(why))
            yield self._of_destination()
            yield self._of_budgets()
            return
        yield self._of_shedder(was_asked=free)
        yield from (not_asked(_DESTINATION), not_asked(BUDGETS))

    def _guard(self) -> Verdict | None:
        examined, names = self._explained.examined, [each.by for each in GUARDRAILS]
        verdict = None if examined is None else examined.guard_of(self._subject)
        by_guardrails = (each for each in self.verdicts if each.by in names and each.reason is not Reason.SETTLED)
        return verdict or next(by_guardrails, None)

    def _recently(self) -> Verdict | None:
        examined = self._explained.examined
        if examined is None:
            return next((each for each in self.verdicts if each.reason in _RECENT), None)
        row = examined.view.bundles.code_of.get(self._subject)
        if row is None or not examined.view.recently_unloaded[row]:
            return None
        since = examined.made_of.memory.recently_unloaded.get(self._subject)
        detail = "" if since is None else f"unloaded at {utc(since)}"
        verdict = Verdict(subject=self._subject, reason=Reason.RECENTLY_UNLOADED, by=GRACE_PERIOD, detail=detail)
        return of_dry_run([verdict], examined.made_of.memory)[0]

    def _chosen(self) -> Verdict | None:
        """Why the shedder takes the bundle off its broker; None where it does not."""
        for command, _ in self.commands:
            if command.action == "unload":
                return command.why
        examined = self._explained.examined
        unload = None if examined is None else examined.answers.chosen.get(self._subject)
        return None if unload is None else unload.why

    def _of_destination(self) -> GivenAnswer:
        command = next((each for each, _ in self.commands if each.action == "unload"), None)
        if command is not None:
            return yes(_DESTINATION, command.destination or "chosen by the brokers")
        if self.placed is None or not self.was_placed:
            return not_asked(_DESTINATION)
        if self.placed.destination:
            return yes(_DESTINATION, self.placed.destination)
        return no(_DESTINATION, self.placed.verdicts[-1])

    # ---- all subjects ----

    def _of_shedder(self, *, was_asked: bool) -> GivenAnswer:
        if not was_asked:
            return not_asked(self._shedder)
        examined, subjects = self._explained.examined, [self._subject]
        if self._kind == "bundle" and examined is not None:
            row = examined.view.bundles.code_of.get(self._subject)
            owner = -1 if row is None else int(examined.view.bundles.broker[row])
            subjects += [examined.view.brokers.names[owner]] if owner >= 0 else []
        if self._kind == "broker" and any(command.source == self._subject for command, _ in self.commands):
            return yes(self._shedder, "unloads bundles from it")
        by_shedder = [each for each in self._all if each.by == self._shedder]
        for name in [*subjects, CLUSTER]:
            verdict = next((each for each in by_shedder if each.subject == name), None)
            if verdict is not None and self._kind == "broker" and verdict.reason in _ASKS_FOR_A_MOVE:
                verdict = self._against_its_bundles(by_shedder) or verdict
            if verdict is not None:
                return no(self._shedder, verdict)
        return yes(self._shedder) if self._kind == "interval" else not_asked(self._shedder)

    def _against_its_bundles(self, by_shedder: Sequence[Verdict]) -> Verdict | None:
        """Why no bundle leaves the broker although the shedder wants that: the most frequent reason, else its own."""
        examined, counts = self._explained.examined, Counter[Reason]()
        if examined is not None and self._subject in examined.view.brokers.code_of:
            table = examined.view.bundles
            own = {table.names[row] for row in table.of_broker(examined.view.brokers.code_of[self._subject]).tolist()}
            counts.update({each.subject: each.reason for each in self._all if each.subject in own}.values())
            if counts:
                reason, number = counts.most_common(1)[0]
                detail = f"{number} of its {counted(len(own), 'bundle')}"
                return Verdict(subject=self._subject, reason=reason, by=self._shedder, detail=detail)
        of_all = (each for each in by_shedder if each.subject == CLUSTER and each.reason not in _ASKS_FOR_A_MOVE)
        return next((each for each in of_all if each.reason is not Reason.BALANCED), None)

    def _of_budgets(self) -> GivenAnswer:
        against = None
        if self._kind == "bundle":
            if self.commands or (self.was_placed and self.placed is not None and not self.placed.destination):
                return yes(BUDGETS) if self.commands else not_asked(BUDGETS)
            brokers = [] if self.placed is None else [self.placed.destination]
            unload = (
                None if self._explained.examined is None else self._explained.examined.answers.chosen.get(self._subject)
            )
            brokers += [] if unload is None else [unload.source]
            against = budget_against(self._all, [CLUSTER, *brokers, namespace_of(self._subject)])
        elif self._kind == "broker":
            against = budget_against(self._all, [self._subject])
        else:
            against = next((each for each in self._all if each.reason in BUDGET_REASONS), None)
        return yes(BUDGETS) if against is None else no(against.by, against)

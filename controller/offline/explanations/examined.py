"""Makes a decision again, with the code of the cycle, and records what its strategies answered.

What the shedder chose, and which brokers the filters and the placement left for each bundle, is what they answered when
the cycle asked them.  About a bundle that the cycle did not place they are asked afterwards, by the cycle's ``place``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from controller.aggregate.snapshot import Snapshot
from controller.cycle import Policy, policy_for, view_of, with_read_memories, without_dry_run
from controller.cycle.checked import unloads_by
from controller.cycle.dry_run import of_dry_run
from controller.cycle.ordered import with_controls
from controller.cycle.placing import counts_at_once, place, place_as_planned, sent
from controller.cycle.protected import ProtectedBundles
from controller.engine import decide_interval
from controller.model.controls import Controls
from controller.model.decision import Decision, Reason, Unload, UnloadDecision, Verdict
from controller.model.load import ClusterView, Ints
from controller.model.memory import Memory
from controller.offline.flips import Redecision
from controller.strategies.common.candidates import Candidates
from controller.strategies.common.capabilities import capability
from controller.strategies.protocols import HurriedShedder


@dataclass(slots=True, kw_only=True)
class Placed:
    """The brokers that the filters and the placement left for one bundle."""

    #: The view at its turn, with the bundles that were placed before it.
    view: ClusterView
    candidates: Candidates
    #: The rows that are equally good; None where the placement was not asked, as the destination was planned.
    acceptable: Ints | None = None
    #: The rows that the placement likes best, also overloaded ones.
    best: Ints | None = None
    destination: str = ""
    verdicts: Sequence[Verdict] = ()


@dataclass(slots=True)
class StrategyAnswers:
    """The answers of the strategies during a decision; of several decisions, the last one."""

    #: Bundle -> the brokers left for it, of bundles that were placed.
    placed: dict[str, Placed] = field(default_factory=dict)
    #: The shedder and the membership rebalancer -> their choices.
    unloads: dict[str, tuple[Unload, ...]] = field(default_factory=dict)

    @property
    def chosen(self) -> dict[str, Unload]:
        """Bundle -> the shedder's, or the membership rebalancer's, unload."""
        return {unload.bundle: unload for unloads in self.unloads.values() for unload in unloads}


class _ObservedSelection:
    """Passes on to the policy's selection, and records its answers."""

    def __init__(self, selection: Any, answers: StrategyAnswers) -> None:
        self._selection, self._answers = selection, answers

    def __getattr__(self, name: str) -> Any:
        # All other attributes are the selection's own.
        return getattr(self._selection, name)

    def candidates(self, view: ClusterView, bundle: int, filters: Any) -> Candidates:
        candidates: Candidates = self._selection.candidates(view, bundle, filters)
        before, placed = self._answers.placed.get(view.bundles.names[bundle]), Placed(view=view, candidates=candidates)
        # The check of mode approve asks the filters again, after the placement was asked.
        if before is None or before.acceptable is None:
            self._answers.placed[view.bundles.names[bundle]] = placed
        return candidates

    def acceptable(
        self, view: ClusterView, bundle: int, candidates: Candidates, placement: Any, memory: Any
    ) -> tuple[Ints, Any]:
        best, _ = placement.acceptable(view, bundle, candidates.remaining, memory)
        rows, memory = self._selection.acceptable(view, bundle, candidates, placement, memory)
        placed = Placed(view=view, candidates=candidates, acceptable=rows, best=best)
        self._answers.placed[view.bundles.names[bundle]] = placed
        return rows, memory


class _ObservedShedder:
    """Passes on to a shedder, and records its choice."""

    def __init__(self, shedder: Any, answers: StrategyAnswers) -> None:
        self._shedder, self._answers = shedder, answers

    @property
    def wrapped(self) -> Any:
        return self._shedder

    def initial_memory(self) -> Any:
        return self._shedder.initial_memory()

    def decide(self, view: ClusterView, memory: Any) -> tuple[UnloadDecision, Any]:
        decision, memory = unloads_by(self._shedder, view, memory)
        self._answers.unloads[type(self).__name__] = decision.unloads
        return decision, memory


class _ObservedHurriedShedder(_ObservedShedder):
    """The same for a shedder that knows brokers that cannot wait: it is listened to when it relieves them, too."""

    def hurries(self, view: ClusterView) -> Any:
        return self._hurried.hurries(view)

    def relieving(self) -> Any:
        return _observed_shedder(self._hurried.relieving(), self._answers)

    @property
    def _hurried(self) -> HurriedShedder:
        hurried: HurriedShedder = capability(self._shedder, HurriedShedder)
        return hurried


def observed_policy(policy: Policy) -> tuple[Policy, StrategyAnswers]:
    """*policy* with strategies that record their answers while it decides, and these answers."""
    answers = StrategyAnswers()
    membership = None if policy.membership is None else _observed_shedder(policy.membership, answers)
    return replace(
        policy,
        selection=cast("Any", _ObservedSelection(policy.selection, answers)),
        shedder=_observed_shedder(policy.shedder, answers),
        membership=membership,
    ), answers


def _observed_shedder(shedder: Any, answers: StrategyAnswers) -> Any:
    # Verdicts name a strategy by its class.
    kind = _ObservedShedder if capability(shedder, HurriedShedder) is None else _ObservedHurriedShedder
    return type(type(shedder).__name__, (kind,), {})(shedder, answers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """A replayed decision, and the recorded answers of its strategies."""

    #: The policy of the settings, which records nothing.
    policy: Policy
    view: ClusterView
    decision: Decision
    #: After the decision.
    memory: Memory
    answers: StrategyAnswers
    #: What the decision was made of.
    made_of: Redecision

    def guarded(self) -> ProtectedBundles:
        """The bundles that were guarded when this was decided."""
        issued = {command.id for command in self.decision.commands}
        in_flight = {key: each for key, each in self.memory.in_flight.items() if key not in issued}
        protected = ProtectedBundles.of(self.view, replace(self.memory, in_flight=in_flight), self.policy)
        return protected.and_rejected(self.memory.rejected)

    def guard_of(self, bundle: str) -> Verdict | None:
        """The guardrail that kept *bundle* on its broker, or None."""
        verdict = self.guarded().verdict(bundle)
        return None if verdict is None else of_dry_run([verdict], self.made_of.memory)[0]

    def placed(self, bundle: str) -> tuple[Placed, bool] | None:
        """Where *bundle* may go, and whether the decision asked; None where no broker with data owns it.

        Where it did not ask, the answer is that at its end: the bundle would be the last one to be placed.
        """
        row = self.view.bundles.code_of.get(bundle)
        if row is None or not self.view.bundles.owned[row]:
            return None
        if bundle in self.answers.chosen and bundle in self.answers.placed:
            return self._as_decided(bundle), True
        return self._at_the_end(bundle, int(self.view.bundles.broker[row])), False

    def _as_decided(self, bundle: str) -> Placed:
        placed, unload = self.answers.placed[bundle], self.answers.chosen[bundle]
        command = next((each for each in self.decision.commands if each.bundle == bundle), None)
        if command is not None:
            return replace(placed, destination=command.destination)
        if unload.final or self._is_planned(unload):
            destination, verdicts = place_as_planned(placed.view, unload, self.policy)
        else:
            memory = self.memory
            destination, verdicts, _ = place(placed.view, unload, memory.placement, memory.seed, self.policy)
        return replace(placed, destination=destination, verdicts=verdicts)

    def _counts_at_once(self, bundle: str) -> bool:
        """Whether the decision counted *bundle* at its destination when it placed the next one."""
        unload = self.answers.chosen.get(bundle)
        return unload is None or self._is_planned(unload) or counts_at_once(unload, self.policy)

    def _is_planned(self, unload: Unload) -> bool:
        """Whether *unload* is of the membership rebalancer."""
        return unload in self.answers.unloads.get(type(self.policy.membership).__name__, ())

    def _at_the_end(self, bundle: str, source: int) -> Placed:
        view, policy = self.view, self.policy
        for command in self.decision.commands:
            if command.destination:
                view = sent(view, command.bundle, command.destination, counts=self._counts_at_once(command.bundle))
        policy, answers = observed_policy(policy)
        placed = Verdict(subject=bundle, reason=Reason.PLACED)
        unload = Unload(bundle=bundle, source=view.brokers.names[source], why=placed)
        destination, verdicts, _ = place(view, unload, self.memory.placement, self.memory.seed, policy)
        return replace(answers.placed[bundle], destination=destination, verdicts=verdicts)


def examine(snapshot: Snapshot, memory: Memory, controls: Controls, policy: Policy) -> Examined:
    """Decide the interval of *snapshot* as the engine does, from *memory*, and listen."""
    policy = with_controls(policy_for([snapshot], memory, policy), controls)
    listening, answers = observed_policy(policy)
    views = list[ClusterView]()

    def look(snapshots: Sequence[Snapshot], memory: Memory, policy: Policy) -> ClusterView:
        views.append(view_of(snapshots, memory, policy))
        return views[0]

    memory = without_dry_run(with_read_memories(memory, policy), controls)
    entry = decide_interval([snapshot], memory, controls, listening, look)
    made_of = Redecision(view=views[0], results=snapshot.results, memory=memory, controls=controls, policy=policy)
    return Examined(
        policy=policy, view=views[0], decision=entry.decision, memory=entry.memory, answers=answers, made_of=made_of
    )

"""Checks a decision of strategies before it is proposed, and again in each interval until it is issued.

A plan has a certificate; what strategies decide has none.  So each of its commands must stand by itself: nothing holds
its bundle, its source owns it, filters let it go, its destination does not become too full, and budgets allow it.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from controller.cycle.checked import thresholds_of
from controller.cycle.commands import Issuing, charge
from controller.cycle.dispatch import Dispatcher
from controller.cycle.protected import ProtectedBundles
from controller.cycle.splitting import may_leave, range_outdated
from controller.model.decision import Command, Reason, Unload
from controller.model.load import RATE_IN, RATE_OUT, THROUGHPUT_IN, THROUGHPUT_OUT, ClusterView
from controller.model.memory import Memory
from controller.model.proposed import PredictedBroker, ProposedDecision
from controller.planning.checking.decision_checker import CheckedMove, PredictedUsage, check_moves

#: Reasons of splits that say that the bundle is over a split threshold.
_OVER_THRESHOLD: Final = frozenset({Reason.TOPICS, Reason.SESSIONS, Reason.MSG_RATE, Reason.BANDWIDTH})


class Checked(NamedTuple):
    """What was found about a decision."""

    #: Bundle -> why its command must not be issued any more.
    flaws: Mapping[str, str]
    #: Why it cannot be issued in this interval though nothing is wrong with it; "" where it can.
    waits: str
    #: The commands as they would be issued now.
    commands: tuple[Command, ...]
    #: Broker that it touches -> its usage.
    usage: Mapping[str, PredictedBroker]


class DecisionCheck(NamedTuple):
    """Checks decisions in one interval; it charges nothing to the budgets of *issuing*."""

    view: ClusterView
    protected: ProtectedBundles
    memory: Memory
    issuing: Issuing

    def check(self, decision: ProposedDecision) -> Checked:
        """What is wrong with *decision* by now, and what it would issue."""
        flaws, unknown = dict[str, str](), set[str]()
        for command in decision.commands:
            unknown |= {name for name in (command.source, command.destination) if name in self.view.missing}
            if (flaw := self._precondition_flaw(decision, command)) != "":
                flaws[command.bundle] = flaw
        sound = [each for each in decision.commands if each.bundle not in flaws]
        if unknown:
            # Nothing else can be said in this interval.
            return Checked(flaws, f"no data of {', '.join(sorted(unknown))} in this interval", (), {})
        moves = {each.bundle: self._move(each) for each in sound if each.action == "unload"}
        usage, refused = check_moves(self.view, list(moves.values()))
        for bundle, move in moves.items():
            flaw = refused.get(move.bundle, "") or self._no_longer_full(decision, usage, move.source)
            if flaw:
                flaws[bundle] = flaw
        commands, excluded, held_back = self._tried([each for each in sound if each.bundle not in flaws])
        waits = f"a budget has no room for {len(held_back)} of its commands" if held_back else ""
        return Checked({**flaws, **excluded}, waits, commands, self._predicted(usage, moves))

    def _precondition_flaw(self, decision: ProposedDecision, command: Command) -> str:
        view, bundle = self.view, command.bundle
        row = view.bundles.code_of.get(bundle)
        if row is None or not view.bundles.owned[row]:
            return "" if command.source in view.missing else "no broker with data owns it"
        owner = view.brokers.names[int(view.bundles.broker[row])]
        if owner != command.source:
            return f"it is on {owner} by now, not on {command.source}"
        if self.memory.recently_unloaded.get(bundle, -1) >= decision.interval:
            return "it was unloaded since"
        against = self.protected.verdict(bundle)
        if against is not None:
            return f"{against.reason}: {against.detail or against.by}"
        if command.action == "split":
            return self._split_flaw(command, row)
        to = command.destination
        return "" if to in view.brokers.code_of or to in view.missing else f"{to} is no active broker"

    def _split_flaw(self, command: Command, row: int) -> str:
        outdated = range_outdated(self.view, command.bundle)
        if outdated is not None:
            return outdated.detail
        if command.unload_after_split and not may_leave(self.view, row, self.issuing.policy):
            return "a filter keeps its parts on their broker"
        if command.why.reason in _OVER_THRESHOLD and not self._is_over_a_threshold(row):
            return "it is below the split thresholds by now"
        return ""

    def _is_over_a_threshold(self, row: int) -> bool:
        bundles, limits = self.view.bundles, thresholds_of(self.issuing.policy.split_policy)
        load = np.max([bundles.load[row], bundles.short_term[row], bundles.long_term[row]], axis=0)
        return bool(
            bundles.topics[row] > limits.topics
            or bundles.producers[row] + bundles.consumers[row] > limits.sessions
            or load[RATE_IN] + load[RATE_OUT] > limits.msg_rate
            or load[THROUGHPUT_IN] + load[THROUGHPUT_OUT] > limits.throughput
        )

    def _move(self, command: Command) -> CheckedMove:
        brokers = self.view.brokers.code_of
        return CheckedMove(
            self.view.bundles.code_of[command.bundle], brokers[command.source], brokers[command.destination]
        )

    def _no_longer_full(self, decision: ProposedDecision, usage: PredictedUsage, source: int) -> str:
        """Why the broker *source* needs no relief any more: it was above the shedder's limit, and is no longer."""
        name, limit = self.view.brokers.names[source], decision.limit
        was = decision.usage.get(name)
        now = usage.fullest(usage.before, source)
        if limit is None or was is None or not was.before > limit >= now:
            return ""
        return f"{name} is at {now:.0%} by now, no longer above {limit:.0%}"

    def _tried(self, commands: list[Command]) -> tuple[tuple[Command, ...], dict[str, str], list[str]]:
        """*commands* as they would be issued now, bundle -> why one never is, and bundles that budgets hold back."""
        trial = self.issuing._replace(ledger=self.issuing.ledger.copy())
        issued, held_back = list[Command](), list[str]()
        for each in (each for each in commands if each.action == "split"):
            again = trial.command(
                "split", each.bundle, each.source, each.why, self.view.as_of_ms,
                algorithm=each.algorithm, boundaries=each.boundaries, unload_after_split=each.unload_after_split,
            )  # fmt: skip
            if trial.ledger.try_charge(each.bundle, charge(self.view, again)) is None:
                issued.append(again)
            else:
                held_back.append(each.bundle)
        unloads = [_unload(each) for each in commands if each.action == "unload"]
        dispatched = Dispatcher(cluster=self.view, memory=self.memory, issuing=trial).as_planned(unloads)
        refused = {each.subject: f"{each.reason}: {each.detail}" for each in dispatched.verdicts}
        issued += dispatched.commands
        settled = {each.bundle for each in issued} | refused.keys()
        return tuple(issued), refused, [*held_back, *(each.bundle for each in unloads if each.bundle not in settled)]

    def _predicted(self, usage: PredictedUsage, moves: Mapping[str, CheckedMove]) -> dict[str, PredictedBroker]:
        rows = sorted({row for move in moves.values() for row in (move.source, move.destination)})
        return {
            self.view.brokers.names[row]: PredictedBroker(
                before=usage.fullest(usage.before, row), after=usage.fullest(usage.after, row)
            )
            for row in rows
        }


def _unload(command: Command) -> Unload:
    return Unload(
        bundle=command.bundle,
        source=command.source,
        why=command.why,
        destination=command.destination,
        final=True,
        in_order=True,
    )

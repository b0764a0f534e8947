"""Replaces the names in a controller's memory and in the controls: the inputs of a decision besides the load.

Decisions are made again from it.  Texts that nobody decides by are left out: who paused and why, and what the breaker
said.  A strategy's memory says what of it are names.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from controller.cycle.stored_memory import stored
from controller.model.controls import Controls, OrderedMove, Orders
from controller.model.decision import Command, Decision, Reason, Verdict
from controller.model.journal import JournalEntry
from controller.model.memory import BrokerDeaths, Memory, Roster
from controller.model.proposed import ProposedDecision, digest_of
from controller.model.pulsar_version import VersionInUse
from controller.model.strategy_memory import StoredMemory, StrategyMemory
from controller.offline.pseudonyms.names import Pseudonyms
from controller.strategies.catalogue import MEMORIES

V = TypeVar("V")

_BREAKER_TRIPPED: Final = "too many commands failed"
_BROKERS_BALANCE: Final = "the brokers' own balancing"
_LEFT_OUT: Final = "left out"
#: The kind of a memory in place of the name of a class that is no part of trimtab.
_OWN_MEMORY: Final = "own.Memory"


class JournalPseudonyms:
    """Replaces names by *names*, and ids of commands by what *command_id* gives for them."""

    def __init__(self, cluster: str, names: Pseudonyms, command_id: Callable[[str], str]) -> None:
        """*cluster*: its other name."""
        self._cluster, self._names, self._command_id = cluster, names, command_id
        #: Hash of a decision that waited -> its hash with the other names.
        self._decisions = dict[str, str]()

    def entry(self, entry: JournalEntry) -> JournalEntry:
        """*entry* without sentences: of its verdicts and its summary nothing is left."""
        commands = tuple(map(self._command, entry.decision.commands))
        return JournalEntry(
            cluster=self._cluster,
            decision=Decision(
                interval=entry.interval,
                commands=commands,
                summary=_LEFT_OUT,
                pulsar=self._version(entry.decision.pulsar),
            ),
            memory=self._memory(entry.memory),
            controls=self._controls(entry.controls),
        )

    def _command(self, command: Command) -> Command:
        names = self._names
        return replace(
            command,
            id=self._command_id(command.id),
            cluster=self._cluster,
            bundle=names.bundle(command.bundle),
            source=names.broker(command.source),
            destination=names.broker(command.destination),
            why=Verdict(subject=_LEFT_OUT, reason=Reason(command.why.reason)),
        )

    def _memory(self, memory: Memory) -> Memory:
        names, breaker = self._names, memory.breaker
        return replace(
            memory,
            shedder=self.strategy(memory.shedder),
            placement=self.strategy(memory.placement),
            split=self.strategy(memory.split),
            membership=self.strategy(memory.membership),
            recently_unloaded=_renamed(memory.recently_unloaded, names.bundle),
            dry_run_unloaded=_renamed(memory.dry_run_unloaded, names.bundle),
            in_flight={
                self._command_id(key): replace(
                    each,
                    bundle=names.bundle(each.bundle),
                    source=names.broker(each.source),
                    destination=names.broker(each.destination),
                )
                for key, each in memory.in_flight.items()
            },
            failed=_renamed(memory.failed, names.bundle),
            issued={
                self._command_id(key): replace(
                    each,
                    namespace=names.namespace(each.namespace),
                    source=names.broker(each.source),
                    destination=names.broker(each.destination),
                )
                for key, each in memory.issued.items()
            },
            failures=_renamed(memory.failures, self._command_id),
            breaker=replace(breaker, why=_BREAKER_TRIPPED if breaker.why else ""),
            roster=Roster(
                brokers=tuple(sorted(map(names.broker, memory.roster.brokers))),
                came=_renamed(memory.roster.came, names.broker),
                went=_renamed(memory.roster.went, names.broker),
            ),
            destinations={
                names.broker(broker): replace(each, unlisted=_renamed(each.unlisted, names.bundle))
                for broker, each in memory.destinations.items()
            },
            balancing=replace(
                memory.balancing,
                why=_BROKERS_BALANCE if memory.balancing.why else "",
                unknown=_renamed(memory.balancing.unknown, names.broker),
            ),
            deaths=self._deaths(memory.deaths),
            proposed=None if memory.proposed is None else self._proposed(memory.proposed, memory.roster),
            rejected=_renamed(memory.rejected, names.bundle),
            pulsar=self._version(memory.pulsar),
        )

    def _proposed(self, decision: ProposedDecision, roster: Roster) -> ProposedDecision:
        same = decision.brokers == digest_of(roster.brokers)
        brokers = digest_of(tuple(sorted(map(self._names.broker, roster.brokers))) if same else (_LEFT_OUT,))
        renamed = replace(
            decision,
            cluster=self._cluster,
            commands=tuple(map(self._command, decision.commands)),
            usage=_renamed(decision.usage, self._names.broker),
            brokers=brokers,
        )
        self._decisions[decision.hash] = renamed.hash
        return renamed

    def _decision_hash(self, known: str) -> str:
        return self._decisions.get(known) or hashlib.sha256(self._names.text("decision", known).encode()).hexdigest()

    def _deaths(self, deaths: BrokerDeaths) -> BrokerDeaths:
        """The bundles that are named; the columns are hashes of names."""
        fatal = {
            self._names.bundle(bundle): replace(each, brokers=tuple(map(self._names.broker, each.brokers)))
            for bundle, each in deaths.fatal.items()
        }
        return BrokerDeaths(fatal=fatal, resumed_ms=deaths.resumed_ms)

    def _version(self, used: VersionInUse | None) -> VersionInUse | None:
        return replace(used, leader=self._names.broker(used.leader)) if used is not None and used.leader else used

    def strategy(self, memory: StrategyMemory) -> StrategyMemory:
        """What a strategy remembers; of a class that is no part of trimtab without the name of the class."""
        renamed = memory.with_names(self._names)
        return renamed if type(memory) in MEMORIES.values() else StoredMemory({**stored(renamed), "kind": _OWN_MEMORY})

    def _controls(self, controls: Controls) -> Controls:
        return replace(
            controls,
            reason="",
            by="",
            pauses=tuple(replace(each, by=_LEFT_OUT, reason="") for each in controls.pauses),
            # What a policy refused, and who signed what, decides nothing any more.
            not_approved=(_LEFT_OUT,) * len(controls.not_approved),
            granted=(),
            maintenance=controls.maintenance and _LEFT_OUT,
            unknown=controls.unknown and _LEFT_OUT,
            drained=tuple(sorted(map(self._names.broker, controls.drained))),
            excluded=tuple(sorted(map(self._names.namespace_or_bundle, controls.excluded))),
            orders=None if controls.orders is None else self._orders(controls.orders),
            approved=tuple(
                replace(each, decision=self._decision_hash(each.decision), by=(_LEFT_OUT,))
                for each in controls.approved
            ),
            rejected=tuple(
                replace(each, decision=self._decision_hash(each.decision), by=_LEFT_OUT, reason="")
                for each in controls.rejected
            ),
        )

    def _orders(self, orders: Orders) -> Orders:
        names = self._names
        moves = tuple(
            OrderedMove(
                bundle=names.bundle(move.bundle),
                source=names.broker(move.source),
                destination=names.broker(move.destination),
            )
            for move in orders.moves
        )
        plan = hashlib.sha256(names.text("plan", orders.plan).encode()).hexdigest()
        return replace(orders, plan=plan, moves=moves, holder=_LEFT_OUT, by=_LEFT_OUT)


def _renamed(by_name: Mapping[str, V], rename: Callable[[str], str]) -> dict[str, V]:
    return {rename(name): value for name, value in by_name.items()}

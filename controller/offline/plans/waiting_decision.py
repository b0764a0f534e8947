"""The decision of strategies that waits for approval in mode approve, as a proposal that people can see and approve."""

import json
from contextlib import suppress
from typing import Any

from controller.adapters.approvals.making import propose_decision
from controller.adapters.election.memory import MemoryProposals
from controller.adapters.election.proposals import ProposalStore
from controller.log.factory import log_system
from controller.model.proposals import StoredProposal
from controller.model.proposed import ProposedDecision
from controller.settings.trimtab_toml import Settings
from controller.wire.base import printable


def waiting_decision(settings: Settings) -> ProposedDecision | None:
    """The decision that waits now, by the journal's last entry; None where none does.  TrimtabError."""
    last = log_system(settings).tail().last_entry()
    return None if last is None else last.memory.proposed


def propose_waiting(store: ProposalStore, decision: ProposedDecision, now_ms: int) -> StoredProposal:
    """*decision* in *store*, so that it can be approved there; what is there already, if it is."""
    splits = sum(command.action == "split" for command in decision.commands)
    return propose_decision(
        store,
        decision.content,
        cluster=decision.cluster,
        now_ms=now_ms,
        expires_at_ms=decision.expires_at_ms,
        moves=len(decision.commands) - splits,
        splits=splits,
        connections=decision.connections,
        title=decision.text,
    )


def as_proposal(decision: ProposedDecision) -> StoredProposal:
    """*decision* as a proposal that is stored nowhere, of the interval in which it was decided."""
    return propose_waiting(MemoryProposals(), decision, decision.interval)


def decision_lines(content: bytes) -> list[str]:
    """What the content of a decision says, a line each; its hash is that of the proposal, and nothing else is known."""
    lines = list[str]()
    with suppress(ValueError, TypeError, KeyError, RecursionError):
        values: Any = json.loads(content)
        for bundle, source, algorithm, *_ in values["splits"]:
            lines.append(f"split {bundle} on {source} by {algorithm}")
        for bundle, source, destination in values["unloads"]:
            lines.append(f"unload {bundle} from {source} to {destination or 'the broker that Pulsar chooses'}")
    return list(map(printable, lines))


def usage_lines(decision: ProposedDecision) -> list[str]:
    """The predicted usage of each broker that *decision* touches."""
    return [f"usage of {name}: {each.before:.1%} to {each.after:.1%}" for name, each in decision.usage.items()]

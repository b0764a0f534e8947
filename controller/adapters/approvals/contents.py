"""What a proposal is really about: its content, verified, whatever its head says."""

import json
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from controller.adapters.approvals.standing import ProposalSubject
from controller.model.controls import OrderedMove
from controller.model.errors import PlanRefusedError, ProposalRefusedError, WireError
from controller.model.proposals import ControlRequest, Proposal, ProposalKind
from controller.model.proposed import decision_text
from controller.planning.plans.plan import Plan
from controller.wire.base import printable
from controller.wire.plan import certificate_hash, parse_plan
from controller.wire.proposals import MAX_SENTENCE, hash_of, parse_request

#: More than any policy lets pass without an approval.
_ANY: Final = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedContent:
    """The content of a proposal, verified."""

    subject: ProposalSubject
    #: What a list calls it; "": whatever its head says.
    title: str = ""
    #: Of a plan.
    plan: Plan | None = None
    #: Of each step of a plan, its moves.
    moves: tuple[frozenset[OrderedMove], ...] = field(default=(), repr=False)
    #: Of a change of the controls.
    request: ControlRequest | None = None

    @classmethod
    def of_decision(cls, key: str) -> "VerifiedContent":
        """That of the decision with the hash *key*.  The policy's free moves are for the core to count."""
        return cls(subject=ProposalSubject(hash=key, kind=ProposalKind.DECISION, moves=_ANY, connections=_ANY))


def verified_content(proposal: Proposal, content: bytes) -> VerifiedContent:
    """*content* as that of *proposal*; ProposalRefusedError where it is something else, or says something untrue.

    Of a plan, the checker verifies moves, waves and certificates.  What the head says of the content, which nobody
    signs and people read first, has to be so.
    """
    verified = _content_of(proposal, content)
    reported = _Facts(proposal.title, proposal.moves, proposal.splits, proposal.connections)
    true = _facts_in(verified, content, reported)
    if reported != true:
        raise ProposalRefusedError(
            f"the head of proposal {proposal.hash[:12]} was changed: it says {reported}, and its content says {true}"
        )
    return verified


class _Facts(NamedTuple):
    """What a head says of a content."""

    title: str
    moves: int
    splits: int
    connections: int

    def __str__(self) -> str:
        return f"{self.title!r}, {self.moves} moves, {self.splits} splits, {self.connections} connections"


def _facts_in(verified: VerifiedContent, content: bytes, reported: _Facts) -> _Facts:
    """What *content* says.  A decision says nothing of its connections: these are as *reported*."""
    subject = verified.subject
    if subject.kind is not ProposalKind.DECISION:
        return _Facts(verified.title, subject.moves, 0, subject.connections)
    counts = _decision_counts(content)
    return reported if counts is None else _Facts(decision_text(*counts), *counts, reported.connections)


def _decision_counts(content: bytes) -> tuple[int, int] | None:
    """How many unloads and splits the decision in *content* has; None where it does not say."""
    try:
        fields = json.loads(content)
        return len(fields["unloads"]), len(fields["splits"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _content_of(proposal: Proposal, content: bytes) -> VerifiedContent:
    key, kind = proposal.hash, proposal.kind
    try:
        if kind is ProposalKind.PLAN:
            plan = plan_content(content, f"the content of proposal {key[:12]}")
            _require_hash(key, plan.subject.hash)
            return plan
        request = parse_request(content) if kind is ProposalKind.CONTROL else None
    except (PlanRefusedError, WireError) as error:
        raise ProposalRefusedError(f"the content of proposal {key[:12]} is refused: {error}") from error
    _require_hash(key, hash_of(content))
    if request is None:
        return VerifiedContent.of_decision(key)
    return VerifiedContent(
        subject=ProposalSubject(hash=key, kind=kind), title=title_of_request(request), request=request
    )


def title_of_request(request: ControlRequest) -> str:
    """How a list calls *request*."""
    return _title(" ".join((request.action, *request.values)))


def _title(text: str) -> str:
    return printable(text)[:MAX_SENTENCE]


def plan_content(content: bytes, file_name: str = "this") -> VerifiedContent:
    """The plan in *content*, a plan's file, verified by the checker; PlanRefusedError, which calls it *file_name*."""
    plan, sha256 = parse_plan(content, file_name)
    rows = [move for step in plan.steps for move in step.moves]
    return VerifiedContent(
        subject=ProposalSubject(
            hash=sha256,
            kind=ProposalKind.PLAN,
            certificate=certificate_hash(plan),
            moves=len(rows),
            connections=round(sum(float(plan.problem.connections[move.bundle]) for move in rows)),
        ),
        title=_title(plan.asked),
        plan=plan,
        moves=tuple(
            frozenset(
                OrderedMove(
                    bundle=plan.bundles[move.bundle],
                    source=plan.brokers[move.source],
                    destination=plan.brokers[move.destination],
                )
                for move in step.moves
            )
            for step in plan.steps
        ),
    )


def _require_hash(key: str, actual: str) -> None:
    if actual != key:
        raise ProposalRefusedError(f"the content of proposal {key[:12]} was changed: its hash is {actual[:12]}")

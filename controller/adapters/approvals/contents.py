"""What a proposal is really about: its content, verified, whatever its head says."""

from dataclasses import dataclass, field
from typing import Final

from controller.adapters.approvals.standing import ProposalSubject
from controller.model.controls import OrderedMove
from controller.model.errors import PlanRefusedError, ProposalRefusedError, WireError
from controller.model.proposals import ControlRequest, Proposal, ProposalKind
from controller.planning.plans.plan import Plan
from controller.wire.plan import certificate_hash, parse_plan
from controller.wire.proposals import hash_of, parse_request

#: More than any policy lets pass without an approval.
_ANY: Final = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedContent:
    """The content of a proposal, verified."""

    subject: ProposalSubject
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

    Of a plan, the checker verifies moves, waves and certificates.
    """
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
    return VerifiedContent(subject=ProposalSubject(hash=key, kind=kind), request=request)


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

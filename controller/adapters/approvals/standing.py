"""The state of a proposal under a policy: which statements about it count, and whether they are enough."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from controller.adapters.approvals.statements import flaw_of
from controller.model.proposals import (
    CONTROLLER,
    Proposal,
    ProposalKind,
    ProposalState,
    SignedStatement,
    Standing,
    Statement,
    StatementKind,
    StoredProposal,
)
from controller.model.proposed import needs_no_approval
from controller.settings.approvals import ApprovalSettings

#: Flaws that are told in a sentence, which is journalled.
_MAX_FLAWS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalSubject:
    """What statements have to be about, as whoever verifies them has found it out."""

    hash: str
    kind: ProposalKind
    certificate: str = ""
    #: Bundles that it moves or splits, and producers and consumers that reconnect.
    moves: int = 0
    connections: int = 0


def standing_of(
    stored: StoredProposal,
    policy: ApprovalSettings,
    *,
    cluster: str,
    now_ms: int,
    subject: ProposalSubject | None = None,
) -> Standing:
    """The state of *stored* by *policy* at *now_ms*.

    *subject*: what it is about, verified; without it, what its head says, which is enough for lists alone.
    """
    subject = subject or subject_of(stored.proposal)
    standing = standing_by(
        stored.proposal.statement, stored.record.statements, policy, cluster=cluster, now_ms=now_ms, subject=subject
    )
    state = stored.record.progress.state
    return standing if state is None else replace(standing, state=state)


def subject_of(proposal: Proposal) -> ProposalSubject:
    """What *proposal* says that it is about."""
    return ProposalSubject(
        hash=proposal.hash,
        kind=proposal.kind,
        certificate=proposal.statement.statement.certificate,
        moves=proposal.moves + proposal.splits,
        connections=proposal.connections,
    )


def standing_by(
    proposed: SignedStatement,
    statements: Sequence[SignedStatement],
    policy: ApprovalSettings,
    *,
    cluster: str,
    now_ms: int,
    subject: ProposalSubject,
) -> Standing:
    """The state of what *proposed*, the author's statement, proposes, by the *statements* about it; as if nobody had
    begun to carry it out."""
    checks = StatementChecks(policy=policy, cluster=cluster, now_ms=now_ms)
    required, expires_at_ms = required_approvals(policy, subject), proposed.statement.expires_at_ms
    own = "" if expires_at_ms <= now_ms else _flaw_of_author(proposed, checks, subject)
    counted, rejection, flaws = _counted(proposed.statement.author, statements, checks, subject)
    approvals = [each.statement for each in counted]
    if own or rejection:
        state = ProposalState.REJECTED
    elif expires_at_ms <= now_ms:
        state = ProposalState.EXPIRED
    else:
        state = ProposalState.APPROVED if len(approvals) >= required else ProposalState.PENDING
    return Standing(
        state=state,
        approved_by=tuple(each.person for each in approvals),
        required=required,
        rejected_by=rejection.person if rejection else "",
        rejected_for=rejection.reason if rejection else "",
        flaws=(*([own] if own else []), *flaws),
        expires_at_ms=min((expires_at_ms, *(each.expires_at_ms for each in approvals))),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementChecks:
    """By what statements are measured."""

    policy: ApprovalSettings
    cluster: str
    now_ms: int

    def flaw_of(self, signed: SignedStatement, kind: ProposalKind) -> str:
        """Why *signed*, about a proposal of *kind*, does not count; "" where it does."""
        statement, life_ms = signed.statement, self.policy.life_ms(kind)
        if statement.kind is not StatementKind.REJECT and statement.expires_at_ms - statement.at_ms > life_ms:
            return (
                f"the statement of {statement.person} ({statement.kind}) counts for more than"
                f" {life_ms // 60_000} minutes, which [approvals] does not allow for a {kind}"
            )
        return flaw_of(signed, self.policy, cluster=self.cluster, now_ms=self.now_ms)


def _counted(
    author: str, statements: Sequence[SignedStatement], checks: StatementChecks, subject: ProposalSubject
) -> tuple[list[SignedStatement], Statement | None, list[str]]:
    """Approvals that count, one a person; the first rejection, or None; and why other statements do not count."""
    approvals, flaws = dict[str, SignedStatement](), list[str]()
    rejection: Statement | None = None
    for each in statements:
        statement = each.statement
        why = _flaw_about(each, author, subject) or checks.flaw_of(each, subject.kind)
        if not why and statement.kind is StatementKind.APPROVE and checks.policy.is_same(statement.person, author):
            why = f"{statement.person} has proposed it, so the approval does not count: another person has to approve"
        if why:
            flaws.append(why)
        elif statement.kind is StatementKind.REJECT:
            rejection = rejection or statement
        elif statement.kind is StatementKind.APPROVE:
            approvals.setdefault(min(checks.policy.names_of(statement.person)), each)
    return list(approvals.values()), rejection, flaws


def counting(
    proposed: SignedStatement, statements: Sequence[SignedStatement], checks: StatementChecks, subject: ProposalSubject
) -> Sequence[SignedStatement]:
    """The approvals among *statements* that count for what *proposed* proposes, one a person."""
    return _counted(proposed.statement.author, statements, checks, subject)[0]


def required_approvals(policy: ApprovalSettings, subject: ProposalSubject) -> int:
    """How many persons have to approve *subject*."""
    if subject.kind is ProposalKind.CONTROL:
        return policy.required
    free = needs_no_approval(
        subject.moves, subject.connections, free_moves=policy.free_moves, free_connections=policy.free_connections
    )
    return 0 if free else policy.required


def _flaw_of_author(proposed: SignedStatement, checks: StatementChecks, subject: ProposalSubject) -> str:
    """Why the author's statement does not count; "" where it does.  The controllers' own decisions have none."""
    statement = proposed.statement
    author = statement.author
    if subject.kind is ProposalKind.DECISION:
        return "" if author == CONTROLLER else f"a decision is of {CONTROLLER}, and this one is of {author}"
    if statement.kind is not StatementKind.PROPOSE or not checks.policy.is_same(statement.person, author):
        return f"{author} has not proposed it: the statement with it is one of {statement.person} ({statement.kind})"
    return _flaw_about(proposed, author, subject) or checks.flaw_of(proposed, subject.kind)


def _flaw_about(signed: SignedStatement, author: str, subject: ProposalSubject) -> str:
    """Why *signed* is not about *subject* of *author*; "" where it is."""
    statement = signed.statement
    who = f"the statement of {statement.person} ({statement.kind})"
    if statement.subject != subject.hash:
        return f"{who} is about {statement.subject[:12]}, and this is {subject.hash[:12]}"
    if statement.certificate != subject.certificate:
        return f"{who} is about another certificate than the one that was verified"
    return (
        ""
        if statement.author == author
        else f"{who} is about a proposal of {statement.author}, and this one is of {author}"
    )


def unmet(standing: Standing) -> Iterator[str]:
    """Why *standing* does not allow to carry it out, a sentence each; none where it does."""
    match standing.state:
        case ProposalState.PENDING:
            by = f", by {', '.join(standing.approved_by)}" if standing.approved_by else ""
            yield f"it has {len(standing.approved_by)} of {standing.required} approvals{by}"
        case ProposalState.REJECTED if standing.rejected_by:
            yield f"{standing.rejected_by} has rejected it"
        case ProposalState.EXPIRED:
            yield "it has expired"
        case ProposalState.DONE | ProposalState.FAILED | ProposalState.STOPPED:
            yield f"it is {standing.state}"
        case _:
            pass
    if standing.state not in (ProposalState.APPROVED, ProposalState.APPLYING, ProposalState.PAUSED):
        yield from standing.flaws[:_MAX_FLAWS]
        if len(standing.flaws) > _MAX_FLAWS:
            yield f"and {len(standing.flaws) - _MAX_FLAWS} more"

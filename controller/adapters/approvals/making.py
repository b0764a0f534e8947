"""Making a proposal, approving and rejecting it: what the command line and the page do.

Every statement is signed here, where the policy demands it, and refused at once where the controllers would refuse it.
"""

from dataclasses import dataclass, replace

from controller.adapters.approvals.contents import VerifiedContent, plan_content, title_of_request, verified_content
from controller.adapters.approvals.standing import StatementChecks, counting, standing_of
from controller.adapters.approvals.statements import flaw_of, sign
from controller.adapters.election.changes import ControlsChange, change_controls
from controller.adapters.election.controls import ControlStore
from controller.adapters.election.proposals import ProposalStore, change_record, require
from controller.model.controls import OperatorControls
from controller.model.errors import ProposalRefusedError
from controller.model.proposals import (
    CONTROLLER,
    ControlRequest,
    Grant,
    Proposal,
    ProposalKind,
    ProposalRecord,
    ProposalState,
    SignedStatement,
    Standing,
    Statement,
    StatementKind,
    StoredProposal,
)
from controller.settings.approvals import ApprovalSettings
from controller.wire.base import printable
from controller.wire.ed25519 import SigningKey
from controller.wire.proposals import MAX_SENTENCE, MAX_STATEMENTS, encode_request, hash_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Signer:
    """Who says something, and the key that signs it."""

    person: str
    policy: ApprovalSettings
    cluster: str
    #: The key's name: the person's, or that of the server that vouches for the person.
    key_name: str = ""
    key: SigningKey | None = None

    def says(self, statement: Statement) -> SignedStatement:
        """*statement*, signed.  ProposalRefusedError where the controllers would not believe it."""
        return sign(statement, self.policy, self.key)

    def statement(self, kind: StatementKind, proposal: str, *, now_ms: int, expires_at_ms: int) -> Statement:
        """A statement of this person about what she proposes, the hash *proposal*."""
        return Statement(
            kind=kind,
            cluster=self.cluster,
            subject=proposal,
            person=self.person,
            author=self.person,
            at_ms=now_ms,
            expires_at_ms=expires_at_ms,
            policy=self.policy.version,
            key=self.key_name if self.policy.demanded else "",
        )


def signer_of(key: SigningKey, policy: ApprovalSettings, cluster: str) -> Signer:
    """The person whose private key *key* is.  ProposalRefusedError where [approvals.keys] has no such person."""
    for name, person in policy.keys.items():
        if person.key == key.public_text:
            return Signer(person=name, policy=policy, cluster=cluster, key_name=name, key=key)
    raise ProposalRefusedError(
        f"the public key {key.public_text} is not in [approvals.keys]: add it to the settings of every process"
    )


def propose_plan(
    store: ProposalStore,
    signer: Signer,
    content: bytes,
    *,
    now_ms: int,
    reason: str = "",
    checked: VerifiedContent | None = None,
) -> StoredProposal:
    """Propose the plan in *content*, a plan's file.  PlanRefusedError, ProposalRefusedError.

    *checked*: what ``plan_content`` makes of *content*, where the caller has verified it.
    """
    checked = checked or plan_content(content)
    subject, plan = checked.subject, checked.plan
    if plan is None:
        raise ProposalRefusedError(f"{subject.hash[:12]} is no plan")
    if plan.cluster != signer.cluster:
        raise ProposalRefusedError(f"the plan is for cluster {plan.cluster!r}, and this one is {signer.cluster!r}")
    expires_at_ms = now_ms + signer.policy.life_ms(ProposalKind.PLAN)
    statement = replace(
        signer.statement(StatementKind.PROPOSE, subject.hash, now_ms=now_ms, expires_at_ms=expires_at_ms),
        certificate=subject.certificate,
        reason=_cut(reason),
    )
    proposal = Proposal(
        hash=subject.hash,
        kind=ProposalKind.PLAN,
        statement=signer.says(statement),
        moves=subject.moves,
        connections=subject.connections,
        title=checked.title,
    )
    store.add(proposal, content, now_ms=now_ms)
    return require(store, subject.hash)


def propose_control(
    store: ProposalStore, signer: Signer, action: str, values: tuple[str, ...], *, now_ms: int, reason: str = ""
) -> StoredProposal:
    """Propose a change of the controls that allows more: see ControlRequest."""
    request = ControlRequest(cluster=signer.cluster, action=action, values=values, at_ms=now_ms)
    content = encode_request(request)
    key, expires_at_ms = hash_of(content), now_ms + signer.policy.life_ms(ProposalKind.CONTROL)
    statement = replace(
        signer.statement(StatementKind.PROPOSE, key, now_ms=now_ms, expires_at_ms=expires_at_ms),
        reason=_cut(reason),
    )
    title, signed = title_of_request(request), signer.says(statement)
    proposal = Proposal(hash=key, kind=ProposalKind.CONTROL, statement=signed, title=title)
    store.add(proposal, content, now_ms=now_ms)
    return require(store, key)


def propose_decision(
    store: ProposalStore,
    content: bytes,
    *,
    cluster: str,
    now_ms: int,
    expires_at_ms: int,
    moves: int = 0,
    splits: int = 0,
    connections: int = 0,
    title: str = "",
) -> StoredProposal:
    """Store a decision that waits in mode approve, so that persons can approve it; the one that is there, if any.

    *content* is what its hash is made of.  Nobody signs it: controllers compare the hash with what they decided.
    """
    key = hash_of(content)
    stored = store.read(key)
    if stored is not None:
        return stored
    statement = Statement(
        kind=StatementKind.PROPOSE,
        cluster=cluster,
        subject=key,
        person=CONTROLLER,
        author=CONTROLLER,
        at_ms=now_ms,
        expires_at_ms=expires_at_ms,
    )
    proposal = Proposal(
        hash=key,
        kind=ProposalKind.DECISION,
        statement=SignedStatement(statement=statement),
        moves=moves,
        splits=splits,
        connections=connections,
        title=_cut(title),
    )
    store.add(proposal, content, now_ms=now_ms)
    return require(store, key)


def verified(store: ProposalStore, stored: StoredProposal) -> VerifiedContent:
    """The content of *stored*, read and verified."""
    return verified_content(stored.proposal, store.content(stored.proposal.hash))


def approve(store: ProposalStore, signer: Signer, key: str, *, now_ms: int, reason: str = "") -> Standing:
    """Approve the proposal with the hash *key*, whose content is verified first.

    ProposalRefusedError where the approval would not count, or is not needed.
    """
    return _decide(store, signer, key, StatementKind.APPROVE, now_ms=now_ms, reason=reason)


def reject(store: ProposalStore, signer: Signer, key: str, *, now_ms: int, reason: str = "") -> Standing:
    """Reject it.  The author may do so, too."""
    return _decide(store, signer, key, StatementKind.REJECT, now_ms=now_ms, reason=reason)


def _decide(
    store: ProposalStore, signer: Signer, key: str, kind: StatementKind, *, now_ms: int, reason: str
) -> Standing:
    subject = verified(store, require(store, key)).subject
    policy = signer.policy

    def standing(stored: StoredProposal) -> Standing:
        return standing_of(stored, policy, cluster=signer.cluster, now_ms=now_ms, subject=subject)

    def with_statement(stored: StoredProposal) -> ProposalRecord:
        proposal, before = stored.proposal, standing(stored)
        _refuse_needless(signer, kind, proposal, before)
        # The head of a decision is not signed: the policy says how long an approval of it may count.
        expires_at_ms = min(proposal.expires_at_ms, now_ms + policy.life_ms(subject.kind))
        statement = replace(
            signer.statement(kind, key, now_ms=now_ms, expires_at_ms=expires_at_ms),
            author=proposal.author,
            certificate=subject.certificate,
            reason=_cut(reason),
        )
        # What does not count gives way: a flood of it must not keep others out.
        valid = [
            each
            for each in stored.record.statements
            if not flaw_of(each, policy, cluster=signer.cluster, now_ms=now_ms)
        ]
        return replace(stored.record, statements=(*valid[-MAX_STATEMENTS + 1 :], signer.says(statement)))

    return standing(change_record(store, key, with_statement))


def _refuse_needless(signer: Signer, kind: StatementKind, proposal: Proposal, before: Standing) -> None:
    name = proposal.hash[:12]
    if before.state not in (ProposalState.PENDING, ProposalState.APPROVED):
        why = f": {'; '.join(before.flaws)}" if before.flaws else ""
        raise ProposalRefusedError(f"proposal {name} is {before.state}, so nobody can {kind} it{why}")
    if kind is not StatementKind.APPROVE:
        return
    if signer.policy.is_same(signer.person, proposal.author):
        raise ProposalRefusedError(f"{signer.person} has proposed {name}: another person has to approve it")
    if any(signer.policy.is_same(signer.person, each) for each in before.approved_by):
        raise ProposalRefusedError(f"{signer.person} has approved {name} already")


def grant_of(store: ProposalStore, key: str, policy: ApprovalSettings, cluster: str, now_ms: int) -> Grant:
    """The approved change of the controls with the hash *key*; ProposalRefusedError where it is none, or not yet."""
    stored = require(store, key)
    content = verified(store, stored)
    if content.request is None:
        raise ProposalRefusedError(f"proposal {key[:12]} is no change of the controls")
    standing = standing_of(stored, policy, cluster=cluster, now_ms=now_ms, subject=content.subject)
    if standing.state is not ProposalState.APPROVED:
        raise ProposalRefusedError(
            f"proposal {key[:12]} is {standing.state}: {len(standing.approved_by)} of {standing.required} approvals"
        )
    proposed, checks = stored.proposal.statement, StatementChecks(policy=policy, cluster=cluster, now_ms=now_ms)
    approvals = counting(proposed, stored.record.statements, checks, content.subject)
    return Grant(request=content.request, statements=(proposed, *approvals))


def enact(controls: ControlStore, grant: Grant, change: ControlsChange) -> OperatorControls:
    """Replace the controls by *change* of them, with *grant*, by which the controllers believe it."""
    return change_controls(controls, lambda now: change(now).with_grant(grant))[1]


def _cut(text: str) -> str:
    return printable(text)[:MAX_SENTENCE]

"""Proposals that wait for approval, and the signed statements of persons about them."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final


class ProposalKind(StrEnum):
    """What a proposal proposes; it says how its content is read, and what its hash covers."""

    #: A plan's file (controller.wire.plan); the hash is that of the plan.
    PLAN = "plan"
    #: What strategies decided in mode approve; the hash is that of the content.
    DECISION = "decision"
    #: A change of the controls that allows more: ControlRequest; the hash is that of the content.
    CONTROL = "control"


class StatementKind(StrEnum):
    """What a person says about a proposal."""

    PROPOSE = "propose"
    APPROVE = "approve"
    REJECT = "reject"


class ProposalState(StrEnum):
    """How far a proposal is."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    APPLYING = "applying"
    PAUSED = "paused"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


#: Nothing more happens to a proposal in one of these states.
ENDED: Final = frozenset(
    {
        ProposalState.REJECTED,
        ProposalState.EXPIRED,
        ProposalState.DONE,
        ProposalState.FAILED,
        ProposalState.STOPPED,
    }
)
#: The author of decisions: no person, so whoever may approve may approve them.
CONTROLLER: Final = "trimtab"


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What a signature covers: all of it, as controller.wire.proposals.statement_bytes writes it."""

    kind: StatementKind
    cluster: str
    #: The proposal's hash.
    subject: str
    #: Of a plan: SHA-256 over its certificates; else "".
    certificate: str = ""
    #: Who says it, and who proposed what it is about.
    person: str
    author: str
    #: Epoch ms, wall clock.  It counts from at_ms until expires_at_ms.
    at_ms: int
    expires_at_ms: int
    #: The policy's version that it was made under; "" where there is no policy.
    policy: str = ""
    #: The name of the key that signs: the person's in [approvals.keys], or that of a server which vouches for the
    #: person, in [approvals.servers]; "" where there is no policy.
    key: str = ""
    #: Why, in the person's words.
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedStatement:
    """A statement and its signature."""

    statement: Statement
    #: Ed25519, base64; "" where there is no policy.
    signature: str = ""


#: A request to resume ends all pauses that began before it, also those that somebody removed from the controls.
EVERY_PAUSE: Final = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlRequest:
    """A change of the controls that allows more than what is in force."""

    cluster: str
    #: "mode", "resume", "release" or "include".
    action: str
    #: mode: the mode; resume: at_ms of each pause that ends, as text, or EVERY_PAUSE; release: names of brokers;
    #: include: names of bundles and namespaces.
    values: tuple[str, ...] = ()
    #: Epoch ms, wall clock.  Controllers obey only what is newer than what they obeyed last.
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A change of the controls with the statements that allow it, as it lies in the controls."""

    request: ControlRequest
    #: The author's, and the approvals.
    statements: tuple[SignedStatement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """The head of a proposal; its content is stored beside it.  Only what its statement covers is trusted."""

    #: 64 hexadecimal digits: its name.  An approval is for exactly this hash.
    hash: str
    kind: ProposalKind
    #: Of PROPOSE, by the author; of a decision, by the controller.
    statement: SignedStatement
    #: For lists; controllers count them themselves.
    moves: int = 0
    splits: int = 0
    connections: int = 0
    #: What it is, in a line for people.
    title: str = ""

    @property
    def author(self) -> str:
        """Who proposed it."""
        return self.statement.statement.author

    @property
    def at_ms(self) -> int:
        """When it was proposed, epoch ms."""
        return self.statement.statement.at_ms

    @property
    def expires_at_ms(self) -> int:
        """When it expires, epoch ms."""
        return self.statement.statement.expires_at_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalProgress:
    """How far carrying a proposal out is, as who carries it out writes it."""

    #: Applying, paused, done, failed or stopped; None: nobody has begun.
    state: ProposalState | None = None
    #: What a person has requested since: "pause", "resume" or "stop"; "": nothing.
    request: str = ""
    #: Step and wave, from 1, how many waves the step has, and moves.
    step: int = 0
    wave: int = 0
    waves: int = 0
    moves_done: int = 0
    moves: int = 0
    #: Why it is in that state, who brought it there, and when, epoch ms.
    detail: str = ""
    by: str = ""
    at_ms: int = 0
    #: The process that carries it out, and until when it does so at least, epoch ms.
    holder: str = ""
    holds_until_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalRecord:
    """What changes of a proposal: approvals and rejections, the oldest first, and its progress."""

    statements: tuple[SignedStatement, ...] = ()
    progress: ProposalProgress = field(default_factory=ProposalProgress)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredProposal:
    """A proposal as it is stored, unverified."""

    proposal: Proposal
    record: ProposalRecord
    #: Of the record: it is replaced by who knows this version.
    version: int
    #: Bytes of the content as it lies there.
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A proposal's state by the policy of whoever looks, and why."""

    state: ProposalState
    #: Persons whose approvals count, and how many are needed.
    approved_by: tuple[str, ...] = ()
    required: int = 0
    #: Who rejected it, and why; "": nobody did.
    rejected_by: str = ""
    rejected_for: str = ""
    #: Why it does not count at all, and why statements about it do not count, a sentence each.
    flaws: tuple[str, ...] = ()
    #: Until when it counts, epoch ms: the earliest expiry of what it needs.
    expires_at_ms: int = 0

"""The answers of ``trimtab proposals``."""

from typing import Annotated, Final, Literal, TypeAlias

from controller.model.proposals import Standing, StoredProposal
from controller.wire.answers.base import JsonAnswer, Moment, Prose, Shown
from controller.wire.answers.plan import PlanAnswer

_State: TypeAlias = Literal[
    "pending", "approved", "rejected", "expired", "applying", "paused", "done", "failed", "stopped"
]
_SHORT: Final = 12


class ProposalAnswer(JsonAnswer):
    """One proposal, by the policy of who looks."""

    id: Annotated[str, Shown(form=lambda key: key[:_SHORT])]
    """Its hash, 64 digits: of a plan, that of the plan."""
    kind: Literal["plan", "decision", "control"]
    state: _State
    title: Prose
    """What it is, in a line."""
    author: str
    approved_by: Annotated[list[str], Shown(heading="approved by", form=", ".join)]
    """Whose approvals count, under the policy of these settings."""
    required: Annotated[int, Shown(heading="of")]
    """How many approvals it needs, by persons other than its author."""
    rejected_by: str
    moves: int
    splits: int
    connections: int
    """Producers and consumers that reconnect."""
    proposed_at: Moment
    expires_at: Annotated[Moment, Shown(heading="expires")]
    """Epoch ms: it counts until then, and so do its approvals."""
    flaws: list[str]
    """Why it does not count, and why statements about it do not, a sentence each."""
    step: int
    """The step that is carried out, or was last, from 1; 0: none."""
    wave: int
    """The wave that was handed over last, from 1; 0: none."""
    waves: int
    moves_done: int
    by: str
    """Who began, paused, stopped or ended it."""
    detail: str
    """Why it is in that state."""
    at: int
    """When it came to that state, epoch ms; 0: nobody has begun."""
    held_until: int = 0
    """Until then, epoch ms, the process that carries it out has said that it goes on; 0: none does."""


class StatementAnswer(JsonAnswer):
    """What a person said about a proposal, as it is stored; ``flaws`` of the proposal says what does not count."""

    kind: Literal["propose", "approve", "reject"]
    person: str
    key: str
    """The key that signed; "": none."""
    at: Moment
    reason: Prose


class DriftAnswer(JsonAnswer):
    """How a plan stands in the cluster as it is now."""

    verdict: Literal["still valid", "needs repair", "void", "unknown"]
    step: int
    """Of this step, the one that comes next, from 1."""
    interval: int
    """T of the load, epoch ms; 0: it is not known."""
    moves_done: int
    moves_left: int
    changed: list[str]
    """What is not as the plan says, a sentence each."""
    notes: list[str]
    """What else there is to know; why it is not known."""


class ProposalDetailAnswer(ProposalAnswer):
    """``trimtab proposals show --json``."""

    statements: list[StatementAnswer]
    plan: PlanAnswer | None
    """Of a plan: before and after, waves, certificate, whose clients reconnect."""
    drift: DriftAnswer | None
    """Of a plan that has not ended."""
    content: list[str]
    """Of other kinds: what is proposed, a line each."""


class KeyAnswer(JsonAnswer):
    """``trimtab proposals key --json``."""

    file: str
    """The private key's."""
    public_key: str
    """For [approvals.keys]: Ed25519, base64."""


def proposal_fields(stored: StoredProposal, standing: Standing) -> dict[str, object]:
    """The fields of ProposalAnswer for *stored*, whose state is *standing*."""
    proposal, progress = stored.proposal, stored.record.progress
    return {
        "id": proposal.hash,
        "kind": proposal.kind.value,
        "state": standing.state.value,
        "title": proposal.title,
        "author": proposal.author,
        "approved_by": list(standing.approved_by),
        "required": standing.required,
        "rejected_by": standing.rejected_by,
        "moves": proposal.moves,
        "splits": proposal.splits,
        "connections": proposal.connections,
        "proposed_at": proposal.at_ms,
        "expires_at": standing.expires_at_ms or proposal.expires_at_ms,
        "flaws": list(standing.flaws),
        "step": progress.step,
        "wave": progress.wave,
        "waves": progress.waves,
        "moves_done": progress.moves_done,
        "by": progress.by,
        "detail": progress.detail,
        "at": progress.at_ms,
        "held_until": progress.holds_until_ms,
    }


def statement_answers(stored: StoredProposal) -> list[StatementAnswer]:
    """What persons said about *stored*, the oldest first."""
    return [
        StatementAnswer(
            kind=each.statement.kind.value,
            person=each.statement.person,
            key=each.statement.key,
            at=each.statement.at_ms,
            reason=each.statement.reason,
        )
        for each in (stored.proposal.statement, *stored.record.statements)
    ]


ANSWERS: Final[dict[str, type[JsonAnswer]]] = {
    "answer.proposal": ProposalAnswer,
    "answer.proposal_detail": ProposalDetailAnswer,
    "answer.proposal_key": KeyAnswer,
}

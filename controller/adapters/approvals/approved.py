"""What is approved in the store of proposals, as the controllers verify it: plans and decisions."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from controller.adapters.approvals.background import BackgroundWork, Work
from controller.adapters.approvals.contents import VerifiedContent, verified_content
from controller.adapters.approvals.standing import standing_by, unmet
from controller.adapters.election.proposals import ProposalStore
from controller.model.controls import Orders
from controller.model.errors import TrimtabError
from controller.model.proposals import ProposalKind, ProposalState, Standing, StoredProposal
from controller.planning.plans.plan import RESTART
from controller.settings.approvals import ApprovalSettings

T = TypeVar("T")
log = logging.getLogger(__name__)

#: Verified contents that are remembered; one plan is in force at a time.
_MAX_REMEMBERED: Final = 4


class DecisionStanding(NamedTuple):
    """The standing of a decision that waits in mode approve."""

    stored: StoredProposal
    standing: Standing


@dataclass(frozen=True, slots=True)
class _Look:
    """One look at a plan's proposal."""

    stored: StoredProposal | None
    content: VerifiedContent | None = None
    #: Why the content does not count; "" where it does.
    flaw: str = ""


class ApprovedProposals:
    """Verifies what the controllers are to carry out.  What was read last counts while the store does not answer, until
    its approvals expire."""

    def __init__(
        self, policy: ApprovalSettings, store: ProposalStore, *, cluster: str, work: Work | None = None
    ) -> None:
        self._policy, self._store, self._cluster = policy, store, cluster
        self._work: Work = BackgroundWork() if work is None else work
        self._looks: dict[str, _Look] = {}
        # Filled by the work itself: it is not verified again where other work takes its result's place.
        self._contents: dict[str, VerifiedContent] = {}
        self._decisions: tuple[StoredProposal, ...] = ()

    def why_not(self, orders: Orders, now_ms: int) -> str:
        """Why *orders* are not approved at *now_ms*; "" where they are."""
        look = self._looks.get(orders.plan)
        try:
            new = self._work(("plan", orders.plan), lambda: self._look(orders.plan))
        except TrimtabError as error:
            if look is None:
                return f"its proposal cannot be read: {error}"
            new = look
        if new is None and look is None:
            return "its proposal is being read and checked"
        if new is not None:
            look = _remember(self._looks, orders.plan, new)
        return "" if look is None else self._why_not(orders, look, now_ms)

    def released_by(self, orders: Orders) -> frozenset[str]:
        """The brokers that *orders*, which are approved, may release: those of their step of a rolling restart.

        Whoever approved that plan approved that later steps send bundles to them.  A drain says nothing of the kind.
        """
        look = self._looks.get(orders.plan)
        plan = None if look is None or look.content is None else look.content.plan
        if plan is None or plan.kind != RESTART:
            return frozenset()
        return frozenset(plan.emptied_by(orders.step - 1))

    def decisions(self, now_ms: int) -> Sequence[DecisionStanding]:
        """The decisions that lie in the store, with their standing by the statements about them."""
        try:
            stored = self._work("decisions", self._read_decisions)
        except TrimtabError as error:
            log.warning("proposals cannot be read, those that were read last count: %s", error)
            stored = None
        if stored is not None:
            self._decisions = stored
        return [DecisionStanding(each, self._standing_of_decision(each, now_ms)) for each in self._decisions]

    def _look(self, key: str) -> _Look:
        stored = self._store.read(key)
        if stored is None:
            return _Look(None)
        proposal = stored.proposal
        if proposal.kind is not ProposalKind.PLAN:
            return _Look(stored, flaw=f"proposal {key[:12]} is no plan")
        content = self._contents.get(key)  # its hash was verified, so it is the same
        if content is None:
            try:
                content = verified_content(proposal, self._store.content(key))
            except TrimtabError as error:
                return _Look(stored, flaw=str(error))
            _remember(self._contents, key, content)
        return _Look(stored, content)

    def _why_not(self, orders: Orders, look: _Look, now_ms: int) -> str:
        if look.stored is None:
            return "it was not proposed: `trimtab proposals make` proposes a plan"
        if look.content is None:
            return look.flaw
        standing = standing_by(
            look.stored.proposal.statement,
            look.stored.record.statements,
            self._policy,
            cluster=self._cluster,
            now_ms=now_ms,
            subject=look.content.subject,
        )
        if standing.state is not ProposalState.APPROVED:
            return "; ".join(unmet(standing)) or f"it is {standing.state}"
        return _not_in_plan(orders, look.content)

    def _read_decisions(self) -> tuple[StoredProposal, ...]:
        stored = self._store.read_all().proposals
        return tuple(each for each in stored if each.proposal.kind is ProposalKind.DECISION)

    def _standing_of_decision(self, stored: StoredProposal, now_ms: int) -> Standing:
        # The core compares the hash with what it decided, so the content is not read.
        subject = VerifiedContent.of_decision(stored.proposal.hash).subject
        return standing_by(
            stored.proposal.statement,
            stored.record.statements,
            self._policy,
            cluster=self._cluster,
            now_ms=now_ms,
            subject=subject,
        )


def _remember(known: dict[str, T], key: str, value: T) -> T:
    """*value*, which *known* has from now on; the oldest are forgotten."""
    known.pop(key, None)
    known[key] = value
    while len(known) > _MAX_REMEMBERED:
        del known[next(iter(known))]
    return value


def _not_in_plan(orders: Orders, content: VerifiedContent) -> str:
    """Which of the moves that *orders* ask for are not in the plan; "" where all are."""
    if orders.step > len(content.moves):
        return f"it has no step {orders.step}"
    others = [each for each in orders.moves if each not in content.moves[orders.step - 1]]
    if not others:
        return ""
    first = others[0]
    more = f", and {len(others) - 1} more" if len(others) > 1 else ""
    return f"the move of {first.bundle} from {first.source} to {first.destination} is not in its step{more}"

"""What a sender of notifications looks at: the page's store, the proposals and the doctor.  Judges nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from controller.adapters.approvals.standing import standing_of
from controller.adapters.election.proposals import ProposalStore
from controller.adapters.outages import outages
from controller.doctor.checks import judge
from controller.doctor.finding import Finding
from controller.doctor.gather import gather
from controller.model.proposals import CONTROLLER
from controller.settings.trimtab_toml import Settings
from controller.web.store.queries import PageData
from controller.web.store.values import BreakerState, DecisionQuery, IssuedCommand, LatestState

#: What is older is not looked for.
LOOK_BACK_MS: Final = 6 * 3_600_000
#: Findings about this machine, which may be another one than that of the controllers.
_OF_THIS_MACHINE: Final = frozenset({"folder-not-writable", "folder-not-lockable"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalFact:
    """A plan or a decision that people approve."""

    id: str
    #: pending, approved, rejected, expired, applying, paused, done, failed or stopped.
    state: str
    author: str
    #: What it does, in a few words.
    title: str
    expires_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFacts:
    """What the log has of a cluster."""

    #: T of the newest decision; None: there is none.
    decided: int | None
    epoch: int
    #: As of the last interval; None: there is none.
    breaker: BreakerState | None
    #: Commands of plans that failed, and moves that were undone, the newest first.
    plan_failures: tuple[IssuedCommand, ...]
    undone_moves: tuple[IssuedCommand, ...]
    #: What strategies decided in mode approve and nobody has approved yet; None: nothing.
    proposed: ProposalFact | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """All that is looked at."""

    cluster: str
    now_ms: int
    period_ms: int
    #: None: it is still being loaded, or cannot be read.
    log: LogFacts | None = None
    #: Why the log cannot be read; "": it can, or is being loaded.
    unread: str = ""
    #: None: they cannot be read.
    proposals: tuple[ProposalFact, ...] | None = ()
    #: Errors that the doctor found; None: it was not asked now.
    doctor: tuple[Finding, ...] | None = None


def cluster_facts(
    settings: Settings,
    data: PageData,
    now_ms: int,
    *,
    proposals: tuple[ProposalFact, ...] | None = (),
    doctor: tuple[Finding, ...] | None = None,
) -> ClusterFacts:
    """The facts of the cluster in *settings* as *data* has them now, with *proposals* and what the *doctor* found."""
    progress = data.progress()
    errors = [f"{each.source}: {each.error}" for each in progress.sources if each.error and each.source != "controls"]
    loaded = progress.complete
    return ClusterFacts(
        cluster=settings.cluster.name,
        now_ms=now_ms,
        period_ms=settings.intervals.period_ms,
        log=_log_facts(data, now_ms) if loaded else None,
        unread="; ".join(errors),
        proposals=proposals,
        doctor=doctor,
    )


def _log_facts(data: PageData, now_ms: int) -> LogFacts:
    latest, rows = data.latest(), data.decisions(DecisionQuery(), limit=1).rows
    since_ms = max(0, now_ms - LOOK_BACK_MS)
    decided = [each.interval for each in rows] + ([] if latest is None else [latest.interval])
    return LogFacts(
        decided=max(decided, default=None),
        epoch=max((each.epoch for each in rows), default=0),
        breaker=None if latest is None else latest.breaker,
        plan_failures=data.plan_failures(since_ms),
        undone_moves=data.undone_moves(since_ms),
        proposed=None if latest is None else _proposed(latest),
    )


def _proposed(latest: LatestState) -> ProposalFact | None:
    decision = latest.proposed
    if decision is None:
        return None
    is_approved = decision.hash in {each.decision for each in latest.controls.approved}
    return ProposalFact(
        id=decision.hash,
        state="approved" if is_approved else "pending",
        author=CONTROLLER,
        title=decision.text,
        expires_at_ms=decision.expires_at_ms,
    )


def proposals_in(store: ProposalStore, settings: Settings, now_ms: int) -> tuple[ProposalFact, ...]:
    """The proposals in *store* with their states by the policy of *settings*.  TrimtabError where it does not answer.

    Signatures are verified as of the heads alone: that is enough to tell people, and nothing is allowed by it.
    """
    facts = []
    for stored in store.read_all().proposals:
        proposal = stored.proposal
        standing = standing_of(stored, settings.approvals, cluster=settings.cluster.name, now_ms=now_ms)
        facts.append(
            ProposalFact(
                id=proposal.hash,
                state=standing.state,
                author=proposal.author,
                title=proposal.title or proposal.kind,
                expires_at_ms=standing.expires_at_ms,
            )
        )
    return tuple(facts)


def doctor_errors(settings: Settings) -> tuple[Finding, ...]:
    """What `trimtab doctor` finds wrong, but for what is about this machine.  TrimtabError."""
    findings: Sequence[Finding] = judge(gather(settings, away=outages(settings)))
    return tuple(each for each in findings if each.severity == "error" and each.code not in _OF_THIS_MACHINE)

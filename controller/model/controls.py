"""Controls: what the operator and the age of the data allow.  An input of every decision, journalled with it."""

import math
from dataclasses import dataclass, field, replace
from typing import Final

from controller.model.proposals import Grant


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedMove:
    """One bundle that an operator's plan moves."""

    bundle: str
    #: The broker that must own it.
    source: str
    destination: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """One wave of a plan that ``trimtab apply`` handed to the controllers; without moves: a plan is being applied."""

    #: The plan's hash.
    plan: str
    #: Step and wave, from 1, and how many waves the step has.
    step: int
    wave: int
    waves: int
    moves: tuple[OrderedMove, ...] = ()
    #: T of the load that the moves were checked against, epoch ms: what was unloaded from then on is not again.
    checked_at: int
    #: No interval T after this obeys, epoch ms: where `trimtab apply` has ended, balancing goes on.
    expires_at_ms: int
    #: The process of `trimtab apply` that handed it over, and who started it.
    holder: str
    by: str
    #: Whether guardrails held back all of the moves that were handed over last: the shedder unloads then where a broker
    #: cannot wait.  None: an earlier release, which does not check again while a wave waits, has written them.
    held_back: bool | None = None

    def hold_at(self, interval: int) -> bool:
        """Whether the controllers obey in *interval*, T."""
        return interval <= self.expires_at_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """One person's pause.  Several can stand: commands are issued once all have ended."""

    by: str
    reason: str
    #: Epoch ms, wall clock.
    at_ms: int
    #: When it ends by itself, epoch ms, wall clock; 0: never.
    until_ms: int = 0

    def in_force_at(self, now_ms: int) -> bool:
        """Whether it has not ended by itself at *now_ms*."""
        return not self.until_ms or now_ms < self.until_ms

    def __str__(self) -> str:
        return f"{self.by}: {self.reason}" if self.reason else self.by


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionApproval:
    """That enough persons approved a decision of strategies."""

    #: Its hash.
    decision: str
    #: The persons.
    by: tuple[str, ...]
    #: When the last one did, epoch ms, wall clock.
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRejection:
    """That a person rejected a decision of strategies."""

    #: Its hash.
    decision: str
    by: str
    reason: str
    #: Epoch ms, wall clock.
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """The controls that an interval was decided with."""

    #: "active" moves load, "approve" moves what persons approve, "dry_run" issues commands that change nothing,
    #: "observe" issues none.
    mode: str
    paused: bool = False
    #: The interval is too old to act on; the memory is still updated.
    stale: bool = False
    #: When the interval is decided, epoch ms, wall clock; 0: in its own time, as in what is modelled.  Controls are
    #: equal where they allow the same, whenever that is.
    decided_at_ms: int = field(default=0, compare=False)
    #: Why an operator set the mode, or paused first if it is paused, who, and when (epoch ms, wall clock); "" and 0 if
    #: nobody did.
    reason: str = ""
    by: str = ""
    since_ms: int = 0
    #: Every pause that stands, the oldest first; empty if the settings alone pause.
    pauses: tuple[Pause, ...] = ()
    #: When an operator set the mode, and drained the broker that is drained for longest, epoch ms; 0: nobody did.
    mode_since_ms: int = 0
    drained_since_ms: int = 0
    #: Time of the last `trimtab resume`, epoch ms, wall clock; 0: never.  A later resume closes the breaker.
    resumed_ms: int = 0
    #: Why the maintenance windows forbid commands at this T; "" if they allow them.
    maintenance: str = ""
    #: Why the operator's controls could not be read; "" if they were.  No commands are issued until they are read.
    unknown: str = ""
    #: Brokers that get no bundles until `trimtab release`, sorted.
    drained: tuple[str, ...] = ()
    #: Bundles, and namespaces, that a person keeps where they are, sorted.
    excluded: tuple[str, ...] = ()
    #: The moves of a plan that is being applied.
    orders: Orders | None = None
    #: The decisions that are approved, and those that a person rejected.
    approved: tuple[DecisionApproval, ...] = ()
    rejected: tuple[DecisionRejection, ...] = ()
    #: What lies in the operator's controls and is not obeyed, since the policy demands approvals: a sentence each.
    not_approved: tuple[str, ...] = ()
    #: Under a policy, the newest change of each action that is in force, so that an older one is not obeyed again.
    #: Of the mode that, and the lowering after it, which has no statements.
    granted: tuple[Grant, ...] = ()

    @property
    def moves_load(self) -> bool:
        """Whether commands that are issued change the cluster."""
        return self.mode in MOVING_MODES

    def timeless(self) -> "Controls":
        """The same, of an interval that is decided in its own time, or that is not journalled."""
        return replace(self, decided_at_ms=0)

    def decided_at(self, interval: int) -> int:
        """When *interval*, T, is decided, epoch ms."""
        return self.decided_at_ms or interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One setting that an operator made."""

    value: str
    reason: str
    by: str
    #: Epoch ms, wall clock.
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlChange:
    """Something that an operator did, for the history of the controls."""

    #: Epoch ms, wall clock.
    at_ms: int
    by: str
    #: What somebody did, by its command: pause, resume, mode, stop-all, stop-plan, accept-loss, drain, release,
    #: exclude, include or apply; "restart" by its hook; or "refused".
    action: str
    #: What it changed.
    detail: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredRequest:
    """A request that changed something, by the key that its client gave it (Idempotency-Key)."""

    #: Hash of the key and of who sent it, and hash of what was asked for.
    key: str
    body: str
    #: Epoch ms.
    at_ms: int
    #: What the answer needs beside the request itself.
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """A broker that gets no bundles."""

    broker: str
    by: str
    #: Epoch ms.
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcludedName:
    """A bundle, or a namespace with all of its bundles, that is neither moved nor split."""

    name: str
    by: str
    reason: str
    #: Epoch ms.
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRestarts:
    """How far `trimtab apply --hook` is, so that another process can go on.

    Brokers of the step that are not drained any more once a broker is named have been released.
    """

    #: The plan's hash, and the step that is carried out, from 1.
    plan: str
    step: int
    #: The broker that the hook restarts, or restarted last, of this step; "": none yet.
    broker: str = ""
    #: When the process of that broker started that the hook has to replace, epoch ms.
    started_ms: int = 0
    #: Whether the hook has failed.  Else it is not known whether it has ended, and the broker may be starting.
    hook_failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorControls:
    """What operators set with `trimtab pause`, `resume`, `mode`, `apply` and `release`.

    It is stored, so it survives every restart.
    """

    #: One of MODES; None: that of the settings.
    mode: Choice | None = None
    #: The oldest first; some may have ended by themselves.
    pauses: tuple[Pause, ...] = ()
    #: Time of the last `trimtab resume`, epoch ms, wall clock; 0: never, so decisions.paused of the settings applies.
    resumed_ms: int = 0
    #: Time of the last `trimtab stop-all`, likewise: it ends what `trimtab apply` began before.
    stopped_ms: int = 0
    #: Time of the last `trimtab accept-loss`, likewise: entries that the journal lost before are not waited for.
    loss_accepted_ms: int = 0
    #: By name.
    drained: tuple[Drained, ...] = ()
    #: By name.
    excluded: tuple[ExcludedName, ...] = ()
    orders: Orders | None = None
    restarts: PlanRestarts | None = None
    #: Decisions in mode approve that somebody approved or rejected without a signature, the oldest first; they count
    #: where the settings demand none.
    approvals: tuple[DecisionApproval, ...] = ()
    rejections: tuple[DecisionRejection, ...] = ()
    #: Under a policy, approved changes that allow more, the oldest first, at most MAX_GRANTS.
    grants: tuple[Grant, ...] = ()
    #: What operators did, the oldest first, at most MAX_HISTORY.
    history: tuple[ControlChange, ...] = ()
    #: What the page refused them, the oldest first, at most MAX_REFUSED: a flood of these leaves the history alone.
    refused: tuple[ControlChange, ...] = ()
    #: Requests of clients that were carried out, so that one that is sent again is not; the oldest first, at most
    #: MAX_REQUESTS, for REQUEST_MS.
    requests: tuple[AnsweredRequest, ...] = ()

    def drains(self, broker: str) -> bool:
        """Whether *broker* is drained."""
        return any(each.broker == broker for each in self.drained)

    def mode_in_force(self, mode: str) -> str:
        """The mode that applies; *mode* is that of the settings."""
        return mode if self.mode is None else self.mode.value

    def pauses_at(self, now_ms: int) -> tuple[Pause, ...]:
        """The pauses that stand at *now_ms*, the oldest first."""
        return tuple(each for each in self.pauses if each.in_force_at(now_ms))

    def is_paused(self, now_ms: int, *, paused: bool) -> bool:
        """Whether commands are held back at *now_ms*; *paused* is decisions.paused, which a resume overrides."""
        return bool(self.pauses_at(now_ms)) or (paused and not self.resumed_ms)

    def with_pause(self, pause: Pause) -> "OperatorControls":
        """*pause* stands, too.  It replaces one of the same person for the same reason, and pauses that have ended."""
        others = [each for each in self.pauses_at(pause.at_ms) if (each.by, each.reason) != (pause.by, pause.reason)]
        if len(others) >= MAX_PAUSES:
            # A pause must always work, and the others still stand: the one that ends first gives way.
            others.remove(min(others, key=lambda each: (each.until_ms or math.inf, each.at_ms)))
        return replace(self, pauses=(*others, pause))

    def with_approval(self, approval: DecisionApproval) -> "OperatorControls":
        """The decision is approved, and no longer rejected; the oldest approvals are forgotten."""
        others = [each for each in self.approvals if each.decision != approval.decision]
        rejections = tuple(each for each in self.rejections if each.decision != approval.decision)
        return replace(self, approvals=(*others, approval)[-MAX_DECISIONS:], rejections=rejections)

    def with_rejection(self, rejection: DecisionRejection) -> "OperatorControls":
        """The decision is rejected, and no longer approved; the oldest rejections are forgotten."""
        others = [each for each in self.rejections if each.decision != rejection.decision]
        approvals = tuple(each for each in self.approvals if each.decision != rejection.decision)
        return replace(self, rejections=(*others, rejection)[-MAX_DECISIONS:], approvals=approvals)

    def with_grant(self, grant: Grant) -> "OperatorControls":
        """These, with *grant* among the approved changes; the oldest are forgotten."""
        others = [each for each in self.grants if each.request != grant.request]
        return replace(self, grants=(*others, grant)[-MAX_GRANTS:])

    def with_change(self, change: ControlChange) -> "OperatorControls":
        """These, with *change* in the history; the oldest changes are forgotten."""
        return replace(self, history=(*self.history, change)[-MAX_HISTORY:])

    def with_refused(self, attempt: ControlChange) -> "OperatorControls":
        """These, with *attempt* among what was refused; the same attempt again within a minute is left out."""
        recent = [each for each in self.refused if attempt.at_ms - each.at_ms < _SAME_ATTEMPT_MS]
        if any(replace(each, at_ms=attempt.at_ms) == attempt for each in recent):
            return self
        return replace(self, refused=(*self.refused, attempt)[-MAX_REFUSED:])

    def with_request(self, request: AnsweredRequest) -> "OperatorControls":
        """These, with *request* among those that were carried out."""
        return replace(self, requests=(*self.answered_at(request.at_ms), request)[-MAX_REQUESTS:])

    def answered_at(self, now_ms: int) -> tuple[AnsweredRequest, ...]:
        """The requests that count as carried out at *now_ms*."""
        return tuple(each for each in self.requests if now_ms - each.at_ms < REQUEST_MS)

    @property
    def events(self) -> tuple[ControlChange, ...]:
        """What operators did and what they were refused, the oldest first."""
        return tuple(sorted((*self.history, *self.refused), key=lambda each: each.at_ms))

    def as_people_set_them(self) -> "OperatorControls":
        """These without what changes by itself: the orders of a plan, which are renewed all the time, and records."""
        return replace(self, orders=None, restarts=None, refused=(), requests=())


#: All modes, from the one that does most.
MODES: Final = ("active", "approve", "dry_run", "observe")
#: Those whose commands change the cluster.
MOVING_MODES: Final = ("active", "approve")

MAX_PAUSES: Final = 20
#: Approvals, and rejections, of decisions; one decision waits at a time.
MAX_DECISIONS: Final = 20
MAX_DRAINED: Final = 1000
#: Each decision's entry in the journal has them.
MAX_EXCLUDED: Final = 100
MAX_HISTORY: Final = 100
MAX_REFUSED: Final = 20
MAX_REQUESTS: Final = 256
_SAME_ATTEMPT_MS: Final = 60_000
#: A request with a key that is older is another one.
REQUEST_MS: Final = 86_400_000
#: Each counts for a short time.
MAX_GRANTS: Final = 20

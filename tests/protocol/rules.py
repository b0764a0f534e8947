"""What a log may show: the rules of the protocol, event by event.

The model is checked against these rules in each of its states (``check``), and so is what really happened, in a
simulation or on a real site (``trace``).  Both use this code: a trace is judged by what the model was proved to keep.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

#: An executor began the command, and it was done.
GOOD: Final = frozenset({"done", "already_done"})
#: No executor has begun the command, and none ever will.
NEVER_BEGUN: Final = frozenset({"expired", "fenced", "skipped", "dry_run", "refused"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that the log, or a broker, shows.  A list of them is a trace; its order counts.

    kind, and what it uses:

    - ``epoch``: an epoch begins in the journal (epoch)
    - ``leads``: its leader, or ``trimtab stop-all``, has written that everywhere (epoch)
    - ``entry``: the journal has a decision (epoch, interval; outcome: "paused" if its controls say so)
    - ``handed``: a command belongs to a wave that ``trimtab apply`` hands over (command, plan, wave; epoch: the
      how-manieth run of it this is)
    - ``decided``: a command of that decision (epoch, command; plan and wave, if a plan asked for it)
    - ``marked``: a partition of the commands has an epoch (epoch, partition)
    - ``issued``: a partition of the commands has a command (epoch, partition, command)
    - ``looked``: an executor looked for newer epochs and for the time, and goes on (process, command)
    - ``begun``: an executor has stored that it begins (process, command)
    - ``sure``: it has looked at the time again after that, and goes on (process, command)
    - ``act``: a call that changes Pulsar was sent (process, command)
    - ``answered``: the log has a result (command, outcome: its status)
    - ``expired``: the time of a command is over (command)
    - ``paused``, ``resumed``: the controls say so from now on; ``stopped``: ``trimtab stop-all`` has returned
    - ``approved``, ``withdrawn``: a person approves a plan; or takes that back, or it expires (plan)
    - ``obeyed``: a leader begins a decision with the orders of a plan (plan)
    - ``void``: a decision that waits for approval in mode approve is void (plan); ``approved`` ones have a plan, too

    The simulation adds what no rule here asks for, and its own oracle does:

    - ``died``, ``started``, ``stood-still`` (process)
    - ``taken-over``: a partition of the commands has another writer; on a log that is not atomic (process, partition)
    - ``tick``: a tick lies in a partition (interval, partition; outcome: the topic)
    - ``caught-up``: an executor has read its partition of the commands to its end (process, partition)
    - ``effect``: the cluster has changed (command)
    - ``controls``: they were replaced (outcome); ``controls-read``, ``read-lost``: somebody could, or could
      not, read them (process)
    - ``asks``: the entry of an interval was decided in mode approve (interval); ``proposed``: it has a decision that
      waits (interval, content: its hash, outcome: its commands); ``decision-approved``: it is approved (content)
    - ``stopping-all``, ``all-stopped``: ``trimtab stop-all`` has begun, and has returned (epoch)
    - ``calm``: no more faults
    - ``orders``: what ``trimtab apply`` hands over (outcome: plan and holder; content: moves), "" where it is withdrawn
    - ``ordered``: a decision was made with the orders of a plan (interval, content: the plan); ``plan-approved``: it is
      approved (content: the plan, outcome: its moves, expires_at); ``forged``: somebody forges orders of it (content)
    - ``owned``: a bundle has another owner, or is there no more (content, outcome: the owner or "")
    - ``broker-died``, ``broker-back`` (content: the broker)
    - ``unanswered``: a call that changes the cluster was sent, and got no answer (command)
    - ``excluded``: what people have excluded, from now on (content: names)
    - ``commands``, ``commanded``: a person begins a command, and it has returned (content: what it does,
      interval: its number)
    - ``report-stands-still``, ``report-renewed``: of a broker's load report (content: the broker)
    - ``batch``: Spark's offsets of a batch are stored (epoch: its number, content: the offsets)
    """

    kind: str
    #: Epoch ms, by a clock that is right.
    at: int = 0
    #: "" where the log does not say.
    process: str = ""
    epoch: int = 0
    #: T, epoch ms.
    interval: int = 0
    partition: int = 0
    command: str = ""
    outcome: str = ""
    plan: str = ""
    wave: int = 0
    #: When a command expires, epoch ms.
    expires_at: int = 0
    #: What the command does, the detail of a result, and what else the simulation compares.
    content: str = ""


class Life(NamedTuple):
    """What is known of one command."""

    #: 0: it was not decided.
    epoch: int = 0
    issued: bool = False
    #: A newer epoch lay in its partition when it was issued.
    dead: bool = False
    looked: bool = False
    begun: bool = False
    sure: bool = False
    acts: int = 0
    expired: bool = False
    answer: str = ""
    plan: str = ""
    wave: int = 0


class Ledger(NamedTuple):
    """What a trace has shown so far."""

    lives: tuple[Life, ...]
    #: The newest epoch in the journal, the newest that is known everywhere, and that of each partition of the commands.
    epoch: int = 0
    leads: int = 0
    marks: tuple[int, ...] = ()
    interval: int = 0
    #: Of the last entry.
    paused_entry: bool = False
    #: How many decisions may still be made as if there was no pause; None: there is none.
    before_pause: int | None = None
    stopped: bool = False
    #: How many persons have to approve a plan, and how many have approved each.
    needed: int = 0
    approvals: tuple[tuple[str, int], ...] = ()
    #: The decisions that are void.
    void: tuple[str, ...] = ()
    #: How often a run of `trimtab apply` has taken over from another.
    turn: int = 0


class RuleError(Exception):
    """An event is against a rule."""


def step(ledger: Ledger, event: Event, at: int, observed: frozenset[str]) -> Ledger:
    """*ledger* after *event*, which is about the life number *at*, if about any.  RuleError where it is not allowed.

    *observed*: the kinds of events that this trace has; what it leaves out is not asked for.
    """
    rule = _OF_LIFE.get(event.kind)
    if rule is None:
        return _OF_ALL[event.kind](ledger, event) if event.kind in _OF_ALL else ledger
    life = rule(ledger, ledger.lives[at], event, observed)
    if event.kind == "decided" and event.plan:
        _of_plan(ledger, event)
    if event.kind == "handed":
        ledger = ledger._replace(turn=event.epoch)
    ledger = ledger._replace(lives=(*ledger.lives[:at], life, *ledger.lives[at + 1 :]))
    return _marked(ledger, event) if event.kind == "issued" else ledger


def unfinished(ledger: Ledger) -> list[int]:
    """The lives that are not over although all is quiet."""
    return [at for at, life in enumerate(ledger.lives) if life.epoch and not life.answer]


def _require(holds: object, why: str) -> None:
    if not holds:
        raise RuleError(why)


def _epoch(ledger: Ledger, event: Event) -> Ledger:
    _require(event.epoch > ledger.epoch, f"the journal has epoch {ledger.epoch} already")
    return ledger._replace(epoch=event.epoch)


def _leads(ledger: Ledger, event: Event) -> Ledger:
    _require(event.epoch <= ledger.epoch, "it is not in the journal")
    return ledger._replace(leads=max(event.epoch, ledger.leads))


def _entry(ledger: Ledger, event: Event) -> Ledger:
    _require(event.epoch == ledger.epoch, f"epoch {ledger.epoch} has begun in the journal")
    _require(event.interval > ledger.interval, f"interval {ledger.interval} is decided already")
    is_paused = event.outcome == "paused"
    if is_paused or ledger.before_pause is None:
        return ledger._replace(interval=event.interval, paused_entry=is_paused)
    _require(ledger.before_pause, "a decision since the pause was made as if there was none")
    return ledger._replace(interval=event.interval, paused_entry=False, before_pause=0)


def _mark(ledger: Ledger, event: Event) -> Ledger:
    _require(event.epoch <= ledger.epoch, "it is not in the journal")
    return _marked(ledger, event)


def _marked(ledger: Ledger, event: Event) -> Ledger:
    marks = list(ledger.marks) + [0] * (event.partition + 1 - len(ledger.marks))
    marks[event.partition] = max(marks[event.partition], event.epoch)
    return ledger._replace(marks=tuple(marks))


def _paused(ledger: Ledger, event: Event) -> Ledger:
    if event.kind == "resumed":
        return ledger._replace(before_pause=None, stopped=False)
    remaining = 1 if ledger.before_pause is None else ledger.before_pause
    return ledger._replace(before_pause=remaining, stopped=ledger.stopped or event.kind == "stopped")


def _approved(ledger: Ledger, event: Event) -> Ledger:
    found = dict(ledger.approvals)
    found[event.plan] = found.get(event.plan, 0) + (1 if event.kind == "approved" else -1)
    return ledger._replace(approvals=tuple(sorted(found.items())))


def _void(ledger: Ledger, event: Event) -> Ledger:
    return ledger._replace(void=tuple(sorted({*ledger.void, event.plan})))


def _obeyed(ledger: Ledger, event: Event) -> Ledger:
    _require(dict(ledger.approvals).get(event.plan, 0) >= ledger.needed, "too few persons have approved its plan")
    return ledger


def _decided(ledger: Ledger, life: Life, event: Event, _: frozenset[str]) -> Life:
    _require(not life.epoch, "it was decided before")
    _require(event.epoch == ledger.epoch, f"epoch {ledger.epoch} has begun in the journal")
    _require(not ledger.paused_entry, "the decision was made while paused")
    _require(not ledger.stopped, "`trimtab stop-all` has returned, and nobody has resumed")
    return life._replace(epoch=event.epoch, plan=event.plan, wave=event.wave)


def _of_plan(ledger: Ledger, event: Event) -> None:
    if event.plan.startswith("decision "):
        _require(dict(ledger.approvals).get(event.plan), "nobody has approved the decision")
        _require(event.plan not in ledger.void, "the decision is void")
    earlier = [each for each in ledger.lives if each.plan == event.plan and 0 < each.wave < event.wave]
    _require(all(each.answer in GOOD for each in earlier), "the wave before it is not done")


def _handed(ledger: Ledger, life: Life, event: Event, _: frozenset[str]) -> Life:
    _require(event.epoch >= ledger.turn, "another `trimtab apply` has taken over")
    return life if life.epoch else life._replace(plan=event.plan, wave=event.wave)


def _issued(ledger: Ledger, life: Life, event: Event, observed: frozenset[str]) -> Life:
    _require(life.epoch or "decided" not in observed, "nobody decided it")
    _require(not life.issued, "it was issued before")
    _require(life.epoch in (0, event.epoch), f"it was decided in epoch {life.epoch}")
    _require(event.epoch <= ledger.epoch, "its epoch is not in the journal")
    newest = ledger.marks[event.partition] if event.partition < len(ledger.marks) else 0
    return life._replace(issued=True, epoch=event.epoch, dead=event.epoch < newest)


def _looked(ledger: Ledger, life: Life, event: Event, _: frozenset[str]) -> Life:
    _require(life.issued, "it was not issued")
    _require(life.epoch >= ledger.leads, f"epoch {ledger.leads} has begun everywhere")
    _require(not life.expired, "its time is over")
    return life._replace(looked=True)


def _begun(ledger: Ledger, life: Life, event: Event, observed: frozenset[str]) -> Life:
    _require(life.issued, "it was not issued")
    _require(life.looked or "looked" not in observed, "nobody has looked whether it may be done")
    _require(not life.begun, "it was begun before")
    _require(not life.answer, f"it has the result {life.answer}")
    return life._replace(begun=True)


def _sure(ledger: Ledger, life: Life, event: Event, observed: frozenset[str]) -> Life:
    _require(life.begun or "begun" not in observed, "nobody has stored that it begins")
    _require(not life.expired, "its time is over")
    return life._replace(sure=True)


def _act(ledger: Ledger, life: Life, event: Event, observed: frozenset[str]) -> Life:
    _require(life.begun or "begun" not in observed, "nobody has stored that it begins")
    _require(life.sure or "sure" not in observed, "nobody has looked at the time again")
    _require(not life.acts, "it was done before")
    _require(life.answer not in NEVER_BEGUN, f"its result says that it was never begun: {life.answer}")
    return life._replace(acts=1)


def _answered(ledger: Ledger, life: Life, event: Event, observed: frozenset[str]) -> Life:
    _require(life.issued, "it was not issued")
    _require(not life.answer, f"it has the result {life.answer}")
    if event.outcome == "done":
        _require(life.acts or "act" not in observed, "nobody has done it")
    _require(not life.dead or event.outcome in NEVER_BEGUN, "a newer epoch lies before it in its partition")
    if event.outcome in NEVER_BEGUN:
        # Who has begun may find that the time is over, and do nothing.
        _require(not life.acts and (not life.begun or event.outcome == "expired"), "it was begun")
    return life._replace(answer=event.outcome)


def _expired(ledger: Ledger, life: Life, event: Event, observed: frozenset[str]) -> Life:
    return life._replace(expired=True)


_OF_ALL: Final[dict[str, Callable[[Ledger, Event], Ledger]]] = {
    "epoch": _epoch,
    "leads": _leads,
    "entry": _entry,
    "marked": _mark,
    "paused": _paused,
    "resumed": _paused,
    "stopped": _paused,
    "approved": _approved,
    "withdrawn": _approved,
    "obeyed": _obeyed,
    "void": _void,
}
_OF_LIFE: Final[dict[str, Callable[[Ledger, Life, Event, frozenset[str]], Life]]] = {
    "handed": _handed,
    "decided": _decided,
    "issued": _issued,
    "looked": _looked,
    "begun": _begun,
    "sure": _sure,
    "act": _act,
    "answered": _answered,
    "expired": _expired,
}
KINDS: Final = frozenset([*_OF_ALL, *_OF_LIFE])


def allowed(ledger: Ledger, event: Event, at: int, observed: frozenset[str]) -> Sequence[str]:
    """What the rules would allow instead of *event*, about the same command and with all else as it says."""
    found = []
    event = replace(event, epoch=event.epoch or (ledger.lives[at].epoch if event.command else 0) or ledger.epoch)
    for kind in ("decided", "issued", "begun", "act", "answered") if event.command else sorted(_OF_ALL):
        for outcome in ("done", "unknown", "fenced") if kind == "answered" else ("",):
            try:
                step(ledger, replace(event, kind=kind, outcome=outcome), at, observed)
            except RuleError:
                continue
            found.append(f"{kind} {outcome}".strip())
    return found

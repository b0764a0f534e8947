"""A model of the protocol: every state, and every step that a process, a person or a fault can make from it.

A state is a tuple of small tuples.  Processes have no names in it: flags in their own tuples say what belongs to whom,
and these tuples are sorted, so states that differ by an exchange of processes are one state.

A step is one effect that others can see, or one look at what others can change; what a process does by itself between
two of them is no step of its own.  A step has the events that the log, or a broker, would show (``rules``).
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple, TypeAlias, TypeVar

from tests.protocol.rules import GOOD, Event, Ledger, Life

#: What keeps the protocol safe, and where the code has it.  ``Bound.without`` leaves guards out.
GUARDS: Final = {
    "journal fence": "Who fences the journal ends its writer: `Log.fence`, `Fenced.append`.",
    "read behind the fence": "A leader reads the journal's end after it has fenced it: `LogJournal.open`.",
    "new epoch": "An epoch is above the election's and above the journal's: `Leadership.claim`.",
    "epoch before commands": "Each partition has an epoch before its commands: `LogJournal.begin_epoch`.",
    "controls of each decision": "The controls are read for each decision: `ControlsInForce.at`.",
    "commands fence": "Who takes the commands over ends their writer: `FollowedScope`.",
    "complete": "A leader issues what the last decision has not issued: `Fenced.complete`.",
    "complete what is missing": "It issues nothing again: `FollowedScope._missing`.",
    "look": "An executor looks for newer epochs right before an act: `Inbox.newest_epoch`.",
    "epoch stored": "The newest epoch is stored with the position: `Inbox.answer`.",
    "expiry": "An executor asks whether the command's time is over: `judge.refusal`.",
    "begin": "An executor stores that it begins, before the act: `Inbox.begin`.",
    "second look": "After that it asks for the time again, right before the act: `Executor._may_act`.",
    "begun is looked at": "What somebody has begun is not done again: `carry_out`.",
    "claim at begin": "Storing that fails where another executor has the partition: `PartitionClaim.store`.",
    "claim at finish": "So does answering: `PartitionClaim.finish`.",
    "answered is passed over": "A command that has a result is not done again: `AnsweredIds`.",
    "complete results": "An executor appends the results that the one before it stored: `FollowedClaim`.",
    "numbered results": "A result that is there is not appended again: `Once.append`.",
    "pause first": "`trimtab stop-all` pauses before it ends the leadership: `stop_all`.",
    "stop-all fences": "It fences the journal: `controls.fence`.",
    "settled wave": "A wave is handed over once all of the one before are done: `PlanRun._settle`.",
    "one holder": "One `trimtab apply` at a time hands waves over: `StepLease.hold`.",
    "approvals": "A leader obeys orders of approved plans alone, whoever wrote them: `Approvals.obeyed`.",
    "approvals of this hash": "They are of exactly this plan: `ApprovedProposals.why_not`.",
    "approvals of each decision": "They are counted for each decision, as they expire: `Approvals.obeyed`.",
    "signatures": "What no known key has signed is no approval: `flaw_of`.",
    "approval of a decision": "What strategies decide in mode approve is issued once approved: `approved_commands`.",
    "approval of this decision": "An approval is for one hash, and T is part of it: `ProposedDecision.hash`.",
    "void decisions": "A decision that is void is not in the memory any more: `ruled_on`.",
}
#: The model keeps its rules without it, too: whoever has lost the election finds the journal fenced.
NOT_NEEDED: Final = "election"
OF_PLANS: Final = frozenset([*GUARDS][-9:-3])
OF_DECISIONS: Final = frozenset([*GUARDS][-3:])


class Bound(NamedTuple):
    """What is searched."""

    #: Entry and commands appear one after the other; else together.
    followed: bool = False
    #: The commands of each decision, or of each wave; and the partition of each command.
    entries: tuple[tuple[int, ...], ...] = ((0, 1), (2,))
    partition: tuple[int, ...] = (0, 0, 0)
    controllers: int = 2
    executors: int = 2
    #: How often controllers may crash or lose their session unawares, and executors crash or be replaced unawares.
    leader_faults: int = 1
    executor_faults: int = 1
    #: How often a partition comes again from its beginning, a command's time ends, and `trimtab stop-all` runs.
    repeats: int = 0
    expiries: int = 0
    stops: int = 0
    #: Approvals that a plan needs, whose waves the entries are; None: no plan.
    needed: int | None = None
    #: What somebody without a key may forge: orders, and approvals.
    forgeries: int = 1
    #: Mode approve: what is decided waits for a person.
    asks: bool = False
    #: Guards that are left out.
    without: frozenset[str] = frozenset()


#: What a leader is about to do: an action and its argument.
Action: TypeAlias = tuple[str, int]
#: A plan and its wave; ("", 0): none.
Orders: TypeAlias = tuple[str, int]
_NO_ORDERS: Final = ("", 0)


class Leader(NamedTuple):
    """A controller; also `trimtab stop-all`, which fences as controllers do."""

    #: Empty: it does nothing, or leads if it has an epoch.
    todo: tuple[Action, ...] = ()
    epoch: int = 0
    #: Whether the first place in the election, the journal, and the commands are its own (a bit a partition).  Of
    #: `trimtab stop-all`: whether it tries for the second time.
    elected: bool = False
    holds: bool = False
    owns: int = 0
    #: How many entries it knows, and the controls that it has read.
    known: int = 0
    paused: bool = False
    orders: Orders = _NO_ORDERS
    #: The plan whose approvals it remembers; only where the guard is left out.
    trusted: str = ""


class Work(NamedTuple):
    """An executor's view of one partition.  Sets of commands are bits."""

    #: "": idle; else "none", "looked", "begun", "sure", "answer", "publish" or "complete".
    phase: str = "none"
    #: What it read when it claimed the partition, and since.
    epoch: int = 0
    begun: int = 0
    answered: int = 0
    at: int = 0
    command: int = 0
    status: str = ""
    number: int = 0


class Cell(NamedTuple):
    """What is stored with a partition."""

    epoch: int = 0
    begun: int = 0
    done: int = 0
    #: Followed: what is to be appended, and its number; and the last number that was appended.
    command: int = 0
    status: str = ""
    number: int = 0
    appended: int = 0


class Executor(NamedTuple):
    """Which partitions are its own, by the log (a bit each), and its view of each."""

    owns: int
    work: tuple[Work, ...]


class Apply(NamedTuple):
    """A run of `trimtab apply`: "idle", "checked" or "handed over"."""

    phase: str = "idle"
    orders: Orders = _NO_ORDERS
    #: The how-manieth it was to take plans over; 0: it has not done so yet.
    turn: int = 0


class State(NamedTuple):
    """One state of everything."""

    ledger: Ledger
    leaders: tuple[Leader, ...]
    operator: Leader
    executors: tuple[Executor, ...]
    #: The commands of each decision in the journal.
    journal: tuple[tuple[int, ...], ...]
    #: Each partition of the commands: a command, or an epoch as its negative.
    topic: tuple[tuple[int, ...], ...]
    cells: tuple[Cell, ...]
    #: The election's newest epoch.
    claimed: int = 0
    #: The controls, and the plan in the file.
    paused: bool = False
    orders: Orders = _NO_ORDERS
    turn: int = 0
    plan: str = "A"
    applies: tuple[Apply, ...] = ()
    #: What may still go wrong, or be done by persons.
    leader_faults: int = 0
    executor_faults: int = 0
    repeats: int = 0
    expiries: int = 0
    stops: int = 0
    withdrawals: int = 1
    #: Of somebody who may write everything, but has no key: approvals, and how much may still be forged.
    forged_approvals: tuple[str, ...] = ()
    forgeries: int = 0
    #: Mode approve, of each entry: the interval of the decision that waits after it; 0: none does.
    waits: tuple[int, ...] = ()


#: What happens, the state after it, and what it shows: events, each with the command that it is about.
Effects: TypeAlias = tuple[tuple[int, Event], ...]
Process = TypeVar("Process", Leader, Executor, Apply)
Step: TypeAlias = tuple[str, State, Effects]
_OPERATOR: Final = -1
#: How often a plan is taken over.
_MOST_TURNS: Final = 2


@cache
def _event(kind: str, epoch: int = 0, partition: int = 0, interval: int = 0, outcome: str = "") -> Event:
    return Event(kind=kind, epoch=epoch, partition=partition, interval=interval, outcome=outcome)


@cache
def _of_plan(kind: str, epoch: int, orders: Orders) -> Event:
    return Event(kind=kind, epoch=epoch, plan=orders[0], wave=orders[1])


def first_state(bound: Bound) -> State:
    """Nothing has happened yet."""
    parts = max(bound.partition) + 1
    return State(
        ledger=Ledger(lives=(Life(),) * len(bound.partition), marks=(0,) * parts, needed=bound.needed or 0),
        leaders=(Leader(),) * bound.controllers,
        operator=Leader(),
        executors=(Executor(0, (Work(),) * parts),) * bound.executors,
        journal=(),
        topic=((),) * parts,
        cells=(Cell(),) * parts,
        applies=(Apply(), Apply()) if bound.needed is not None else (),
        leader_faults=bound.leader_faults,
        executor_faults=bound.executor_faults,
        repeats=bound.repeats,
        expiries=bound.expiries,
        stops=bound.stops,
        forgeries=bound.forgeries if bound.needed is not None else 0,
    )


def canonical(state: State) -> State:
    """The one of all states that differ from *state* only by who is who, or by what nobody asks for any more."""
    ledger = state.ledger
    # Who has begun, and lost its partition since, may still look again and act.
    if any(life.looked and life.answer and (life.acts or not life.begun) for life in ledger.lives):
        lives = tuple(
            life._replace(looked=False, sure=False, expired=False)
            if life.answer and (life.acts or not life.begun)
            else life
            for life in ledger.lives
        )
        ledger = ledger._replace(lives=lives)
    return state._replace(
        ledger=ledger,
        leaders=_sorted(state.leaders),
        executors=_sorted(state.executors),
        applies=_sorted(state.applies),
    )


def _sorted(processes: tuple[Process, ...]) -> tuple[Process, ...]:
    return processes if len(processes) < 2 or processes[0] <= processes[-1] else tuple(sorted(processes))


def is_quiet(state: State, bound: Bound) -> bool:
    """Whether all is decided that is to be, all that is decided is answered, and nobody is in the midst of anything."""
    is_decided = len(state.journal) == len(bound.entries) or bound.needed is not None or bound.asks
    return (
        is_decided
        and all(life.answer for life in state.ledger.lives if life.epoch)
        and not any(each.todo for each in (*state.leaders, state.operator))
        and all(work.phase in ("", "none") for each in state.executors for work in each.work)
    )


def steps(state: State, bound: Bound) -> Iterator[Step]:
    """Every step from *state*."""
    for at, leader in enumerate(state.leaders):
        if not at or leader != state.leaders[at - 1]:
            yield from _of_leader(state, bound, at)
    yield from _of_operator(state, bound)
    for at, executor in enumerate(state.executors):
        if not at or executor != state.executors[at - 1]:
            yield from _of_executor(state, bound, at)
    yield from _of_partitions(state)
    if bound.needed is not None:
        yield from _of_plans(state, bound)
    waits = state.waits[-1] if state.waits else 0
    if waits and not dict(state.ledger.approvals).get(_decision(waits)):
        event = _of_plan("approved", 0, (_decision(waits), 0))
        yield f"a person approves the decision of interval {waits}", state, ((0, event),)


# Leaders


def _of_leader(state: State, bound: Bound, at: int) -> Iterator[Step]:
    me = state.leaders[at]
    who = _name(at, me)
    if not me.todo and not me.epoch:
        if me.elected or not any(each.elected for each in state.leaders):
            opens: tuple[Action, ...] = (("fence", 0), ("claim", 0), ("begin", 0))
            if "read behind the fence" in bound.without:
                opens = (("read", 0), *opens)
            yield f"{who} is elected", _with(state, at, me._replace(elected=True, todo=opens)), ()
        return
    if state.leader_faults:
        fewer = state._replace(leader_faults=state.leader_faults - 1)
        yield f"{who} crashes", _with(fewer, at, Leader()), ()
        if me.elected:
            yield f"{who} loses its session and does not know", _with(fewer, at, me._replace(elected=False)), ()
    if me.todo:
        yield from _perform(state, bound, at)
    elif bound.needed is not None or me.known < len(bound.entries) or (bound.asks and me.known < _most(bound)):
        yield _read_controls(state, bound, at)


def _of_operator(state: State, bound: Bound) -> Iterator[Step]:
    if state.operator.todo:
        yield from _perform(state, bound, _OPERATOR)
    elif state.stops:
        todo: tuple[Action, ...] = (("pause", 0), *_ENDS_LEADERSHIP, ("stopped", 0))
        if "pause first" in bound.without:
            todo = (*_ENDS_LEADERSHIP, ("pause", 0), ("stopped", 0))
        yield "stop-all begins", state._replace(stops=state.stops - 1, operator=Leader(todo=todo)), ()


#: What `trimtab stop-all` does to the leadership: epochs first in the journal, then in the election.
_ENDS_LEADERSHIP: Final[tuple[Action, ...]] = (("fence", 0), ("number", 0), ("begin", 0), ("raise", 0))


def _name(at: int, me: Leader) -> str:
    if at == _OPERATOR:
        return "stop-all"
    return f"the controller of epoch {me.epoch}" if me.epoch else "a new controller"


def _with(state: State, at: int, leader: Leader) -> State:
    if at == _OPERATOR:
        return state._replace(operator=leader)
    return state._replace(leaders=(*state.leaders[:at], leader, *state.leaders[at + 1 :]))


def _perform(state: State, bound: Bound, at: int) -> Iterator[Step]:
    me = state.operator if at == _OPERATOR else state.leaders[at]
    (kind, argument), rest = me.todo[0], me.todo[1:]
    yield from _ACTIONS[kind](state, bound, at, me._replace(todo=rest), argument)


def _gives_up(state: State, at: int, me: Leader, why: str) -> Step:
    """A leader finds out that another one leads.  `trimtab stop-all` tries once more, and then fails."""
    if at != _OPERATOR:
        after = Leader(elected=me.elected)
    elif me.elected:
        after = Leader()
    else:
        remaining = me.todo[me.todo.index(("raise", 0)) :]
        after = Leader(todo=(*_ENDS_LEADERSHIP[:-1], *remaining), elected=True)
    return f"{_name(at, me)} {why}", _with(state, at, after), ()


def _read_controls(state: State, bound: Bound, at: int) -> Step:
    me = state.leaders[at]
    if not me.elected and NOT_NEEDED not in bound.without:
        return _gives_up(state, at, me, "finds that it does not lead")
    read = me._replace(todo=(("append", 0),), paused=state.paused, orders=state.orders)
    if bound.asks:
        read = read._replace(orders=_approved_decision(state, bound, me))
        return f"{_name(at, me)} reads the controls", _with(state, at, read), ()
    if "controls of each decision" in bound.without and me.known:
        read = read._replace(paused=me.paused, orders=me.orders)
    if read.orders != _NO_ORDERS and not _is_obeyed(state, bound, read):
        return (
            f"{_name(at, me)} refuses orders that are not approved",
            _with(state, at, read._replace(orders=_NO_ORDERS)),
            (),
        )
    effects: Effects = ()
    if read.orders != _NO_ORDERS:
        effects = ((0, _of_plan("obeyed", 0, read.orders)),)
        if "approvals of each decision" in bound.without:
            read = read._replace(trusted=read.orders[0])
    return f"{_name(at, me)} reads the controls", _with(state, at, read), effects


def _read(state: State, _: Bound, at: int, me: Leader, __: int) -> Iterator[Step]:
    after = _with(state, at, me._replace(known=len(state.journal)))
    yield f"{_name(at, me)} reads the journal before it fences it", after, ()


def _fence(state: State, bound: Bound, at: int, me: Leader, _: int) -> Iterator[Step]:
    if "read behind the fence" not in bound.without:
        me = me._replace(known=len(state.journal))
    if bound.followed:
        owns = tuple(("own", part) for part in range(len(state.topic)))
        me = me._replace(todo=(*owns, *([] if at == _OPERATOR else [("complete", 0)]), *me.todo))
    if at == _OPERATOR and "stop-all fences" in bound.without:
        yield "stop-all does not fence", _with(state, at, me), ()
        return
    state = _with(state, at, me)
    leaders = tuple(each._replace(holds=number == at) for number, each in enumerate(state.leaders))
    state = state._replace(leaders=leaders, operator=state.operator._replace(holds=at == _OPERATOR))
    yield f"{_name(at, me)} fences the journal", state, ()


def _own(state: State, _: Bound, at: int, me: Leader, part: int) -> Iterator[Step]:
    bit = 1 << part
    state = _with(state, at, me)
    leaders = tuple(
        each._replace(owns=each.owns & ~bit | bit * (number == at)) for number, each in enumerate(state.leaders)
    )
    operator = state.operator._replace(owns=state.operator.owns & ~bit | bit * (at == _OPERATOR))
    yield f"{_name(at, me)} takes partition {part} over", state._replace(leaders=leaders, operator=operator), ()


def _complete(state: State, bound: Bound, at: int, me: Leader, _: int) -> Iterator[Step]:
    there = {record for part in state.topic for record in part}
    last = state.journal[-1] if state.journal else ()
    missing = [each for each in last if each not in there or "complete what is missing" in bound.without]
    if "complete" in bound.without:
        missing = []
    after = me._replace(todo=(*(("command", each) for each in missing), *me.todo))
    yield f"{_name(at, me)} looks which commands are missing", _with(state, at, after), ()


def _claim(state: State, bound: Bound, at: int, me: Leader, _: int) -> Iterator[Step]:
    if not me.elected and NOT_NEEDED not in bound.without:
        yield _gives_up(state, at, me, "finds that it does not lead")
        return
    journal = 0 if "new epoch" in bound.without else state.ledger.epoch
    epoch = max(state.claimed, journal) + 1
    after = _with(state, at, me._replace(epoch=epoch))
    yield f"a new controller claims epoch {epoch}", after._replace(claimed=epoch), ()


def _number(state: State, _: Bound, at: int, me: Leader, __: int) -> Iterator[Step]:
    epoch = max(state.claimed, state.ledger.epoch) + 1
    yield f"stop-all chooses epoch {epoch}", _with(state, at, me._replace(epoch=epoch)), ()


def _begin_epoch(state: State, bound: Bound, at: int, me: Leader, _: int) -> Iterator[Step]:
    if (
        not me.holds
        and "journal fence" not in bound.without
        and not (at == _OPERATOR and "stop-all fences" in bound.without)
    ):
        yield _gives_up(state, at, me, "finds the journal fenced")
        return
    effects: list[tuple[int, Event]] = [(0, _event("epoch", me.epoch))]
    leads = ("leads", 0)
    parts = [] if "epoch before commands" in bound.without else range(len(state.topic))
    if bound.followed:
        after = _with(state, at, me._replace(todo=(*(("mark", part) for part in parts), leads, *me.todo)))
    else:
        after = _with(state, at, me._replace(todo=(leads, *me.todo)))
        for part in parts:
            after = _stored(after, part, -me.epoch)
            effects.append((0, _event("marked", me.epoch, part)))
    yield f"{_name(at, me)} begins it in the journal", after, tuple(effects)


def _stored(state: State, part: int, record: int) -> State:
    topic = state.topic
    return state._replace(topic=(*topic[:part], (*topic[part], record), *topic[part + 1 :]))


def _mark(state: State, bound: Bound, at: int, me: Leader, part: int) -> Iterator[Step]:
    if not me.owns >> part & 1 and "commands fence" not in bound.without:
        yield _gives_up(state, at, me, f"finds partition {part} fenced")
        return
    after = _stored(_with(state, at, me), part, -me.epoch)
    yield f"{_name(at, me)} marks partition {part}", after, ((0, _event("marked", me.epoch, part)),)


def _leads(state: State, _: Bound, at: int, me: Leader, __: int) -> Iterator[Step]:
    after = _with(state, at, me)
    yield f"{_name(at, me)} has begun it everywhere", after, ((0, _event("leads", me.epoch)),)


def _append(state: State, bound: Bound, at: int, me: Leader, _: int) -> Iterator[Step]:
    if not me.holds and "journal fence" not in bound.without:
        yield _gives_up(state, at, me, "finds the journal fenced")
        return
    if bound.asks:
        yield from _append_asked(state, bound, at, me)
        return
    chosen = _chosen(state, bound, me)
    orders, was_paused = me.orders, me.paused
    if "controls of each decision" not in bound.without:
        me = me._replace(paused=False, orders=_NO_ORDERS)
    for commands in chosen:
        interval = me.known + 1
        after, effects = _with_commands(state, bound, at, me, commands, orders)
        entry = _event("entry", me.epoch, 0, interval, "paused" if was_paused else "")
        yield f"{_name(at, me)} decides {interval}, with commands {commands}", after, ((0, entry), *effects)
    if bound.needed is not None:  # it has nothing to do
        yield f"{_name(at, me)} decides nothing", _with(state, at, me), ()


def _with_commands(
    state: State, bound: Bound, at: int, me: Leader, commands: tuple[int, ...], orders: Orders
) -> tuple[State, Effects]:
    """*commands* are in the journal, and in their partitions; on a followed log *me* appends them there after that."""
    decided: Effects = tuple((each, _of_plan("decided", me.epoch, orders)) for each in commands)
    me = me._replace(known=me.known + 1)
    state = state._replace(journal=(*state.journal, commands))
    if bound.followed:
        return _with(state, at, me._replace(todo=tuple(("command", each) for each in commands))), decided
    state = _with(state, at, me)
    for each in commands:
        state = _stored(state, bound.partition[each], each)
    return state, (*decided, *((each, _event("issued", me.epoch, bound.partition[each])) for each in commands))


def _decision(interval: int) -> str:
    """How the decision of *interval* is named."""
    return f"decision {interval}"


def _most(bound: Bound) -> int:
    """The entries of mode approve: each decision is proposed, and becomes void or is issued."""
    return 2 * len(bound.entries) + 1


def _approved_decision(state: State, bound: Bound, me: Leader) -> Orders:
    """The decision that waits by what *me* knows, if a person has approved it; else no orders."""
    waits = state.waits[me.known - 1] if me.known else 0
    votes = dict(state.ledger.approvals)
    counted = sum(votes.values()) if "approval of this decision" in bound.without else votes.get(_decision(waits), 0)
    is_approved = waits and (counted or "approval of a decision" in bound.without)
    return (_decision(waits), 0) if is_approved else _NO_ORDERS


def _append_asked(state: State, bound: Bound, at: int, me: Leader) -> Iterator[Step]:
    """A decision in mode approve: it proposes, issues what is approved, or finds that what waits is void."""
    interval, waits, orders = me.known + 1, state.waits[me.known - 1] if me.known else 0, me.orders
    issued = sum(bool(each) for each in state.journal[: me.known])
    choices = list[tuple[str, tuple[int, ...], int, str]]()
    if not me.paused and waits and orders != _NO_ORDERS:
        choices.append(("issues what is approved", bound.entries[issued], 0, ""))
    if waits:
        after_void = waits if "void decisions" in bound.without else 0
        choices.append(("finds void what waits", (), after_void, _decision(waits)))
    elif not me.paused and issued < len(bound.entries):
        choices.append(("proposes", (), interval, ""))
    me = me._replace(paused=False, orders=_NO_ORDERS)
    for what, commands, then, void in choices:
        after, effects = _with_commands(state, bound, at, me, commands, orders)
        after = after._replace(waits=(*state.waits, then))
        is_void: Effects = ((0, _of_plan("void", 0, (void, 0))),) if void else ()
        entry = _event("entry", me.epoch, 0, interval)
        yield f"{_name(at, me)} {what} in interval {interval}", after, ((0, entry), *is_void, *effects)
    yield f"{_name(at, me)} decides nothing", _with(state, at, me), ()


def _chosen(state: State, bound: Bound, me: Leader) -> Sequence[tuple[int, ...]]:
    """What a decision may have: of a plan, what is left of the wave, or only its first move."""
    if bound.needed is None:
        return [() if me.paused else bound.entries[me.known]]
    if me.paused or me.orders == _NO_ORDERS:
        return []
    remaining = tuple(each for each in bound.entries[me.orders[1] - 1] if not state.ledger.lives[each].epoch)
    return [remaining[:1], remaining] if len(remaining) > 1 else [remaining][: len(remaining)]


def _command(state: State, bound: Bound, at: int, me: Leader, command: int) -> Iterator[Step]:
    part = bound.partition[command]
    if not me.owns >> part & 1 and "commands fence" not in bound.without:
        yield _gives_up(state, at, me, f"finds partition {part} fenced")
        return
    after = _stored(_with(state, at, me), part, command)
    epoch = state.ledger.lives[command].epoch
    yield f"{_name(at, me)} issues command {command}", after, ((command, _event("issued", epoch, part)),)


def _pause(state: State, _: Bound, at: int, me: Leader, __: int) -> Iterator[Step]:
    after = _with(state, at, me)._replace(paused=True, orders=_NO_ORDERS, turn=state.turn + 1)
    yield "stop-all pauses", after, ((0, _event("paused")),)


def _raise(state: State, _: Bound, at: int, me: Leader, __: int) -> Iterator[Step]:
    after = _with(state, at, me)
    yield "stop-all raises the election's epoch", after._replace(claimed=max(me.epoch, state.claimed)), ()


def _stopped(state: State, _: Bound, at: int, __: Leader, ___: int) -> Iterator[Step]:
    yield "stop-all returns", _with(state, at, Leader()), ((0, _event("stopped")),)


_ACTIONS: Final[dict[str, Callable[[State, Bound, int, Leader, int], Iterator[Step]]]] = {
    "read": _read,
    "fence": _fence,
    "own": _own,
    "complete": _complete,
    "claim": _claim,
    "number": _number,
    "begin": _begin_epoch,
    "mark": _mark,
    "leads": _leads,
    "append": _append,
    "command": _command,
    "pause": _pause,
    "raise": _raise,
    "stopped": _stopped,
}


# Executors


def _of_executor(state: State, bound: Bound, at: int) -> Iterator[Step]:
    me = state.executors[at]
    if state.executor_faults and (me.owns or any(work.phase != "none" for work in me.work)):
        after = _doing(state, at, Executor(0, (Work(),) * len(me.work)))
        yield "an executor crashes", after._replace(executor_faults=state.executor_faults - 1), ()
    for part, work in enumerate(me.work):
        if work.phase == "none":
            if not any(each.owns >> part & 1 for each in state.executors):
                yield _claim_partition(state, bound, at, part)
        else:
            yield from _PHASES[work.phase](state, bound, at, part, work)


def _doing(state: State, at: int, executor: Executor) -> State:
    return state._replace(executors=(*state.executors[:at], executor, *state.executors[at + 1 :]))


def _working(state: State, at: int, part: int, work: Work) -> State:
    me = state.executors[at]
    return _doing(state, at, me._replace(work=(*me.work[:part], work, *me.work[part + 1 :])))


def _with_cell(state: State, part: int, cell: Cell) -> State:
    return state._replace(cells=(*state.cells[:part], cell, *state.cells[part + 1 :]))


def _expel(state: State, at: int, part: int) -> State:
    me = state.executors[at]
    return _doing(state, at, me._replace(owns=me.owns & ~(1 << part)))


def _claim_partition(state: State, bound: Bound, at: int, part: int) -> Step:
    cell, me = state.cells[part], state.executors[at]
    work = Work(
        phase="complete" if cell.status and "complete results" not in bound.without else "",
        epoch=cell.epoch,
        begun=cell.begun,
        answered=sum(1 << each for each, life in enumerate(state.ledger.lives) if life.answer),
        at=cell.done,
    )
    if work.phase:
        work = work._replace(command=cell.command, status=cell.status, number=cell.number)
    state = _working(_doing(state, at, me._replace(owns=me.owns | 1 << part)), at, part, work)
    return f"an executor claims partition {part}", state, ()


def _idle(state: State, bound: Bound, at: int, part: int, work: Work) -> Iterator[Step]:
    if work.at >= len(state.topic[part]):
        return
    record = state.topic[part][work.at]
    if record < 0:
        while work.at < len(state.topic[part]) and (record := state.topic[part][work.at]) < 0:
            work = work._replace(epoch=max(work.epoch, -record), at=work.at + 1)
        yield _finished(state, bound, at, part, work, f"an executor reads up to epoch {work.epoch}", ())
    elif work.answered >> record & 1 and "answered is passed over" not in bound.without:
        work = work._replace(at=work.at + 1)
        yield _finished(state, bound, at, part, work, f"an executor passes command {record} over", ())
    else:
        yield _look(state, bound, at, part, work._replace(command=record))


def _look(state: State, bound: Bound, at: int, part: int, work: Work) -> Step:
    """It takes the command, and looks for newer epochs."""
    life, ahead = state.ledger.lives[work.command], state.topic[part][work.at :]
    newest = max(work.epoch, life.epoch, *(-each for each in ahead if each < 0 and "look" not in bound.without), 0)
    work = work._replace(epoch=newest)
    if work.begun >> work.command & 1 and "begun is looked at" not in bound.without:
        status = "already_done" if life.acts else "unknown"
    elif newest > life.epoch:
        status = "fenced"
    elif life.expired and "expiry" not in bound.without:
        status = "expired"
    else:
        after = _working(state, at, part, work._replace(phase="looked"))
        return f"an executor takes command {work.command}", after, ((work.command, _event("looked")),)
    after = _working(state, at, part, work._replace(phase="answer", status=status))
    return f"an executor finds command {work.command} {status}", after, ()


def _looked(state: State, bound: Bound, at: int, part: int, work: Work) -> Iterator[Step]:
    what = f"an executor begins command {work.command}"
    effects: Effects = ((work.command, _event("begun")),)
    after = _working(state, at, part, work._replace(phase="begun"))
    if "begin" in bound.without:
        yield what, after, effects
    elif state.executors[at].owns >> part & 1 or "claim at begin" in bound.without:
        cell = state.cells[part]
        yield what, _with_cell(after, part, cell._replace(begun=cell.begun | 1 << work.command)), effects
    else:
        yield f"an executor finds partition {part} lost", _working(state, at, part, Work()), ()


def _begun(state: State, bound: Bound, at: int, part: int, work: Work) -> Iterator[Step]:
    """It may have taken long to store that, so it looks at the time again."""
    if state.ledger.lives[work.command].expired and "second look" not in bound.without:
        after = _working(state, at, part, work._replace(phase="answer", status="expired"))
        yield f"an executor finds command {work.command} expired", after, ()
        return
    after = _working(state, at, part, work._replace(phase="sure"))
    yield f"an executor looks at the time of command {work.command}", after, ((work.command, _event("sure")),)


def _sure(state: State, _: Bound, at: int, part: int, work: Work) -> Iterator[Step]:
    after = _working(state, at, part, work._replace(phase="answer", status="done"))
    yield f"an executor does command {work.command}", after, ((work.command, _event("act")),)


def _answer(state: State, bound: Bound, at: int, part: int, work: Work) -> Iterator[Step]:
    effects: Effects = ((work.command, _event("answered", outcome=work.status)),)
    done = work._replace(at=work.at + 1, answered=work.answered | 1 << work.command)
    yield _finished(state, bound, at, part, done, f"an executor answers command {work.command}: {work.status}", effects)


def _finished(state: State, bound: Bound, at: int, part: int, work: Work, what: str, effects: Effects) -> Step:
    """The position, and the result if there is one, are stored."""
    if not state.executors[at].owns >> part & 1 and "claim at finish" not in bound.without:
        return f"an executor finds partition {part} lost", _working(state, at, part, Work()), ()
    cell = state.cells[part]
    epoch = 0 if "epoch stored" in bound.without else work.epoch
    cell = cell._replace(
        epoch=epoch, done=work.at, command=0, status="", number=cell.number + bound.followed * bool(effects)
    )
    after = work._replace(phase="", status="", command=0, number=0)
    if effects:
        cell = cell._replace(begun=cell.begun & ~(1 << work.command))
        after = after._replace(begun=after.begun & ~(1 << work.command))
    if bound.followed and effects:
        cell = cell._replace(command=work.command, status=work.status)
        after = after._replace(phase="publish", command=work.command, status=work.status, number=cell.number)
        what, effects = f"{what} (stored)", ()
    return what, _working(_with_cell(state, part, cell), at, part, after), effects


def _publish(state: State, bound: Bound, at: int, part: int, work: Work) -> Iterator[Step]:
    """Followed: it appends a result that is stored, its own or that of the executor before it."""
    cell = state.cells[part]
    after = _working(
        state,
        at,
        part,
        work._replace(phase="", command=0, status="", number=0, answered=work.answered | 1 << work.command),
    )
    if work.number <= cell.appended and "numbered results" not in bound.without:
        yield f"the log drops a result of command {work.command} that it has", after, ()
        return
    after = _with_cell(after, part, cell._replace(appended=max(cell.appended, work.number)))
    effects: Effects = ((work.command, _event("answered", outcome=work.status)),)
    yield f"an executor appends the result of command {work.command}: {work.status}", after, effects


_PHASES: Final[dict[str, Callable[[State, Bound, int, int, Work], Iterator[Step]]]] = {
    "": _idle,
    "looked": _looked,
    "begun": _begun,
    "sure": _sure,
    "answer": _answer,
    "publish": _publish,
    "complete": _publish,
}


# Time, the group of the executors, and persons


def _of_partitions(state: State) -> Iterator[Step]:
    for at, executor in enumerate(state.executors):
        for part in range(len(state.topic)):
            if state.executor_faults and executor.owns >> part & 1:
                fewer = state._replace(executor_faults=state.executor_faults - 1)
                yield f"the group takes partition {part} from an executor", _expel(fewer, at, part), ()
    for part, cell in enumerate(state.cells):
        if state.repeats and cell.done and not any(each.owns >> part & 1 for each in state.executors):
            again = _with_cell(state, part, cell._replace(done=0))
            yield f"partition {part} comes again from its beginning", again._replace(repeats=state.repeats - 1), ()
    if state.expiries:
        for at, life in enumerate(state.ledger.lives):
            if life.issued and not life.expired and not life.answer:
                fewer = state._replace(expiries=state.expiries - 1)
                yield f"the time of command {at} is over", fewer, ((at, _event("expired")),)


def _of_plans(state: State, bound: Bound) -> Iterator[Step]:
    votes = dict(state.ledger.approvals)
    if votes.get(state.plan, 0) < (bound.needed or 0):
        yield f"a person approves plan {state.plan}", state, ((0, _of_plan("approved", 0, (state.plan, 0))),)
    if state.forgeries:
        fewer = state._replace(forgeries=state.forgeries - 1)
        for plan in ("A", "B"):
            yield f"somebody forges orders of plan {plan}", fewer._replace(orders=(plan, 1)), ()
        yield "somebody forges an approval of plan A", fewer._replace(forged_approvals=("A",)), ()
    if state.withdrawals and state.plan == "A":
        fewer = state._replace(withdrawals=0)
        yield "somebody changes the plan to B", fewer._replace(plan="B"), ()
        if votes.get("A", 0):
            yield "an approval of plan A expires, or is taken back", fewer, ((0, _of_plan("withdrawn", 0, ("A", 0))),)
    for at, apply in enumerate(state.applies):
        if not at or apply != state.applies[at - 1]:
            yield from _of_apply(state, bound, at, apply)


def _of_apply(state: State, bound: Bound, at: int, me: Apply) -> Iterator[Step]:
    lives = state.ledger.lives
    if me.phase == "idle":
        wave, plan = _next_wave(state, bound, me), me.orders[0] or state.plan
        if wave and votes_of(state, plan) >= (bound.needed or 0):
            after = me._replace(phase="checked", orders=(plan, wave))
            yield f"apply checks wave {wave} of plan {plan}", _applying(state, at, after), ()
    elif me.phase == "checked":
        yield _hand_over(state, bound, at, me)
    elif all(lives[each].answer in GOOD for each in bound.entries[me.orders[1] - 1]) or "settled wave" in bound.without:
        yield f"apply has settled wave {me.orders[1]}", _applying(state, at, me._replace(phase="idle")), ()


def _next_wave(state: State, bound: Bound, me: Apply) -> int:
    """The first wave that is not done, from 1; 0: none."""
    if "settled wave" in bound.without and me.turn:
        return min(me.orders[1] + 1, len(bound.entries))
    lives = state.ledger.lives
    remaining = (at for at, each in enumerate(bound.entries, 1) if any(lives[one].answer not in GOOD for one in each))
    return next(remaining, 0)


def votes_of(state: State, plan: str) -> int:
    """How many persons have approved *plan*, as the store says."""
    return dict(state.ledger.approvals).get(plan, 0) + state.forged_approvals.count(plan)


def _is_obeyed(state: State, bound: Bound, me: Leader) -> bool:
    """Whether the leader *me* obeys the orders that it has read."""
    votes, plan = dict(state.ledger.approvals), me.orders[0]
    if "approvals" in bound.without or me.trusted == plan:
        return True
    counted = sum(votes.values()) if "approvals of this hash" in bound.without else votes.get(plan, 0)
    if "signatures" in bound.without:
        counted = votes_of(state, plan)
    return counted >= (bound.needed or 0)


def _hand_over(state: State, bound: Bound, at: int, me: Apply) -> Step:
    """One compare-and-set of the controls."""
    # What an apply that hangs holds lapses with time, so another one may always come, also with another plan.
    comes = not me.turn and state.turn < _MOST_TURNS
    is_mine = comes or me.turn == state.turn or ("one holder" in bound.without and me.turn)
    if not is_mine:
        return "apply is refused, and ends", _applying(state, at, Apply()), ()
    turn = state.turn + comes
    event = _of_plan("handed", me.turn or turn, me.orders)
    effects = tuple((each, event) for each in bound.entries[me.orders[1] - 1])
    state = state._replace(orders=me.orders, turn=turn)
    after = _applying(state, at, me._replace(phase="handed over", turn=me.turn or turn))
    return f"apply hands wave {me.orders[1]} of plan {me.orders[0]} over", after, effects


def _applying(state: State, at: int, apply: Apply) -> State:
    return state._replace(applies=(*state.applies[:at], apply, *state.applies[at + 1 :]))

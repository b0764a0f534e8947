"""Which faults a seed has, and how each one comes about."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from random import Random
from typing import Final

from controller.log.port import LogTopic, Out
from tests.simulation import commands
from tests.simulation.brokers import LIES
from tests.simulation.processes import Site
from tests.simulation.schedule import PERIOD, Schedule
from tests.simulation.world import AT_POINTS, Fault

#: The target of a fault that comes to the controller that leads then.
LEADER: Final = "leader"
#: Effects of each role, where faults at points come.
POINTS: Final[Mapping[str, tuple[str, ...]]] = {
    "controller": (
        "append commands",
        "append journal",
        "ask ends",
        "ask partitions",
        "commit journal",
        "controls epoch",
        "controls read",
        "election acquire",
        "election check",
        "election claim",
        "fence journal",
        "mark commands",
        "mark journal",
        "read back",
        "read journal",
        "read metrics",
        "read on metrics",
        "read on results",
        "read results",
        "spark commit",
        "spark offsets",
        "spark state",
        "take over commands",
        "take over journal",
    ),
    "collector": (
        "append",
        "append metrics",
        "append results",
        "append ticks",
        "ask partitions",
        "brokers ask",
        "commit ticks",
        "fence ticks",
        "group look",
        "group share",
        "group step back",
        "mark ticks",
        "read metrics",
        "read on metrics",
        "take over ticks",
    ),
    "executor": (
        "append cells",
        "append results",
        "brokers act",
        "brokers ask",
        "brokers lookup",
        "claim",
        "finish claim",
        "join group",
        "mark cells",
        "read commands",
        "read on commands",
        "read results",
        "read on results",
        "store claim",
        "take commands",
        "take over cells",
    ),
}
#: Those of logs that append atomically, and those of others.
_ATOMIC: Final = (
    "claim",
    "commit journal",
    "commit ticks",
    "fence journal",
    "fence ticks",
    "finish claim",
    "store claim",
)
_FOLLOWED: Final = tuple(
    f"{act} {where}"
    for act in ("append", "mark", "take over")
    for where in ("cells", "commands", "journal", "metrics", "results", "ticks")
)
#: What stores something in the log.
_APPENDS: Final = frozenset(
    each
    for points in POINTS.values()
    for each in points
    if each.startswith(("append", "commit", "store", "finish")) or each in ("mark commands", "mark journal")
)
#: Where a process decides, issues, begins, acts or answers: half of the faults at points come there.
_DECISIVE: Final = frozenset(
    {
        *("append cells", "append commands", "append journal", "append ticks", "brokers act", "commit journal"),
        *("commit ticks", "election check", "finish claim", "spark commit", "spark offsets", "store claim"),
    }
)
_POISON: Final = (b"\xff\xff\xff\x7f", b"", b"{", b'{"v": 1, "type": "tick", "cluster": "sim"}', b"[1, 2]")
_DIRECTIONS: Final = ("there", "back", "both")


def schedule_of(seed: int) -> Schedule:
    """The schedule of *seed*."""
    chance = Random(f"schedule {seed}")
    made = Schedule(
        seed=seed,
        intervals=chance.randint(30, 60),
        atomic=chance.random() < 0.5,
        partitions=chance.randint(1, 3),
        controllers=chance.randint(1, 3),
        collectors=chance.randint(1, 3),
        executors=chance.randint(1, 3),
        shards=chance.randint(1, 2),
    )
    faults = [_fault(chance, made) for _ in range(chance.randint(6, 22))]
    faults += [_in_turn(chance, made, number) for number in range(_IN_TURN)]
    faults += _approvals(Random(f"approvals {seed}"), made)
    faults += _exclusions(Random(f"exclusions {seed}"), made)
    faults += _others(Random(f"others {seed}"), made)
    policy = Random(f"policy {seed}")
    if policy.random() < 1 / 3:
        made = replace(made, approvals=True)
        faults += _under_a_policy(policy, made)
    return replace(made, faults=tuple(sorted(faults, key=lambda each: each.at)))


def _fault(chance: Random, made: Schedule) -> Fault:
    role = chance.choice(["controller", "controller", "collector", "executor", "executor"])
    process = f"{role}-{chance.randint(1, getattr(made, role + 's'))}"
    kind = chance.choices(list(_KINDS), [weight for weight, _ in _KINDS.values()])[0]
    fault = Fault(kind=kind, at=_time(chance, made), target=process, seconds=round(chance.choice(_LENGTHS)(chance), 1))
    if kind in AT_POINTS:
        point = {"tear": "append", "twice": "brokers act"}.get(kind, "")
        nth = chance.randrange(40)
        if not point and chance.random() < 0.8:
            points = _points(role, made.atomic)
            decisive = [each for each in points if each in _DECISIVE]
            point, nth = chance.choice(chance.choice([points, decisive])), chance.choice([0, 0, 1, 3])
        return replace(fault, point=point, when=chance.choice(["before", "after"]), nth=nth)
    return _KINDS[kind][1](fault, chance)


def _approvals(chance: Random, made: Schedule) -> list[Fault]:
    """Times in mode approve, in one of three schedules."""
    if chance.random() > 1 / 3:
        return []
    at = (round(chance.randrange(2, made.intervals) * PERIOD + chance.uniform(0, PERIOD), 1) for _ in range(2))
    return [Fault(kind="approve", at=each, seconds=round(chance.uniform(5, 20) * PERIOD, 1)) for each in at]


def _exclusions(chance: Random, made: Schedule) -> list[Fault]:
    """Bundles and namespaces that somebody excludes for a while, in one of three schedules."""
    if chance.random() > 1 / 3:
        return []
    return [
        Fault(kind="exclude", at=_time(chance, made), seconds=round(chance.uniform(2, 15) * PERIOD, 1))
        for _ in range(3)
    ]


def _others(chance: Random, made: Schedule) -> list[Fault]:
    """Calls that arrive late, people who command at the same time, and a report that stands still.

    Chosen apart from the others, which seeds keep.
    """
    late = [_late(chance, made) for _ in range(chance.choice([0, 1, 2, 3]))]
    crowds = [Fault(kind="crowd", at=_time(chance, made)) for _ in range(2)]
    broker = f"broker-{chance.randint(1, 4)}.sim:8080"
    still = Fault(
        kind="still-report", at=_time(chance, made), target=broker, seconds=round(chance.uniform(500, 1500), 1)
    )
    return [*late, *crowds, *([still] if chance.random() < 1 / 3 else [])]


def _late(chance: Random, made: Schedule) -> Fault:
    role = chance.choice(["controller", "collector", "executor", "executor"])
    points = [each for each in _points(role, made.atomic) if each in _APPENDS or each == "brokers act"]
    return Fault(
        kind="late",
        at=_time(chance, made),
        target=f"{role}-{chance.randint(1, getattr(made, role + 's'))}",
        point=chance.choice(points),
        nth=chance.choice([0, 0, 1, 3]),
        # About when its sender looks again, or long after it.
        seconds=round(chance.choice([chance.uniform(0.5, 3), chance.uniform(3, 6), chance.uniform(6, 60)]), 1),
    )


def _under_a_policy(chance: Random, made: Schedule) -> list[Fault]:
    """What people do where it needs approvals, and what somebody does who has none."""
    often = {"apply": made.intervals // 6, "mode": made.intervals // 12, "drain": 2, "pause-people": 1}
    people = [
        Fault(kind=each, at=_time(chance, made), seconds=round(chance.choice(_LENGTHS)(chance), 1))
        for each, times in often.items()
        for _ in range(times)
    ]
    # Soon after people did something, there is most to forge.
    follow = {"apply": ("forge", 240.0), "mode": ("tamper", 480.0)}
    forged = [
        Fault(kind=follow[each.kind][0], at=round(each.at + chance.uniform(5, follow[each.kind][1]), 1))
        for each in people
        if each.kind in follow
    ]
    turnovers = [Fault(kind="turnover", at=_time(chance, made)) for _ in range(2)]
    return [*people, *forged, *(_at_proposals(chance, made) for _ in range(3)), *turnovers]


def _at_proposals(chance: Random, made: Schedule) -> Fault:
    """A fault where a controller reads proposals, which it does under a policy alone."""
    return Fault(
        kind=chance.choice(["crash", "pause", "lose", "delay"]),
        at=_time(chance, made),
        target=f"controller-{chance.randint(1, made.controllers)}",
        point=chance.choice(["proposals content", "proposals read", "proposals read all"]),
        when=chance.choice(["before", "after"]),
        seconds=round(chance.uniform(8, 45), 1),
    )


def _time(chance: Random, made: Schedule) -> float:
    """Most of what matters happens soon after an interval begins."""
    within = chance.choice([chance.uniform(2, 15), chance.uniform(0, PERIOD)])
    return round(chance.randrange(2, made.intervals) * PERIOD + within, 1)


def _points(role: str, atomic: bool) -> list[str]:
    others = _ATOMIC if not atomic else _FOLLOWED
    return [each for each in POINTS[role] if each not in others]


@cache
def _all_pairs(atomic: bool) -> list[tuple[str, str, str, str, str]]:
    """Role, first fault, before or after, effect, and second fault, in an order that is the same everywhere.

    The effect is that of the fault of the two that comes at one, the first one if both do.
    """
    pairs = [
        (role, kind, when, point, then)
        for role in POINTS
        for point in _points(role, atomic)
        for when in ("before", "after")
        for kind, others in _FOLLOWERS.items()
        for then in others
    ]
    Random(f"pairs {atomic}").shuffle(pairs)
    return pairs


def _in_turn(chance: Random, made: Schedule, number: int) -> Fault:
    """Two faults: one at an effect, and another one soon before or after it.

    Seeds take them in turn, so each pair comes equally often, and first where no seed has had it for longest.
    """
    pairs = _all_pairs(made.atomic)
    role, first, when, point, second = pairs[(made.seed * _IN_TURN + number) % len(pairs)]
    at_effect = Fault(
        kind=first if first in AT_POINTS else second,
        # From early on, since many effects are reached seldom.
        at=round(min(_time(chance, made), _time(chance, made)), 1),
        target=f"{role}-{chance.randint(1, getattr(made, role + 's'))}",
        point=point,
        when=when,
        nth=chance.choice([0, 0, 0, 1, 3]) if point not in _SELDOM else 0,
        # What stands still, or is late, is so when the other one comes.
        seconds=round(chance.uniform(8, 45), 1),
    )
    kind, other = second if first in AT_POINTS else first, chance.choice(list(POINTS))
    beside = Fault(
        kind=kind,
        at=round(chance.uniform(0.2, 12), 1),
        target=f"{other}-{chance.randint(1, getattr(made, other + 's'))}",
        seconds=round(chance.choice(_LENGTHS)(chance), 1),
    )
    if kind not in AT_POINTS:
        beside = _KINDS[kind][1](beside, chance)
    if first in AT_POINTS:
        return replace(at_effect, then=beside)
    return replace(beside, at=at_effect.at, then=replace(at_effect, at=beside.at))


#: Effects that a run has a few of.
_SELDOM: Final = frozenset(
    {
        *("controls epoch", "election claim", "fence journal", "fence ticks", "group step back", "join group", "claim"),
        *("mark cells", "mark commands", "mark journal", "mark ticks", "read back", "read journal", "group share"),
        *(f"take over {where}" for where in ("cells", "commands", "journal", "ticks")),
    }
)
#: So many pairs of faults has a seed.
_IN_TURN: Final = 4
_PEOPLE: Final = ("stop-all", "stop-all", "pause-people", "mode", "apply")
_OTHERS: Final = ("crash", "expire", "cut", "skew", "more-partitions", "broker-death")
#: A fault -> what follows it.
_FOLLOWERS: Final[Mapping[str, tuple[str, ...]]] = {
    "pause": (*_PEOPLE, *_OTHERS, "rewind", "lie"),
    "delay": (*_PEOPLE, *_OTHERS),
    "crash": ("crash", "pause", "expire", "cut", "stop-all", "rewind", "lie"),
    "lose": ("crash", "pause", "expire", "cut"),
    **dict.fromkeys(("pause-people", "stop-all", "mode"), ("crash", "pause", "delay", "lose")),
}

_LENGTHS: Final[tuple[Callable[[Random], float], ...]] = (
    lambda chance: chance.uniform(0.2, 4),
    lambda chance: chance.uniform(4, 12),
    lambda chance: chance.uniform(12, 60),
    lambda chance: chance.uniform(60, 150),
)


def _cut(fault: Fault, chance: Random) -> Fault:
    return replace(
        fault, point=f"{chance.choice(['log', 'election', 'brokers', 'checkpoint'])} {chance.choice(_DIRECTIONS)}"
    )


def _clock(fault: Fault, chance: Random) -> Fault:
    return replace(fault, seconds=round(chance.choice([-1, 1]) * chance.choice(_LENGTHS)(chance), 1))


def _broker(fault: Fault, chance: Random) -> Fault:
    return replace(fault, target=f"broker-{chance.randint(1, 4)}.sim:8080", point=chance.choice(LIES))


def _topic(fault: Fault, chance: Random) -> Fault:
    return replace(fault, target=chance.choice(["metrics", "results", "commands"]), nth=chance.randrange(len(_POISON)))


def _anybody(fault: Fault, _: Random) -> Fault:
    return replace(fault, target="")


#: Kind -> how often it comes, and what else belongs to it.
_KINDS: Final[Mapping[str, tuple[int, Callable[[Fault, Random], Fault]]]] = {
    "crash": (24, _anybody),
    "pause": (16, _anybody),
    "lose": (10, _anybody),
    "delay": (5, _anybody),
    "twice": (2, _anybody),
    "tear": (2, _anybody),
    "cut": (10, _cut),
    "skew": (5, _clock),
    "stopped-clock": (2, _clock),
    "expire": (4, lambda fault, _: fault),
    "lie": (6, _broker),
    "broker-death": (4, _broker),
    "upgrade": (2, _broker),
    "pause-people": (4, _anybody),
    "mode": (2, _anybody),
    "stop-all": (3, _anybody),
    "apply": (3, _anybody),
    "outage": (3, _cut),
    "rewind": (2, _anybody),
    "more-partitions": (2, _topic),
    "poison": (3, _topic),
}


def arrange(site: Site, fault: Fault) -> None:
    """Have *fault* come at its time, and what follows it after it."""

    def follow() -> None:
        if fault.then is not None:
            site.world.met[f"{fault.kind}, then {fault.then.kind}", fault.point or "any effect"] += 1
            arrange(site, replace(fault.then, at=site.world.sim.now + fault.then.at))

    def happen() -> None:
        if site.world.is_calm:
            return
        meant = replace(fault, target=_leader(site)) if fault.target == LEADER else fault
        if fault.kind in AT_POINTS:
            site.world.arm(meant, follow)
        else:
            site.world.met[fault.kind, "its time"] += 1
            _COME[fault.kind](site, meant)
            follow()

    site.world.sim.at(fault.at, happen)


def _leader(site: Site) -> str:
    """The controller that leads, or any."""
    return site.election.leader()


def _come_cut(site: Site, fault: Fault) -> None:
    service, direction = fault.point.split()
    site.world.cut(fault.target, service, direction, fault.seconds)


def _come_skew(site: Site, fault: Fault) -> None:
    process = site.world.processes[fault.target]
    process.skew += fault.seconds
    site.world.note("skewed", process, content=str(round(1000 * process.skew)))


def _come_stopped_clock(site: Site, fault: Fault) -> None:
    process, sim = site.world.processes[fault.target], site.world.sim
    process.stopped_clock = sim.now
    sim.at(sim.now + abs(fault.seconds), lambda: setattr(process, "stopped_clock", None))


def _come_expire(site: Site, fault: Fault) -> None:
    site.election.expire(site.world.processes[fault.target])


def _come_lie(site: Site, fault: Fault) -> None:
    site.cluster.brokers[fault.target].lies[fault.point] = site.world.sim.now + max(fault.seconds, 20.0)


def _come_broker_death(site: Site, fault: Fault) -> None:
    site.cluster.kill(fault.target, fault.seconds)


def _come_upgrade(site: Site, fault: Fault) -> None:
    site.cluster.brokers[fault.target].version = "4.1.2"


def _come_pause_people(site: Site, fault: Fault) -> None:
    site.person(commands.pause, "ada")
    # Long enough for an interval to be decided meanwhile.
    at = site.world.sim.now + 2 * PERIOD + fault.seconds
    site.world.sim.at(at, lambda: site.person(partial(commands.resume, site), "ada"))


def _come_mode(site: Site, fault: Fault) -> None:
    value = "observe" if fault.seconds < 12 else "dry_run"
    site.person(partial(commands.mode, site, value), "bob")
    site.world.sim.at(
        site.world.sim.now + 2 * PERIOD + fault.seconds,
        lambda: site.person(partial(commands.mode, site, "active"), "bob"),
    )


def _come_drain(site: Site, fault: Fault) -> None:
    """Somebody drains a broker, and asks to release it later."""
    broker = site.world.sim.random.choice(sorted(site.cluster.brokers))
    site.person(partial(commands.drain, site, broker), "bob")
    at = site.world.sim.now + 2 * PERIOD + fault.seconds
    site.world.sim.at(at, lambda: site.person(partial(commands.release, site, broker), "ada"))


def _come_exclude(site: Site, fault: Fault) -> None:
    """Somebody excludes a bundle, or its namespace, and asks to include it later."""
    chance = site.world.sim.random
    bundle = chance.choice(site.cluster.all_bundles())
    name = bundle if chance.random() < 0.5 else bundle.rpartition("/")[0]
    site.person(partial(commands.exclude, site, name), "bob")
    site.world.sim.at(
        site.world.sim.now + fault.seconds, lambda: site.person(partial(commands.include, site, name), "ada")
    )


def _come_crowd(site: Site, _: Fault) -> None:
    """Some people give commands at the same time; later somebody ends what they began."""
    sim, broker = site.world.sim, site.world.sim.random.choice(sorted(site.cluster.brokers))
    acts: dict[str, tuple[Callable[[], object], Callable[..., object]]] = {
        "ada": (commands.pause, commands.resume),
        "bob": (partial(commands.mode, site, "dry_run"), partial(commands.mode, value="active")),
        "eve": (partial(commands.drain, site, broker), partial(commands.release, broker=broker)),
    }
    for name in sim.random.sample(sorted(acts), sim.random.choice([2, 3])):
        begin, end = acts[name]
        sim.at(sim.now + sim.random.uniform(0, 0.05), partial(site.person, begin, name))
        sim.at(sim.now + sim.random.uniform(2, 3) * PERIOD, partial(site.person, partial(end, site), name))


def _come_turnover(site: Site, _: Fault) -> None:
    """What two people agreed on is replaced again and again, and somebody restores what was before.

    Leaders hold an older grant then, read an older document, or begin with one.
    """
    sim, period = site.world.sim, PERIOD
    for at, act, name in (
        (0.0, partial(commands.mode, site, "dry_run"), "bob"),
        (1.5, partial(commands.mode, site, "active", surely=True), "bob"),
        # Asked for before the pause, and approved after it.
        (3.0, partial(commands.resume, site, late=True), "ada"),
        (4.0, commands.pause, "ada"),
        (4.0, partial(commands.mode, site, "observe"), "bob"),
        (5.5, partial(commands.resume, site, surely=True), "ada"),
        (7.0, partial(commands.restore, site), "mallory"),
        (9.0, partial(commands.mode, site, "active"), "bob"),
    ):
        when = sim.now + (at + sim.random.uniform(0, 0.8)) * period
        sim.at(when, partial(_unless_calm, site, act, name))


def _unless_calm(site: Site, act: Callable[[], object], name: str) -> None:
    if not site.world.is_calm:
        site.person(act, name)


def _come_still_report(site: Site, fault: Fault) -> None:
    site.cluster.keep_report(fault.target, fault.seconds)


def _come_tamper(site: Site, _: Fault) -> None:
    site.person(partial(commands.tamper, site), "mallory")


def _come_approve(site: Site, fault: Fault) -> None:
    """Somebody sets mode approve for a while; another person looks at what waits now and then."""
    sim = site.world.sim
    site.person(partial(commands.mode, site, "approve"), "bob")
    for look in range(1, int(fault.seconds / PERIOD), 3):
        at = sim.now + (look + 2 * sim.random.random()) * PERIOD
        sim.at(at, lambda: site.person(partial(commands.rule, site, late=fault.point == "late"), "eve"))
    sim.at(sim.now + fault.seconds, lambda: site.person(partial(commands.mode, site, "active"), "bob"))


def _come_stop_all(site: Site, fault: Fault) -> None:
    # By nobody who resumes: the oracle knows by that what belongs to it.
    site.person(partial(commands.stop_all, site), "sue")
    at = site.world.sim.now + PERIOD + fault.seconds
    site.world.sim.at(at, lambda: site.person(partial(commands.resume, site), "ada"))


def _come_apply(site: Site, _: Fault) -> None:
    site.person(partial(commands.apply, site), "eve")


def _come_forge(site: Site, _: Fault) -> None:
    site.person(partial(commands.forge, site), "mallory")


def _come_outage(site: Site, fault: Fault) -> None:
    """What a cut is for one process, for all of them."""
    service, direction = fault.point.split()
    for name in site.world.processes:
        site.world.cut(name, service, direction, fault.seconds)


def _come_rewind(site: Site, _: Fault) -> None:
    """The group's positions expire, or somebody resets them: Kafka allows that while no executor runs.

    Which commands were begun is lost with them, so not in partitions where one has no answer.
    """
    for name, process in list(site.world.processes.items()):
        if name.startswith("executor"):
            site.world.crash(process)
    begun = {each.command for each in site.world.trace if each.kind == "begun"}
    begun -= {each.command for each in site.world.trace if each.kind == "answered"}
    spared = {each.partition for each in site.world.trace if each.kind == "issued" and each.command in begun}
    for place in [place for place in site.server.done if place[1] not in spared]:
        del site.server.done[place]


def _come_more_partitions(site: Site, fault: Fault) -> None:
    if len(site.server.topic(fault.target)) < 4:
        if fault.target == "commands":  # an answer goes to the partition of its command's number
            site.server.add_partitions("results")
        site.server.add_partitions(fault.target)


def _come_poison(site: Site, fault: Fault) -> None:
    topic: LogTopic = fault.target  # type: ignore[assignment]
    partition = site.world.sim.random.randrange(len(site.server.topic(topic)))
    site.server.store(topic, partition, Out(topic, _POISON[fault.nth]))
    site.poison.add((topic, partition, site.server.topic(topic)[partition].records[-1].position))


_COME: Final[Mapping[str, Callable[[Site, Fault], None]]] = {
    "cut": _come_cut,
    "skew": _come_skew,
    "stopped-clock": _come_stopped_clock,
    "expire": _come_expire,
    "lie": _come_lie,
    "broker-death": _come_broker_death,
    "upgrade": _come_upgrade,
    "pause-people": _come_pause_people,
    "mode": _come_mode,
    "approve": _come_approve,
    "stop-all": _come_stop_all,
    "apply": _come_apply,
    "forge": _come_forge,
    "drain": _come_drain,
    "exclude": _come_exclude,
    "crowd": _come_crowd,
    "turnover": _come_turnover,
    "still-report": _come_still_report,
    "tamper": _come_tamper,
    "outage": _come_outage,
    "rewind": _come_rewind,
    "more-partitions": _come_more_partitions,
    "poison": _come_poison,
}

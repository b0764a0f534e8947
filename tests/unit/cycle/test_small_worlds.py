"""What whole cycles decide about small clusters, with budgets, plans, controls and results, stays what it is.

An operator who installs a new release finds the same decisions for the same load; a journal of before is replayed to
the byte.  The numbers are tests.small_worlds.digits of all decisions and memories: one for each world.
"""

from random import Random
from typing import Any, Final, get_args

from controller.cycle import BalancerOptions, Policy, decide
from controller.cycle.limits import Budget, Limits
from controller.model.controls import Controls, OrderedMove, Orders
from controller.model.memory import Memory
from controller.model.records import CommandResult
from controller.strategies.catalogue import EXTENSIBLE_FILTERS, FILTERS, PLACEMENTS, SHEDDERS, SPLIT_POLICIES
from controller.strategies.filters.extensible_select_broker import ExtensibleSelectBroker
from controller.strategies.filters.modular_select_broker import ModularSelectBroker
from controller.strategies.rebalance.membership import RebalanceOnMembershipChange
from controller.strategies.splitting.range_equally_divide import RangeEquallyDivide
from controller.strategies.splitting.specified_positions_divide import SpecifiedPositionsDivide
from controller.wire.results import Status
from tests.small_worlds import MINUTE_MS, SmallWorld, digits, with_options

ROUNDS: Final = 12
#: PeakShedder takes longer than all others.
QUICK: Final = [name for name in SHEDDERS if name != "PeakShedder"]


def policy_of(chance: Random) -> Policy:
    extensible = chance.random() < 0.5
    filters = EXTENSIBLE_FILTERS if extensible else FILTERS
    few = chance.choice((None, 1, 2, 3))
    return Policy(
        cluster="lab",
        period_ms=MINUTE_MS,
        shedder=with_options(SHEDDERS[chance.choice(QUICK)], chance),
        placement=with_options(PLACEMENTS[chance.choice(list(PLACEMENTS))], chance),
        split_policy=with_options(SPLIT_POLICIES[chance.choice(list(SPLIT_POLICIES))], chance),
        split_algorithm=chance.choice((RangeEquallyDivide(), SpecifiedPositionsDivide())),
        membership=RebalanceOnMembershipChange(protocol=chance.choice(("off", "eager", "cooperative"))),
        filters=tuple(with_options(each, chance) for each in filters.values()) if chance.random() < 0.7 else (),
        selection=with_options(ExtensibleSelectBroker if extensible else ModularSelectBroker, chance),
        balancer=BalancerOptions(
            waits_for_results=chance.random() < 0.3,
            grace_period_minutes=chance.choice((1, 2, 30)),
            shedding_interval_minutes=chance.choice((1, 1, 2)),
            unload_split_bundles=chance.random() < 0.7,
        ),
        warm_up_samples=chance.choice((0, 1, 2)),
        command_ttl_ms=chance.choice((1, 2)) * MINUTE_MS,
        executor_timeout_ms=chance.choice((0, 1)) * MINUTE_MS,
        retry_failed_after_ms=chance.choice((1, 2, 61)) * MINUTE_MS,
        excluded=frozenset(chance.choice(((), ("acme/b",)))),
        limits=Limits(
            interval=_budget(chance),
            window=_budget(chance),
            window_ms=chance.choice((2, 3, 60)) * MINUTE_MS,
            in_flight=few,
            in_flight_per_broker=chance.choice((None, 1, 2)),
            failures_in_a_row=chance.choice((None, None, 2, 3)),
            failures_in_window=chance.choice((None, None, 2)),
            freeze_intervals=chance.choice((0, 0, 1, 2)),
            freeze_share=chance.choice((1.0, 0.5)),
            move_undescribed=chance.random() < 0.7,
        ),
    )


def _budget(chance: Random) -> Budget:
    scarce = chance.random() < 0.5
    some = {name: chance.choice((1, 2, 3)) for name in Budget.__slots__ if scarce and chance.random() < 0.2}
    return Budget(**{name: count * (500 if name.startswith("connections") else 1) for name, count in some.items()})


def controls_of(chance: Random, world: SmallWorld) -> Controls:
    orders, brokers = None, list(world.usage)
    if chance.random() < 0.25:
        names = list(world.bundles)
        chosen = [chance.choice(names) for _ in range(chance.choice((0, 1, 3)))]
        moves = tuple(
            OrderedMove(bundle=name, source=world.bundles[name][0], destination=chance.choice(brokers))
            for name in chosen
        )
        orders = Orders(
            plan="0123456789abcdef", step=1, wave=1, waves=2, moves=moves, holder="h", by="ada",
            checked_at=world.interval - chance.choice((0, 1, 5, 6)) * MINUTE_MS,
            expires_at_ms=world.interval + chance.choice((-1, 0, 1)) * MINUTE_MS,
            held_back=chance.choice((None, True, False)),
        )  # fmt: skip
    calm = chance.random() < 0.8
    return Controls(
        mode="active" if calm else chance.choice(("dry_run", "observe")),
        paused=not calm and chance.random() < 0.3,
        stale=not calm and chance.random() < 0.3,
        maintenance="night" if not calm and chance.random() < 0.3 else "",
        unknown="lost" if not calm and chance.random() < 0.1 else "",
        resumed_ms=world.interval if chance.random() < 0.2 else 0,
        drained=tuple(brokers[:1]) if chance.random() < 0.15 else (),
        orders=orders,
    )


def results_of(chance: Random, memory: Memory) -> list[CommandResult]:
    statuses = get_args(Status)
    return [
        CommandResult(id=key, status="done" if chance.random() < 0.4 else chance.choice(statuses))
        for key in sorted(memory.in_flight)
        if chance.random() < 0.7
    ]


def decided(seed: int) -> int:
    world, chance = SmallWorld.of(seed), Random(seed)
    policy = policy_of(chance)
    memory, told = policy.initial_memory(seed), list[Any]()
    for _ in range(ROUNDS):
        view = world.view()
        controls = controls_of(chance, world)
        decision, memory = decide(view, results_of(chance, memory), memory, controls, policy)
        told.append(digits(decision, memory))
        moved = {command.bundle: command.destination for command in decision.commands if command.action == "unload"}
        world.goes_on(moved)
    return digits(told)


DECIDED: Final = [
    26_332_803, 45_141_313, 37_237_255, 90_030_349, 41_630_135, 50_773_287, 34_991_346,
    43_688_129, 93_723_222, 21_519_829, 34_935_751, 35_423_948, 81_191_449, 55_493_002,
]  # fmt: skip


def test_cycles_issue_the_same_commands_and_remember_the_same() -> None:
    assert [decided(seed) for seed in range(14)] == DECIDED

"""Answered moves are followed until their destination lists the bundle."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pytest

from controller.cycle import decide
from controller.cycle.guardrails.listing import FORGOTTEN_MS, Rooms
from controller.cycle.limits import Limits
from controller.model.controls import Controls
from controller.model.decision import Decision, Reason
from controller.model.load import OtherClaims
from controller.model.memory import InFlight, Memory
from controller.model.records import CommandResult
from controller.strategies.shedding.threshold_shedder import ThresholdShedder
from controller.strategies.view_builder import Broker, Bundle, cluster_view
from tests.lying_cluster import PERIOD, START
from tests.unit.cycle.test_cycle import POLICY, WARM

NEW, OLD, THIRD = "new:8080", "old:8080", "third:8080"
USED = Bundle(producers=1)
LIMITS = Limits(unproven_bundles=5, confirm_intervals=3, unconfirmed_brokers=3)
FOLLOWING = replace(POLICY, limits=LIMITS, period_ms=PERIOD, shedder=ThresholdShedder())


def bundle(number: int) -> str:
    return f"acme/orders/0x{number << 24:08x}_0x{(number + 1) << 24:08x}"


def numbered(*numbers: int) -> list[str]:
    return [bundle(number) for number in numbers]


@dataclass
class Followed:
    """A cluster of three brokers without load to move, interval by interval; LIMITS hold, or *limits*."""

    memory: Memory = field(default_factory=lambda: WARM)
    number: int = 0
    decision: Decision | None = None
    limits: Limits = LIMITS

    @property
    def now(self) -> int:
        return START + self.number * PERIOD

    def sent(self, bundles: Iterable[str], to: str = NEW, *, idle: bool = False) -> "Followed":
        """Commands for *bundles* were issued in the last interval."""
        flights = {
            f"move {name}": InFlight(
                action="unload", bundle=name, source=OLD, destination=to, interval=self.now,
                expires_at_ms=self.now + 5 * PERIOD, idle=idle,
            )
            for name in bundles
        }  # fmt: skip
        self.memory = replace(self.memory, in_flight={**self.memory.in_flight, **flights})
        return self

    def then(
        self,
        listed: Iterable[str] = (),
        *,
        done: Iterable[str] = (),
        owner: str | None = None,
        elsewhere: Iterable[str] = (),
        here: Iterable[str] = (NEW, OLD, THIRD),
        silent: Iterable[str] = (),
        resumed_ms: int = 0,
        claimed: str = "",
        carries: Bundle = USED,
    ) -> "Followed":
        """One more interval: NEW lists *listed*, THIRD *elsewhere*; commands for *done* are answered."""
        self.number += 1
        bundles = {NEW: [*listed], OLD: numbered(*range(200, 220)), THIRD: [*elsewhere]}
        talking = [name for name in here if name not in silent]
        view = cluster_view(
            *(Broker(name, cpu=0.5, bundles=dict.fromkeys(bundles.get(name, []), carries)) for name in talking),
            missing=list(silent),
            as_of_ms=self.now,
        )
        if claimed:
            claim = OtherClaims(
                bundle=view.bundles.broker[:1] * 0 + view.bundles.code_of[claimed],
                broker=view.bundles.broker[:1] * 0 + view.brokers.code_of[NEW],
            )
            view = replace(view, other_claims=claim)
        results = [
            CommandResult(id=key, status="done", owner_after=each.destination if owner is None else owner)
            for key, each in self.memory.in_flight.items()
            if each.bundle in set(done)
        ]
        controls = Controls(mode="active", resumed_ms=resumed_ms)
        policy = replace(FOLLOWING, limits=self.limits)
        self.decision, self.memory = decide(view, results, replace(self.memory, samples=9), controls, policy)
        return self

    @property
    def unconfirmed(self) -> list[str]:
        """The brokers that the last decision names."""
        assert self.decision is not None
        return [each.subject for each in self.decision.verdicts if each.reason is Reason.UNCONFIRMED]

    def room(self, broker: str = NEW) -> int:
        """How many bundles *broker* may get now."""
        room = Rooms(self.memory.destinations, self.memory.in_flight.values(), self.limits, self.now).of(broker)
        assert room is not None
        return 0 if room.blocked else room.limit - room.used


def black_hole(bundles: Iterable[str] = (bundle(0), bundle(1))) -> Followed:
    """NEW got *bundles* and lists none of them three intervals later."""
    return Followed().sent(bundles).then(done=bundles).then().then().then()


def test_a_broker_that_does_not_list_what_it_got_is_named_and_gets_nothing() -> None:
    found = Followed().sent(numbered(0, 1)).then(done=numbered(0, 1)).then().then()
    assert found.unconfirmed == []
    assert found.room() == 3
    found.then()
    assert found.unconfirmed == [NEW]
    assert found.room() == 0
    assert found.decision is not None
    [verdict] = [each for each in found.decision.verdicts if each.reason is Reason.UNCONFIRMED]
    assert (verdict.observed, verdict.limit, verdict.by) == (2.0, 0.0, "guardrails.confirm_intervals")
    assert bundle(0) in verdict.detail
    assert "trimtab resume" in verdict.detail
    assert found.decision.summary.startswith("20 bundles on 2 brokers"), "it counts as a broker without data"
    assert f"Unconfirmed: {NEW} did not list what was moved there" in found.decision.summary


def test_a_broker_that_lists_an_interval_late_is_not_blamed_and_may_have_more_at_once_then() -> None:
    found = Followed().sent(numbered(0, 1)).then(done=numbered(0, 1)).then().then(numbered(0, 1))
    assert found.unconfirmed == found.then(numbered(0, 1)).then(numbered(0, 1)).then(numbered(0, 1)).unconfirmed == []
    assert found.room() == 10


def test_a_tenth_of_what_a_broker_has_listed_may_be_on_its_way_if_that_is_more() -> None:
    many = numbered(*range(150))
    assert Followed().sent(many).then(many, done=many).room() == 15
    assert Followed().sent(many).then(many, done=many).then(many[:3]).room() == 10, "it lists so many no more"


def test_commands_without_a_result_count_as_not_listed() -> None:
    assert Followed().sent(numbered(0, 1, 2)).then().room() == 2


def test_a_sweep_that_is_missing_is_not_held_against_the_broker() -> None:
    found = Followed().sent(numbered(0)).then(done=numbered(0)).then().then()
    for _ in range(5):
        found.then(silent=[NEW])
        assert found.unconfirmed == []
    assert found.then(numbered(0)).unconfirmed == []
    assert found.room() == 10


@pytest.mark.parametrize("listed", [bundle(0), "acme/orders/0x00000000_0x00800000"], ids=["moved on", "split"])
def test_a_bundle_that_was_moved_on_or_split_is_not_held_against_the_broker(listed: str) -> None:
    found = Followed().sent(numbered(0)).then(done=numbered(0))
    for _ in range(5):
        assert found.then(elsewhere=[listed]).unconfirmed == []
    assert found.room() == 5


def test_what_was_moved_on_counts_no_more_once_the_broker_has_listed_another() -> None:
    found = Followed().sent(numbered(0, 1)).then(done=numbered(0, 1))
    for _ in range(3):
        found.then(numbered(1), elsewhere=numbered(0))
    assert found.memory.destinations[NEW].unlisted == {}


def test_a_namespace_that_is_gone_is_not_held_against_the_broker() -> None:
    gone = ["acme/deleted/0x00000000_0xffffffff"]
    found = Followed().sent(gone).then(done=gone)
    for _ in range(5):
        assert found.then().unconfirmed == []


def test_a_bundle_whose_owner_nobody_saw_is_not_held_against_the_broker_but_counts() -> None:
    found = Followed().sent(numbered(0, 1)).then(done=numbered(0, 1), owner="")
    for _ in range(5):
        assert found.then().unconfirmed == []
    assert found.room() == 5
    found.sent(numbered(2, 3, 4, 5)).then(done=numbered(2, 3, 4, 5), owner="").then().then().then()
    assert found.room() == 4, "ten in all"


def test_a_bundle_that_went_elsewhere_by_its_result_is_not_waited_for() -> None:
    assert Followed().sent(numbered(0)).then(done=numbered(0), owner=THIRD).memory.destinations == {}


def test_bundles_without_clients_are_not_held_against_the_broker() -> None:
    found = Followed().sent(numbered(0), idle=True).then(done=numbered(0))
    for _ in range(5):
        assert found.then().unconfirmed == []
    assert found.sent(numbered(1)).then(numbered(1), done=numbered(1)).memory.destinations[NEW].unlisted == {}


def test_bundles_that_are_listed_without_the_load_that_they_had_prove_nothing() -> None:
    found = Followed()
    for number in range(0, 10, 5):
        five = numbered(*range(number, number + 5))
        assert found.room() == 5
        found.sent(five).then(five, done=five, carries=Bundle())
        for _ in range(3):
            found.then(five, carries=Bundle())
    assert found.unconfirmed == [NEW]
    assert found.room() == 0
    assert found.then(numbered(*range(10))).room() == 10, "once clients are back"


def test_a_bundle_that_a_later_report_claims_counts_as_listed_by_its_destination_too() -> None:
    found = Followed().sent(numbered(0)).then(done=numbered(0))
    assert found.then(elsewhere=numbered(0), claimed=bundle(0)).memory.destinations[NEW].listed == 1


def test_after_a_rest_the_broker_gets_one_bundle_and_listing_it_ends_the_matter() -> None:
    found = black_hole()
    rest = POLICY.retry_failed_after_ms // PERIOD
    for _ in range(rest - 1):
        assert found.then().room() == 0
    assert found.then().room() == 1
    assert found.unconfirmed == [NEW], "it is named as long as bundles are not listed"
    found.sent(numbered(7))
    assert found.then(done=numbered(7)).room() == 0
    found.then(numbered(7))
    assert found.unconfirmed == []
    assert found.room() == 10 - 2, "the two count for a day"


def test_a_rest_that_brought_nothing_doubles() -> None:
    found, rest = black_hole(), POLICY.retry_failed_after_ms // PERIOD
    for _ in range(rest):
        found.then()
    found.sent(numbered(7)).then(done=numbered(7)).then().then().then()
    for _ in range(2 * rest - 1):
        assert found.then().room() == 0
    assert found.then().room() == 1


def test_a_broker_that_lists_its_bundles_after_all_takes_part_again() -> None:
    found = black_hole().then(numbered(0, 1))
    assert found.unconfirmed == []
    assert found.room() == 10


def test_a_resume_lets_the_broker_get_bundles_again_as_a_new_one() -> None:
    found = black_hole().then(resumed_ms=5)
    assert (found.unconfirmed, found.room()) == ([], 5)


def test_a_resume_from_before_clears_nothing() -> None:
    found = Followed().sent(numbered(0))
    found.then(done=numbered(0), resumed_ms=5).then(resumed_ms=5).then(resumed_ms=5).then(resumed_ms=5)
    assert found.unconfirmed == [NEW]


def test_a_broker_that_restarts_is_new_again() -> None:
    found = Followed().sent(numbered(0, 1)).then(numbered(0), done=numbered(0, 1))
    found.then(here=(OLD, THIRD), elsewhere=numbered(0, 1)).then(elsewhere=numbered(0, 1))
    assert (found.unconfirmed, found.room()) == ([], 5)


def test_a_broker_that_comes_and_goes_and_never_lists_anything_gets_ten_in_all() -> None:
    found = Followed()
    for turn, left in enumerate((5, 0)):
        five = numbered(*range(5 * turn, 5 * turn + 5))
        found.sent(five).then(done=five).then(here=(OLD, THIRD), elsewhere=five).then(elsewhere=five)
        assert found.room() == left
    assert found.unconfirmed == [NEW]


def test_what_is_not_listed_is_forgotten_after_a_day() -> None:
    found = black_hole()
    found.number += FORGOTTEN_MS // PERIOD
    assert found.then().memory.destinations == {}


def test_many_brokers_with_unconfirmed_moves_trip_the_breaker() -> None:
    others = ("x:8080", "y:8080", "z:8080")
    found = Followed()
    for number, name in enumerate(others):
        found.sent(numbered(number), to=name)
    found.then(done=numbered(0, 1, 2), here=(OLD, *others))
    for _ in range(3):
        found.then(here=(OLD, *others))
    assert found.memory.breaker.tripped_at == found.now
    assert "3 brokers do not list what was moved to them, the first is x:8080" in found.memory.breaker.why
    assert found.then(here=(OLD, *others), resumed_ms=7).memory.breaker.tripped_at is None


def test_unconfirmed_moves_count_once_among_the_failures() -> None:
    found = black_hole()
    assert len(found.memory.failures) == len(found.then().then().memory.failures) == 2


def test_without_the_limits_nothing_is_followed() -> None:
    found = Followed(limits=Limits()).sent(numbered(0)).then(done=numbered(0)).then().then().then()
    assert found.memory.destinations == {}
    assert found.unconfirmed == []

"""What brokers that join or leave set off, over simulated rounds."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.model.decision import Reason, Unload, UnloadDecision
from controller.model.errors import SettingsError
from controller.model.load import ClusterView, Preallocated
from controller.settings.broker_conf import build
from controller.strategies.rebalance.membership import BrokerMembership, RebalanceOnMembershipChange
from tests.cluster import Broker, bundle, view

COOPERATIVE = RebalanceOnMembershipChange(protocol="cooperative")
AT_ONCE = RebalanceOnMembershipChange(protocol="cooperative", spread_rounds=1)
EAGER = RebalanceOnMembershipChange(protocol="eager")


@dataclass
class Rounds:
    """A cluster, and a strategy that decides about it round by round; its unloads are carried out at once."""

    strategy: RebalanceOnMembershipChange
    #: Bundle -> broker.
    owner: dict[str, str]
    brokers: set[str]
    missing: frozenset[str] = frozenset()
    recently_unloaded: set[str] = field(default_factory=set)
    mbytes: dict[str, float] = field(default_factory=dict)
    memory: BrokerMembership = field(default_factory=BrokerMembership)

    def view(self) -> ClusterView:
        seen = self.brokers - self.missing
        made = view(
            *(
                Broker(
                    name,
                    cpu=0.5,
                    bundles={b: bundle(self.mbytes.get(b, 1.0)) for b, o in self.owner.items() if o == name},
                )
                for name in seen
            ),
            recently_unloaded=self.recently_unloaded,
        )
        return replace(made, missing=tuple(sorted(self.missing)))

    def round(self, *, carried_out: bool = True) -> UnloadDecision:
        decision, self.memory = self.strategy.decide(self.view(), self.memory)
        for unload in decision.unloads:
            assert self.owner[unload.bundle] == unload.source != unload.destination
            if carried_out:
                self.owner[unload.bundle] = unload.destination
        return decision

    def rounds(self, count: int) -> list[UnloadDecision]:
        return [self.round() for _ in range(count)]

    def counts(self) -> dict[str, int]:
        held = Counter(self.owner.values())
        return {name: held[name] for name in sorted(self.brokers)}

    def lose(self, broker: str) -> None:
        """The brokers take its bundles over by themselves, the first one all of them."""
        self.brokers.discard(broker)
        heir = min(self.brokers)
        self.owner = {b: heir if o == broker else o for b, o in self.owner.items()}


def cluster(strategy: RebalanceOnMembershipChange = COOPERATIVE, **counts: int) -> Rounds:
    """Brokers with so many bundles each, that have been there for a round."""
    owner = {f"{name}-x{i:03}": name for name, count in counts.items() for i in range(count)}
    rounds = Rounds(strategy=strategy, owner=owner, brokers=set(counts))
    assert rounds.round().unloads == ()
    return rounds


def moved(decisions: Iterable[UnloadDecision]) -> list[Unload]:
    return [unload for decision in decisions for unload in decision.unloads]


def between(unloads: Iterable[Unload]) -> dict[tuple[str, str], int]:
    return dict(Counter((unload.source, unload.destination) for unload in unloads))


# ---- off ----


def test_it_is_off_unless_asked_for() -> None:
    rounds = cluster(RebalanceOnMembershipChange(), a=10)
    rounds.brokers.add("b")
    decisions = rounds.rounds(6)
    assert moved(decisions) == []
    assert {decision.reason for decision in decisions} == {Reason.DISABLED}


def test_an_unknown_value_is_refused_with_the_allowed_ones() -> None:
    with pytest.raises(SettingsError, match=r"^trimtabRebalanceOnMembershipChange=on: allowed: off, eager, coop"):
        build(RebalanceOnMembershipChange, {"trimtabRebalanceOnMembershipChange": "on"})


@pytest.mark.parametrize("strategy", [COOPERATIVE, EAGER])
def test_the_brokers_of_the_first_round_have_not_joined(strategy: RebalanceOnMembershipChange) -> None:
    rounds = cluster(strategy, a=10, b=0)
    assert moved(rounds.rounds(3)) == []


# ---- cooperative: joining ----


def test_a_broker_that_joins_has_its_fair_share_within_five_rounds_and_nothing_else_moves() -> None:
    rounds = cluster(a=10, b=11, c=12)
    rounds.brokers.add("d")
    unloads = moved(rounds.rounds(5))
    assert {unload.destination for unload in unloads} == {"d"}
    assert abs(rounds.counts()["d"] - 33 / 4) < 1
    assert len(unloads) == 8


def test_it_gets_its_share_in_about_equal_parts_over_some_rounds() -> None:
    rounds = cluster(a=30, b=30)
    rounds.brokers.add("c")
    assert [len(decision.unloads) for decision in rounds.rounds(6)] == [7, 7, 6, 0, 0, 0]


def test_those_that_have_most_give_first_and_none_below_the_share() -> None:
    rounds = cluster(AT_ONCE, a=20, b=12, c=4)
    rounds.brokers.add("d")
    rounds.round()
    assert rounds.counts() == {"a": 11, "b": 12, "c": 4, "d": 9}


def test_one_that_joins_while_another_is_served_is_served_too() -> None:
    rounds = cluster(a=30, b=30)
    rounds.brokers.add("c")
    rounds.round()
    rounds.brokers.add("d")
    rounds.rounds(5)
    assert rounds.counts() == dict.fromkeys("abcd", 15)


def test_busy_and_quiet_bundles_go_alike() -> None:
    rounds = cluster(AT_ONCE, a=30, b=30)
    rounds.mbytes = {
        name: 1.5**i for name in ("a", "b") for i, name in enumerate(b for b in rounds.owner if b[0] == name)
    }
    rounds.brokers.add("c")
    places = sorted(int(unload.bundle[-3:]) for unload in rounds.round().unloads)
    assert places == sorted([1, 4, 7, 10, 13, 16, 19, 22, 25, 28] * 2)


def test_moves_that_failed_are_made_up_for_within_the_five_rounds() -> None:
    rounds = cluster(a=30, b=30)
    rounds.brokers.add("c")
    for _ in range(3):
        assert rounds.round(carried_out=False).unloads
    rounds.rounds(2)
    assert rounds.counts()["c"] == 20


def test_after_five_rounds_only_the_shedder_moves_its_bundles() -> None:
    rounds = cluster(a=30, b=30)
    rounds.brokers.add("c")
    rounds.rounds(5)
    rounds.owner = {name: "a" if broker == "c" else broker for name, broker in rounds.owner.items()}
    assert moved(rounds.rounds(5)) == []


def test_what_is_on_its_way_counts_where_it_is_going_and_is_not_sent_again() -> None:
    rounds = cluster(AT_ONCE, a=30, b=30)
    rounds.brokers.add("c")
    first = rounds.round(carried_out=False)
    seen = rounds.view()
    rows = np.array([seen.bundles.code_of[unload.bundle] for unload in first.unloads], np.int64)
    under_way = Preallocated(bundle=rows, broker=np.full(len(rows), seen.brokers.code_of["c"]))
    decision, _ = rounds.strategy.decide(replace(seen, preallocated=under_way), rounds.memory)
    assert (len(first.unloads), decision.unloads) == (20, ())


def test_what_is_on_its_way_to_another_broker_is_left_alone() -> None:
    rounds = cluster(AT_ONCE, a=40, b=10)
    rounds.brokers.add("c")
    seen = rounds.view()
    sent = np.arange(15)  # a's first ones, to b
    under_way = Preallocated(bundle=sent, broker=np.full(len(sent), seen.brokers.code_of["b"]))
    decision, _ = rounds.strategy.decide(replace(seen, preallocated=under_way), rounds.memory)
    assert between(decision.unloads) == {("a", "c"): 8, ("b", "c"): 8}
    assert not {unload.bundle for unload in decision.unloads} & {seen.bundles.names[row] for row in sent}


def test_rounds_without_data_do_not_count_for_a_broker_that_joined() -> None:
    rounds = cluster(a=30, b=30)
    rounds.brokers.add("c")
    rounds.round()
    rounds.missing = frozenset({"c"})
    assert moved(rounds.rounds(6)) == []
    rounds.missing = frozenset()
    rounds.rounds(2)
    assert rounds.counts()["c"] == 20


# ---- cooperative: leaving ----


def test_when_a_broker_leaves_for_good_nothing_moves_at_all() -> None:
    rounds = cluster(a=10, b=10, c=10)
    rounds.lose("b")
    decisions = rounds.rounds(10)
    assert moved(decisions) == []
    assert [decision.reason for decision in decisions] == [Reason.BROKER_LEFT] * 5 + [Reason.BALANCED] * 5


def test_a_restarting_broker_gets_its_share_when_it_returns() -> None:
    rounds = cluster(a=10, b=10, c=10)
    rounds.lose("b")
    assert moved(rounds.rounds(3)) == []
    rounds.brokers.add("b")
    unloads = moved(rounds.rounds(5))
    # What the others had before stays with them: only a, who had taken over, has more than its share.
    assert between(unloads) == {("a", "b"): 10}
    assert rounds.counts() == {"a": 10, "b": 10, "c": 10}


def test_while_one_that_left_may_come_back_nothing_is_given_to_others() -> None:
    rounds = cluster(a=12, b=12)
    rounds.lose("b")
    rounds.brokers.add("c")
    assert [len(decision.unloads) for decision in rounds.rounds(8)] == [0] * 5 + [4, 4, 4]
    assert rounds.counts() == {"a": 12, "c": 12}


def test_the_delay_is_an_option_and_0_means_no_wait() -> None:
    rounds = cluster(replace(AT_ONCE, delay_rounds=0), a=12, b=12)
    rounds.lose("b")
    rounds.brokers.add("c")
    assert len(rounds.round().unloads) == 12


def test_one_that_joined_and_leaves_again_is_forgotten() -> None:
    rounds = cluster(a=30, b=30)
    rounds.brokers.add("c")
    rounds.round()
    rounds.lose("c")
    assert moved(rounds.rounds(8)) == []
    assert rounds.memory == BrokerMembership(brokers=("a", "b"))


def test_a_broker_without_data_has_neither_left_nor_joined() -> None:
    rounds = cluster(a=10, b=10)
    rounds.missing = frozenset({"b"})
    assert [decision.reason for decision in rounds.rounds(2)] == [Reason.BALANCED] * 2
    rounds.missing = frozenset()
    rounds.owner = dict.fromkeys(rounds.owner, "a")
    assert moved(rounds.rounds(5)) == []


# ---- cooperative: what stays ----


def test_what_was_unloaded_recently_stays_and_others_go_instead() -> None:
    rounds = cluster(AT_ONCE, a=20)
    rounds.recently_unloaded = {name for name in rounds.owner if name < "a-x012"}
    rounds.brokers.add("b")
    unloads = rounds.round().unloads
    assert sorted(unload.bundle for unload in unloads) == [f"a-x{i:03}" for i in range(12, 20)]


def test_pulsars_own_bundles_neither_count_nor_move() -> None:
    own = {f"pulsar/a:8080/0x{i:08x}_0x{i + 1:08x}": "a" for i in range(50)}
    rounds = cluster(AT_ONCE, a=20)
    rounds.owner |= own
    rounds.brokers.add("b")
    unloads = rounds.round().unloads
    assert len(unloads) == 10
    assert not {unload.bundle for unload in unloads} & set(own)


def test_verdicts_say_who_joined_who_gives_and_who_is_waited_for() -> None:
    rounds = cluster(AT_ONCE, a=20, b=4)
    rounds.brokers.add("c")
    decision = rounds.round()
    assert list(map(str, decision.verdicts)) == [
        "c: BrokerJoined (0 vs 8 bundles): it joined",
        "a: BrokerJoined (20 vs 8 bundles): gives to c, which joined",
    ]
    assert {unload.why for unload in decision.unloads} == {decision.verdicts[1]}
    rounds.lose("b")
    assert list(map(str, rounds.round().verdicts)) == ["b: BrokerLeft (0 vs 5 rounds): it may come back"]


# ---- eager ----


def test_eager_deals_all_bundles_out_by_name_when_a_broker_joins_once() -> None:
    rounds = cluster(EAGER, a=4, b=2)
    rounds.brokers.add("c")
    rounds.round()
    assert rounds.owner == dict(zip(sorted(rounds.owner), "abcabc", strict=True))
    assert moved(rounds.rounds(5)) == []


def test_eager_spreads_when_a_broker_leaves_too_and_does_not_wait_for_it() -> None:
    rounds = cluster(EAGER, a=9, b=9, c=9)
    rounds.lose("c")
    assert rounds.counts() == {"a": 18, "b": 9}
    decision = rounds.round()
    assert decision.reason is Reason.BROKER_LEFT
    assert sorted(rounds.counts().values()) == [13, 14]
    assert str(decision.verdicts[0]) == "a: BrokerLeft (18 vs 14 bundles): all is spread anew: c left"


def test_eager_moves_much_more_than_cooperative() -> None:
    counts = {}
    for strategy in (EAGER, COOPERATIVE):
        rounds = cluster(strategy, a=100, b=100, c=100)
        rounds.brokers.add("d")
        counts[strategy.protocol] = len(moved(rounds.rounds(5)))
        assert set(rounds.counts().values()) == {75}
    assert counts["cooperative"] == 75
    assert counts["eager"] > 200


def test_eager_lets_stay_what_was_unloaded_recently_and_spreads_the_rest_around_it() -> None:
    rounds = cluster(EAGER, a=12)
    rounds.recently_unloaded = {name for name in rounds.owner if name < "a-x004"}
    rounds.brokers |= {"b", "c"}
    unloads = rounds.round().unloads
    assert not {unload.bundle for unload in unloads} & rounds.recently_unloaded
    assert rounds.counts() == {"a": 4, "b": 4, "c": 4}


# ---- laws ----


@given(data=st.data(), protocol=st.sampled_from(["eager", "cooperative"]))
def test_only_movable_bundles_move_and_cooperative_ones_only_to_brokers_that_joined(
    data: st.DataObject, protocol: str
) -> None:
    names = [f"b{i}" for i in range(6)]
    strategy = RebalanceOnMembershipChange(
        protocol=protocol, delay_rounds=data.draw(st.integers(0, 3)), spread_rounds=data.draw(st.integers(0, 4))
    )
    rounds = cluster(strategy, **{name: data.draw(st.integers(0, 9)) for name in names[:3]})
    for _ in range(data.draw(st.integers(1, 8))):
        here = data.draw(st.sets(st.sampled_from(names), min_size=1))
        came = here - rounds.brokers
        rounds.brokers |= here
        for name in sorted(rounds.brokers - here):
            rounds.lose(name)
        stays: Collection[str] = data.draw(st.sets(st.sampled_from(sorted(rounds.owner)))) if rounds.owner else ()
        rounds.recently_unloaded = set(stays)
        joined = rounds.memory.joined.keys() | came
        again = strategy.decide(rounds.view(), rounds.memory)
        decision = rounds.round()
        assert again == (decision, rounds.memory)
        chosen = [unload.bundle for unload in decision.unloads]
        assert len(set(chosen)) == len(chosen)
        assert not set(chosen) & rounds.recently_unloaded
        assert {unload.why for unload in decision.unloads} <= set(decision.verdicts)
        assert {unload.why.subject for unload in decision.unloads} == {unload.source for unload in decision.unloads}
        if protocol == "cooperative":
            assert {unload.destination for unload in decision.unloads} <= joined
        elif came and not stays:
            held = rounds.counts().values()
            assert max(held) - min(held) <= 1

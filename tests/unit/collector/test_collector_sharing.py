"""Who sweeps which brokers."""

from hypothesis import given
from hypothesis import strategies as st

from controller.collector.sharing import share_out

BROKERS = [f"broker-{i:02d}:8080" for i in range(12)]


def test_the_first_collector_has_all_brokers() -> None:
    assert share_out(["a"], {}, BROKERS) == {"a": tuple(BROKERS)}


def test_a_collector_that_joins_gets_its_share_and_nothing_else_moves() -> None:
    before = share_out(["a", "b"], {}, BROKERS)
    after = share_out(["a", "b", "c"], before, BROKERS)
    assert sorted(map(len, after.values())) == [4, 4, 4]
    assert all(set(after[name]) < set(before[name]) for name in ("a", "b"))


def test_the_brokers_of_a_collector_that_is_gone_go_to_the_others_at_once_who_keep_what_they_have() -> None:
    before = share_out(["a", "b", "c"], {}, BROKERS)
    after = share_out(["a", "c"], before, BROKERS)
    assert sorted(map(len, after.values())) == [6, 6]
    assert all(set(before[name]) < set(after[name]) for name in ("a", "c"))


def test_brokers_come_and_go_without_moving_others() -> None:
    before = share_out(["a", "b"], {}, BROKERS[:4])
    after = share_out(["a", "b"], before, [*BROKERS[:3], "new-1:8080", "new-2:8080"])
    stayed = set(BROKERS[:3])
    assert all(set(before[name]) & stayed <= set(after[name]) for name in ("a", "b"))


def test_collectors_beyond_the_number_of_brokers_wait() -> None:
    assert sorted(map(len, share_out(["a", "b", "c"], {}, BROKERS[:1]).values())) == [0, 0, 1]


@given(st.lists(st.tuples(st.sets(st.sampled_from("abcde"), min_size=1), st.sets(st.sampled_from(BROKERS)))))
def test_whatever_comes_and_goes_every_broker_is_with_one_collector_and_shares_are_even(
    history: list[tuple[set[str], set[str]]],
) -> None:
    held: dict[str, tuple[str, ...]] = {}
    for members, brokers in history:
        held = share_out(sorted(members), held, brokers)
        assert held.keys() == members
        assert sorted(broker for share in held.values() for broker in share) == sorted(brokers)
        assert max(map(len, held.values())) - min(map(len, held.values())) <= 1

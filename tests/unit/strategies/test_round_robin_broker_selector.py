import numpy as np

from controller.strategies.placement.round_robin_broker_selector import RoundRobinBrokerSelector, RoundRobinTurn
from tests.cluster import broker, view

PLACEMENT = RoundRobinBrokerSelector()


def turns(*candidates: str, memory: RoundRobinTurn | None = None) -> list[str | None]:
    """Who is selected, given one string of one-letter names after the other."""
    memory, found = memory or PLACEMENT.initial_memory(), []
    for names in candidates:
        selected, memory = PLACEMENT.select(tuple(names), memory)
        found.append(selected)
    return found


def test_a_broker_that_took_the_place_of_another_is_passed_over_until_it_would_have_been_the_turn_of_that() -> None:
    # x for c: in the order of abc it is b's turn, then c's, who is gone; from there on it goes by abx.
    assert turns("abc", "abx", "abx", "abx", "abx", "abx") == ["a", "b", "x", "a", "b", "x"]
    # In another order nobody is missed, so the old one stays.
    assert turns("abc", "cba", "cba", "cba") == ["a", "b", "c", "a"]


def test_of_the_candidates_the_one_whose_turn_it_is_by_name_is_acceptable() -> None:
    cluster = view(*(broker(name, usage=0.9) for name in "abcd"))
    memory, found = PLACEMENT.initial_memory(), []
    for rows in ([0, 1, 2, 3], [1, 3], [1, 3], []):
        chosen, memory = PLACEMENT.acceptable(cluster, 0, np.array(rows, np.int64), memory)
        found.append(chosen.tolist())
    assert found == [[0], [3], [1], []]
    assert memory == RoundRobinTurn(count=3, order=("b", "d"))

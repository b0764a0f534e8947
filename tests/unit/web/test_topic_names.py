"""Names of hot topics: found by their place on the ring, and left out where nobody says them."""

import threading

import pytest

from controller.model.errors import TrimtabError
from controller.model.names import topic_hash
from controller.web.topic_names import TopicNames

BUNDLE = "acme/shop/0x00000000_0xffffffff"
ORDERS, OTHER = "persistent://acme/shop/orders-partition-0", "persistent://acme/shop/other"
PLACE = topic_hash(ORDERS)
#: Two names with one CRC32.
TWINS = ("plumless", "buckeroo")


class Asked:
    """Lists *topics* for every bundle, and remembers which it was asked about."""

    def __init__(self, *topics: str) -> None:
        self.topics, self.bundles = topics, list[str]()

    def __call__(self, bundle: str) -> tuple[str, ...]:
        self.bundles.append(bundle)
        return self.topics


def test_a_topic_is_named_by_its_place() -> None:
    names = TopicNames(lambda bundle: [OTHER, ORDERS] if bundle == BUNDLE else [])
    assert names.at(BUNDLE, [PLACE, 5], 5) == {PLACE: (ORDERS,)}


def test_all_topics_at_one_place_are_named() -> None:
    assert topic_hash(TWINS[0]) == topic_hash(TWINS[1])
    names = TopicNames(lambda _: TWINS)
    assert names.at(BUNDLE, [topic_hash(TWINS[0])], 5) == {topic_hash(TWINS[0]): ("buckeroo", "plumless")}


def test_without_brokers_to_ask_nothing_is_named() -> None:
    assert TopicNames(None).at(BUNDLE, [PLACE], 5) == {}


def test_brokers_that_refuse_leave_the_place_without_a_name() -> None:
    def refused(_bundle: str) -> list[str]:
        raise TrimtabError("403 Forbidden")

    assert TopicNames(refused).at(BUNDLE, [PLACE], 5) == {}


def test_nobody_is_asked_about_a_bundle_without_hot_topics() -> None:
    asked = Asked(ORDERS)
    assert TopicNames(asked).at(BUNDLE, [], 5) == {}
    assert not asked.bundles


def test_the_brokers_are_asked_once_for_all_who_look_at_the_same_topics() -> None:
    asked = Asked(ORDERS)
    names = TopicNames(asked)
    for _ in range(3):
        assert names.at(BUNDLE, [PLACE], 5) == {PLACE: (ORDERS,)}
    assert asked.bundles == [BUNDLE]


def test_brokers_that_hang_hold_nobody_up() -> None:
    answer = threading.Event()
    names = TopicNames(lambda _: [ORDERS] if answer.wait(10) else [])
    try:
        assert names.at(BUNDLE, [PLACE], 0) == {}
    finally:
        answer.set()
    assert names.at(BUNDLE, [PLACE], 5) == {PLACE: (ORDERS,)}


def test_brokers_that_hang_are_asked_about_a_few_bundles_at_once() -> None:
    answer, asked = threading.Event(), Asked(ORDERS)

    def hang(bundle: str) -> tuple[str, ...]:
        asked(bundle)
        answer.wait(10)
        return ()

    names = TopicNames(hang)
    try:
        for number in range(40):
            assert names.at(f"acme/shop-{number}/0x00000000_0xffffffff", [PLACE], 0.001) == {}
        assert len(asked.bundles) <= 8
    finally:
        answer.set()


@pytest.mark.parametrize("odd", ["", "\ud800", "persistent://acme/shop/\x1b[2J", "x" * 100_000])
def test_an_odd_name_beside_it_does_not_hide_a_topic(odd: str) -> None:
    assert TopicNames(lambda _: [odd, ORDERS]).at(BUNDLE, [PLACE], 5) == {PLACE: (ORDERS,)}


def test_a_name_is_one_line_of_bounded_length() -> None:
    odd = "persistent://acme/shop/\n\x1b[2J" + "x" * 100_000
    (name,) = TopicNames(lambda _: [odd]).at(BUNDLE, [topic_hash(odd)], 5)[topic_hash(odd)]
    assert len(name) < 5_000
    assert name.isprintable()

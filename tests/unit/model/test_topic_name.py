import pytest

from controller.model.errors import TrimtabError
from controller.model.names import topic_hash
from controller.model.topic_name import parse_topic, partition_index


@pytest.mark.parametrize(
    ("given", "full"),
    [
        ("orders", "persistent://public/default/orders"),
        ("acme/prod/orders", "persistent://acme/prod/orders"),
        ("/orders/", "persistent://public/default/orders"),
        ("non-persistent://acme/prod/orders", "non-persistent://acme/prod/orders"),
        ("PERSISTENT://acme/prod/orders", "persistent://acme/prod/orders"),
        ("persistent://acme/prod/a://b", "persistent://acme/prod/a://b"),
    ],
)
def test_short_forms_are_completed(given: str, full: str) -> None:
    assert str(parse_topic(given)) == full


def test_a_v1_name_has_a_cluster_and_its_local_name_may_have_slashes() -> None:
    topic = parse_topic("persistent://acme/west/prod/a/b")
    assert (topic.cluster, topic.namespace, topic.local_name) == ("west", "acme/west/prod", "a/b")


def test_a_short_name_has_the_ring_position_of_its_full_name() -> None:
    assert parse_topic("orders").position == topic_hash("persistent://public/default/orders")


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("t-partition-0", 0),
        ("t-partition-12", 12),
        ("t-partition-3-partition-4", 4),
        ("t-partition-2147483647", 2147483647),
        ("t-partition-2147483648", -1),
        ("t-partition-99999999999999999999", -1),
        ("t-partition-03", -1),
        ("t-partition-+3", -1),
        ("t-partition--1", -1),
        ("t-partition-", -1),
        ("t-partition- 3", -1),
        ("t-partition-1_0", -1),
        ("t", -1),
        # As Integer.parseInt reads it: any Unicode digit up to U+FFFF.
        ("t-partition-\u0663", 3),
        ("t-partition-\U0001d7d8", -1),
        ("t-partition-1\U0001d7d8", -1),
        # Python reads no number of so many digits.
        ("t-partition-" + "1" * 5000, -1),
    ],
)
def test_a_partition_number_must_be_written_as_java_writes_it(name: str, index: int) -> None:
    assert partition_index(name) == index
    assert parse_topic(name).partition_index == index


def test_a_topic_knows_the_names_of_its_partitions() -> None:
    topic = parse_topic("t")
    assert parse_topic(topic.partition(7)).partition_index == 7
    assert topic.partition(-1) == str(topic)
    assert parse_topic("t-partition-5").partition(5) == "persistent://public/default/t-partition-5"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "a short name is topic or tenant/namespace/topic"),
        ("a/b", "a short name is"),
        ("a/b/c/d", "a short name is"),
        ("http://a/b/c", "its domain is 'http'"),
        ("persistent://a/b", "expected domain://tenant/namespace/topic"),
        ("persistent:///b/c", "'' is not a valid tenant, cluster or namespace"),
        ("persistent://a/b!/c", "'b!' is not a valid tenant, cluster or namespace"),
        ("persistent://a/\u00fc/c", "is not a valid tenant, cluster or namespace"),
        ("persistent://a/b/ ", "the part after the namespace is blank"),
    ],
)
def test_an_invalid_topic_name_is_refused_with_the_reason(name: str, why: str) -> None:
    with pytest.raises(TrimtabError) as caught:
        parse_topic(name)
    assert why in str(caught.value)
    assert repr(name) in str(caught.value)


def test_blank_means_what_it_means_in_java() -> None:
    assert parse_topic("persistent://a/b/\u00a0").local_name == "\u00a0"

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
def test_short_forms_stand_for_a_full_name(given: str, full: str) -> None:
    assert str(parse_topic(given)) == full


def test_the_old_form_has_a_cluster_and_a_name_with_slashes() -> None:
    topic = parse_topic("persistent://acme/west/prod/a/b")
    assert (topic.cluster, topic.namespace, topic.local_name) == ("west", "acme/west/prod", "a/b")
    assert not topic.is_v2


def test_it_lies_where_its_full_name_does() -> None:
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
        # As Integer.parseInt reads it: any digit, but of the first plane only.
        ("t-partition-\u0663", 3),
        ("t-partition-\U0001d7d8", -1),
    ],
)
def test_a_partition_has_a_number_that_java_would_write_alike(name: str, index: int) -> None:
    assert partition_index(name) == index
    assert parse_topic(name).partition_index == index


def test_a_partition_knows_its_topic_and_a_topic_its_partitions() -> None:
    topic = parse_topic("t")
    assert parse_topic(topic.partition(7)).partitioned_topic_name == str(topic)
    assert topic.partitioned_topic_name == str(topic)
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
        ("persistent:///b/c", "'' is no name"),
        ("persistent://a/b!/c", "'b!' is no name"),
        ("persistent://a/\u00fc/c", "is no name"),
        ("persistent://a/b/ ", "its own name is blank"),
    ],
)
def test_what_is_no_topic_is_refused_with_the_reason(name: str, why: str) -> None:
    with pytest.raises(TrimtabError) as caught:
        parse_topic(name)
    assert why in str(caught.value)
    assert repr(name) in str(caught.value)


def test_blank_is_what_java_calls_blank() -> None:
    assert parse_topic("persistent://a/b/\u00a0").local_name == "\u00a0"

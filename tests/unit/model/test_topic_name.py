import pytest

from controller.model.errors import TrimtabError
from controller.model.names import topic_hash
from controller.model.topic_name import Segment, excerpt, parse_topic, partition_index


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


@pytest.mark.parametrize(
    ("given", "full", "segment"),
    [
        ("segment://t1/sc/s1/c000-ffff-3", "segment://t1/sc/s1/c000-ffff-3", Segment(0xC000, 0xFFFF, 3)),
        ("segment://t1/sc/s1/0-3FFF-007", "segment://t1/sc/s1/0000-3fff-7", Segment(0, 0x3FFF, 7)),
        ("segment://t1/sc/s1/3fff-3fff-64", "segment://t1/sc/s1/3fff-3fff-64", Segment(0x3FFF, 0x3FFF, 64)),
        ("segment://t1/sc/a/b/0000-ffff-0", "segment://t1/sc/a/b/0000-ffff-0", Segment(0, 0xFFFF, 0)),
        ("SEGMENT://t1/sc/s1/+0-ffff-+1-", "segment://t1/sc/s1/0000-ffff-1", Segment(0, 0xFFFF, 1)),
        (f"segment://t1/sc/s1/0000-ffff-{2**63 - 1}", f"segment://t1/sc/s1/0000-ffff-{2**63 - 1}",
         Segment(0, 0xFFFF, 2**63 - 1)),
    ],
)  # fmt: skip
def test_a_segment_has_a_range_of_hashes_and_a_number(given: str, full: str, segment: Segment) -> None:
    topic = parse_topic(given)
    assert (str(topic), topic.segment, topic.namespace) == (full, segment, "t1/sc")


@pytest.mark.parametrize(
    ("descriptor", "why"),
    [
        ("3fff-0000-0", "start <= end"),
        ("0000-10000-0", "end <= ffff"),
        ("0000-zzzz-0", "hexadecimal"),
        ("0x00-3fff-0", "'0x00-3fff-0' is not that"),
        ("0000-3fff-one", "<number>"),
        ("0000-3fff-ff", "<number>"),
        ("0000-3fff-", "<number>"),
        ("0000-3fff--1", "<number>"),
        ("0000-3fff-1_0", "<number>"),
        ("0000-3fff- 1", "<number>"),
        (f"0000-3fff-{2**63}", "<number>"),
        ("0000-3fff-" + "9" * 5000, "<number>"),
        ("0000-3fff-0-partition-1", "<number>"),
        ("0000_3fff_0", "<start>-<end>-<number>"),
        ("", "'' is not that"),
    ],
)
def test_a_segment_whose_range_or_number_is_none_is_refused(descriptor: str, why: str) -> None:
    with pytest.raises(
        TrimtabError, match="expected segment://tenant/namespace/topic/<start>-<end>-<number>"
    ) as caught:
        parse_topic(f"segment://t1/sc/s1/{descriptor}")
    assert why in str(caught.value)


@pytest.mark.parametrize("name", ["segment://t1/sc/0000-3fff-0", "segment://t1/sc//0000-3fff-0", "topic://t1/sc/ "])
def test_a_segment_and_a_scalable_topic_have_a_local_name(name: str) -> None:
    with pytest.raises(TrimtabError, match="the part after the namespace is blank"):
        parse_topic(name)


@pytest.mark.parametrize(
    "name", ["topic://t1/sc/\udcff", "segment://t1/sc/\udc80/0000-ffff-0", "persistent://a/b/\ud800", "\udcff"]
)
def test_a_name_that_is_not_utf_8_is_refused(name: str) -> None:
    """Python reads such bytes of a command line as lone surrogates, which have no place on the ring."""
    with pytest.raises(TrimtabError, match="it is not valid UTF-8"):
        parse_topic(name)


def test_the_hash_of_a_segment_is_that_of_its_whole_name() -> None:
    """As a cluster of Pulsar 5.0.1 placed them: tests/samples/scalable/topics.json."""
    assert parse_topic("segment://t1/sc/s1/8000-bfff-2").position == 0xB302636A
    assert parse_topic("segment://t1/sc/s2/0000-ffff-0").position == 0xC194CDDB


def test_a_segment_belongs_to_a_scalable_topic_which_has_a_place_of_its_own() -> None:
    whole = parse_topic("segment://t1/sc/a/b/0000-3fff-0").whole
    assert whole == parse_topic("topic://t1/sc/a/b") == whole.whole
    assert (whole.is_scalable, whole.segment, whole.local_name) == (True, None, "a/b")
    assert whole.position == topic_hash("topic://t1/sc/a/b")
    assert parse_topic("persistent://t1/sc/a").whole == parse_topic("persistent://t1/sc/a")


def test_the_partition_of_a_segment_is_that_of_its_topics_name() -> None:
    assert parse_topic("segment://t1/sc/s1-partition-3/0000-3fff-0").partition_index == 3
    assert parse_topic("segment://t1/sc/s1/0000-3fff-0").partition_index == -1


def test_percent_signs_in_a_name_stay_as_they_are() -> None:
    topic = parse_topic("segment://t1/sc/a%2Fb/0000-3fff-0")
    assert (topic.local_name, str(topic.whole)) == ("a%2Fb", "topic://t1/sc/a%2Fb")


@pytest.mark.parametrize("name", ["a://" + "x" * 10_000, "t/" + "x" * 10_000, "topic://" + "!" * 10_000 + "/n/t"])
def test_of_a_very_long_name_people_are_shown_the_beginning_and_the_length(name: str) -> None:
    assert excerpt(name) == f"{name[:200]}... ({len(name):,} characters)"
    with pytest.raises(TrimtabError) as raised:
        parse_topic(name)
    assert len(str(raised.value)) < 800

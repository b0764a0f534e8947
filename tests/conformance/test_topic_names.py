import pytest

from controller.model.errors import TrimtabError
from controller.model.topic_name import PARTITION_SUFFIX, parse_topic
from tests.conformance.vectors import Case

COMPONENT = "topic_names"


def test_a_name_is_parsed_or_refused_as_in_pulsar(case: Case) -> None:
    given, expected = case["input"]["topic"], case["expected"]
    if "error" in expected:
        with pytest.raises(TrimtabError):
            parse_topic(given)
        return
    topic = parse_topic(given)
    assert {
        "name": str(topic),
        "domain": topic.domain,
        "tenant": topic.tenant,
        "namespace": topic.namespace,
        "cluster": topic.cluster,
        "local_name": topic.local_name,
        "partition_index": topic.partition_index,
        "is_partitioned": topic.partition_index != -1,
        "partitioned_topic_name": str(topic)
        if topic.partition_index == -1
        else str(topic).rpartition(PARTITION_SUFFIX)[0],
        "partition_5": topic.partition(5),
        "is_v2": topic.cluster is None,
        "crc32": topic.position,
    } == expected

from controller.model.names import BundleName, default_boundaries, find_bundle, topic_hash
from tests.conformance.brokers.hashes import HASHES
from tests.conformance.vectors import Case

COMPONENT = "topic_hash"


def test_topics_have_the_same_position_and_bundle(case: Case) -> None:
    boundaries = default_boundaries(case["config"]["num_bundles"])
    recorded = case["expected"]["boundaries"]
    if recorded is not None:  # long lists are not: then the bundles found tell
        assert [f"0x{position:08x}" for position in boundaries] == recorded
    assert case["input"]["topics"]
    for topic, expected in zip(case["input"]["topics"], case["expected"]["topics"], strict=True):
        assert {name: of(topic) for name, of in HASHES.items()} == {name: expected[name] for name in HASHES}
        assert topic_hash(topic) == expected["crc32"]
        assert str(BundleName("public/default", *find_bundle(boundaries, topic_hash(topic)))) == expected["bundle_name"]

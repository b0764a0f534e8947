"""EagerAssignor of Kafka Connect 2.6.0: who gets what, by which configuration.

The order within a share does not count: the vectors read it from the message to the member, which Kafka Connect groups
by connector in the order of a hash map.
"""

from controller.strategies.common.worker_group import NOTHING, ConfigSnapshot, Group
from controller.strategies.rebalance.eager import EagerAssignor
from tests.conformance.vectors import Case
from tests.connect_groups import as_json

COMPONENT = "connect_eager_assignor"


def test_members_get_the_same_shares_by_the_same_configuration(case: Case) -> None:
    given = case["input"]
    offsets = given["members_config_offset"]
    found = EagerAssignor().assign(
        Group(
            members=dict.fromkeys(offsets, NOTHING),
            config_offsets=offsets,
            configured=ConfigSnapshot(offset=given["snapshot_offset"], connectors=given["connectors"]),
            reread=ConfigSnapshot(offset=given["fresh_snapshot_offset"], connectors=given["connectors"]),
        )
    )
    expected = case["expected"]["assignments"]
    assert list(found.assignments) == sorted(expected)
    for name, one in found.assignments.items():
        share = as_json(one.start)
        assert {"error": int(found.config_mismatch), "offset": found.offset} == {
            key: expected[name][key] for key in ("error", "offset")
        }
        assert sorted(share["connectors"]) == sorted(expected[name]["connectors"])
        assert sorted(share["tasks"]) == sorted(expected[name]["tasks"])

"""IncrementalCooperativeAssignor of Kafka Connect 3.9.0, which waits before it takes away twice in a row.

Order-sensitive cases are checked as those of 2.6.0 are.
"""

from controller.strategies.rebalance.incremental_cooperative import Release
from tests.conformance.test_connect_incremental_cooperative_assignor import replay
from tests.conformance.vectors import Case

COMPONENT = "connect_incremental_cooperative_assignor_3_9"


def test_the_leader_answers_and_remembers_the_same(case: Case) -> None:
    replay(case, Release.V3_9)

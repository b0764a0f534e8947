from controller.strategies.placement.round_robin_broker_selector import RoundRobinBrokerSelector, RoundRobinTurn
from tests.conformance.vectors import Case, configured

COMPONENT = "round_robin_selector"


def test_the_same_brokers_take_turns(case: Case) -> None:
    placement = configured(RoundRobinBrokerSelector, case["config"])
    memory = RoundRobinTurn(count=case["input"]["start_count"])
    found = []
    for candidates in case["input"]["candidate_sequences"]:
        selected, memory = placement.select(candidates, memory)
        found.append(selected)
    assert found == case["expected"]["selected"]

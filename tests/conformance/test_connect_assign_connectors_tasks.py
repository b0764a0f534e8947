"""IncrementalCooperativeAssignor.assignConnectors and assignTasks: where new work goes."""

from controller.strategies.rebalance.incremental_cooperative.dealing import to_least_loaded
from tests.conformance.vectors import Case

COMPONENT = "connect_assign_connectors_tasks"


def test_new_work_goes_to_the_same_workers_in_the_same_order(case: Case) -> None:
    workers = {name: case["input"]["workers"][name] for name in case["input"]["worker_order"]}
    connectors = to_least_loaded(
        {name: len(one["connectors"]) for name, one in workers.items()}, case["input"]["new_connectors"]
    )
    tasks = to_least_loaded({name: len(one["tasks"]) for name, one in workers.items()}, case["input"]["new_tasks"])
    found = {
        name: {"connectors": one["connectors"] + connectors[name], "tasks": one["tasks"] + tasks[name]}
        for name, one in workers.items()
    }
    assert found == case["expected"]["workers"]
    assert list(tasks) == case["expected"]["worker_order_after"]

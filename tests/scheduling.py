"""Which tests stay together when several workers share the work (pytest-xdist), and which begin.

Most of the slow tests wait for processes, so there may be more workers than processors.  The tests of a file stay
together, in their order: they share servers and sessions.
"""

from collections.abc import Sequence
from typing import Final

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

#: Files whose test functions need nothing from each other: each function is a group.
BY_FUNCTION: Final = ("tests/e2e/test_ending.py",)
#: Groups that take long, the longest first.  They begin; whatever is not listed is quick.
LONGEST: Final = (
    "tests/e2e/test_two_controllers.py",
    "tests/integration/test_embedded_controller.py",
    "pulsar",
    "tests/e2e/test_full_rebalance.py",
    "tests/e2e/test_secured.py",
    "tests/e2e/test_journal_disk_full.py",
    "tests/e2e/test_kafka_and_zookeeper.py",
    "spark",
    "tests/integration/test_stalled_query.py",
    "tests/integration/test_a_day_behind.py",
    "tests/integration/test_zookeeper_leadership.py",
    "tests/integration/test_collect.py",
    "tests/integration/test_kafka_journal.py",
    "tests/e2e/",
    "tests/integration/",
    "tests/fuzz/",
    "tests/property/",
)
#: Tests on the shared Pulsar: they move its load and change its settings, so only one of them runs at a time.
ON_PULSAR: Final = frozenset(
    (
        "tests/e2e/test_on_pulsar.py",
        "tests/integration/test_collect_on_pulsar.py",
        "tests/integration/test_doctor_on_pulsar.py",
        "tests/integration/test_execute_on_pulsar.py",
        "tests/integration/test_pulsar_cluster.py",
    )
)
#: Tests in one Spark session: a worker of their own is cheaper than a session for each worker.
IN_SPARK: Final = frozenset(
    f"tests/integration/test_{name}.py"
    for name in (
        "arrow_sweeps_in_the_query",
        "fuzzed_records_in_the_query",
        "java_judges_as_wire_does",
        "offsets_read",
        "poison_in_the_query",
        "query_cuts",
        "records_again",
        "rehearsal",
        "rows_in_spark_and_python",
        "shared_checkpoint",
        "topics_share_rows",
        "what_reaches_python",
    )
)


def group_of(nodeid: str) -> str:
    """The group of a test: its file, or its function, or what it shares: "spark", "pulsar"."""
    file = nodeid.partition("::")[0]
    if file in IN_SPARK:
        return "spark"
    if file in ON_PULSAR:
        return "pulsar"
    return nodeid.partition("[")[0] if file in BY_FUNCTION else file


def rank(group: str) -> int:
    """How early *group* begins, 0 first."""
    matching = (nth for nth, beginning in enumerate(LONGEST) if group.startswith(beginning))
    return next(matching, len(LONGEST))


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out groups, the longest first.

    A worker must have its next test before it begins the last one it has.  So whoever has a long group gets a quick
    one next: no long group waits behind another one while a worker has nothing to do.
    """

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)

    def schedule(self) -> None:
        """See LoadScopeScheduling; the order is ours, not that of the number of tests."""
        self.config.option.loadscopereorder = False
        super().schedule()

    def _assign_work_unit(self, node: WorkerController) -> None:
        open_groups = (group for group, tests in self.assigned_work[node].items() if not all(tests.values()))
        if any(rank(group) < len(LONGEST) for group in open_groups):
            quickest = next(reversed(self.workqueue))
            self.workqueue.move_to_end(quickest, last=False)
        super()._assign_work_unit(node)


def in_order(nodeids: Sequence[str]) -> list[int]:
    """The positions of *nodeids* in the order in which they begin; what is equally long stays as it is."""
    return sorted(range(len(nodeids)), key=lambda nth: rank(group_of(nodeids[nth])))

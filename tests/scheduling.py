"""Which tests plain ``pytest`` leaves out, which stay together in one worker (tests/workers.py), and which begin.

The tests of a file stay together, in their order: they share servers and sessions.
"""

from collections.abc import Sequence
from typing import Final

#: Files whose test functions need nothing from each other: each function is a group.
BY_FUNCTION: Final = ("tests/e2e/test_ending.py",)
#: Groups that take long, the longest first.  They begin; SLOW files are next, and what is in neither is quick.
LONGEST: Final = (
    "pulsar",  # most of its ten minutes is waiting for Pulsar's own pace
    "tests/e2e/test_rolling_restart_on_pulsar.py",
    "tests/e2e/test_rolling_upgrade_of_pulsar.py",
    "tests/e2e/test_two_controllers.py",
    "tests/integration/test_embedded_controller.py",
    "tests/e2e/test_full_rebalance.py",
    "tests/e2e/test_secured.py",
    "tests/e2e/test_journal_disk_full.py",
    "tests/integration/test_bench_arrival.py",
    "tests/e2e/test_kafka_and_zookeeper.py",
    "spark",
    "tests/integration/test_spark_cluster.py",
    "tests/integration/test_bench_pipeline.py",
    "tests/integration/test_secured_kafka.py",
    "tests/integration/test_pulsar_in_processes.py",
    "tests/integration/test_stalled_query.py",
    "tests/integration/test_a_day_behind.py",
    "tests/integration/test_zookeeper_leadership.py",
    "tests/integration/test_collect.py",
    "kafka-journal",
    "tests/unit/offline/test_shipped_scenarios.py",
    "tests/e2e/",
    "tests/integration/",
    "tests/fuzz/",
    "tests/property/",
)
#: Tests on the shared Pulsar: they move its load and change its settings, so only one of them runs at a time.
ON_PULSAR: Final = frozenset(
    (
        "tests/e2e/test_defaults_of_pulsar_5.py",
        "tests/e2e/test_drain_on_pulsar.py",
        "tests/e2e/test_faults_on_real_brokers.py",
        "tests/e2e/test_on_pulsar.py",
        "tests/e2e/test_two_controllers_on_pulsar.py",
        "tests/integration/test_collect_on_pulsar.py",
        "tests/integration/test_doctor_on_pulsar.py",
        "tests/integration/test_execute_on_pulsar.py",
        "tests/integration/test_handover_on_pulsar.py",
        "tests/integration/test_pulsar_cluster.py",
        "tests/integration/test_pulsar_hostile.py",
        "tests/integration/test_pulsar_inbox.py",
        "tests/integration/test_pulsar_journal.py",
        "tests/integration/test_pulsar_log.py",
        "tests/integration/test_pulsar_recording.py",
        "tests/integration/test_pulsar_records.py",
    )
)
#: Tests that write journals of one cluster's name to the shared Kafka: their writers fence each other off, in whatever
#: topic they write.
ON_KAFKA_JOURNAL: Final = frozenset(
    f"tests/integration/test_{name}.py"
    for name in (
        "commands_tail",
        "bombs_in_kafka",
        "doctor_on_kafka_and_zookeeper",
        "explain_on_kafka",
        "kafka_journal",
        "partitions_added",
        "subscribers",
    )
)
#: Tests in one Spark session: a worker of their own is cheaper than a session for each worker.
IN_SPARK: Final = frozenset(
    f"tests/integration/test_{name}.py"
    for name in (
        "arrow_sweeps_in_the_query",
        "folder_files_in_spark",
        "fuzzed_records_in_the_query",
        "java_judges_as_wire_does",
        "local_files",
        "offsets_read",
        "poison_in_the_query",
        "pulsar_records",
        "query_cuts",
        "records_again",
        "rehearsal",
        "replay_in_spark",
        "rows_in_spark_and_python",
        "shared_checkpoint",
        "topics_share_rows",
        "what_reaches_python",
    )
)

#: Files without servers in which whole worlds are played: most tests take more than 0.3 s of processor time, or, where
#: they are about commands and what lies behind them (cli, offline, bench), and all parts have tests of their own, more
#: than 0.04 s.  Plain ``pytest`` leaves them out; ``scripts/test`` runs them, and ``pytest`` where the file, or its
#: folder, is named.
SLOW: Final = frozenset(
    f"tests/unit/{name}.py"
    for name in (
        "bench/test_balance",
        "bench/test_bench_decisions",
        "bench/test_frontier",
        "bench/test_recorded_day",
        "cli/test_apply_command",
        "cli/test_audit_command",
        "cli/test_copies_of_recordings",
        "cli/test_explain_command",
        "cli/test_incident_command",
        "cli/test_plan_command",
        "cli/test_replay_command",
        "cli/test_what_if_command",
        "lab/test_demo_scenario",
        "offline/test_applying",
        "offline/test_applying_held_back",
        "offline/test_audit",
        "offline/test_counterfactual_reading",
        "offline/test_counterfactual_replay",
        "offline/test_flips",
        "offline/test_explanations_from_journal",
        "offline/test_record_midway",
        "offline/test_rebalance_worked_example",
        "offline/test_recordings_of_pulsar",
        "offline/test_replay",
        "offline/test_shipped_scenarios",
        "offline/test_shortfall",
        "offline/test_usage_model",
        "streaming/test_shipped_code",
        "test_supply_chain",
        "test_workers",
    )
)


def group_of(nodeid: str) -> str:
    """The group of a test: its file, or its function, or what it shares: "spark", "pulsar", "kafka-journal"."""
    file = nodeid.partition("::")[0]
    if file in ON_PULSAR:  # first: what needs both has a session of its own
        return "pulsar"
    if file in IN_SPARK:
        return "spark"
    if file in ON_KAFKA_JOURNAL:
        return "kafka-journal"
    return nodeid.partition("[")[0] if file in BY_FUNCTION else file


def rank(group: str) -> int:
    """How early *group* begins, 0 first."""
    matching = (nth for nth, beginning in enumerate(LONGEST) if group.startswith(beginning))
    return next(matching, len(LONGEST) + (group not in SLOW))


def groups_of(nodeids: Sequence[str]) -> list[list[int]]:
    """The positions of *nodeids*, those of a group together, in the order in which groups begin."""
    found: dict[str, list[int]] = {}
    for nth, nodeid in enumerate(nodeids):
        found.setdefault(group_of(nodeid), []).append(nth)
    return [found[group] for group in sorted(found, key=rank)]

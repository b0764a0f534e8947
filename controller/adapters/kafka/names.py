"""The names under which processes of one cluster meet in Kafka: transactional ids and the executors' group.

Several clusters may share one Kafka.  So each name has a prefix of its own and then the cluster's name: no two clusters
share a name.
"""

from uuid import uuid4


def scope_writer(scope: str) -> str:
    """The transactional id of the holder of *scope*, which ends in the cluster's name."""
    return f"trimtab-{scope}"


def journal_writer(cluster: str) -> str:
    """The transactional id of the leading controller: a new leader that uses it fences the previous one."""
    return scope_writer(f"journal-{cluster}")


def tick_writer(cluster: str) -> str:
    """The transactional id of the leading collector: a new leader that uses it fences the previous one."""
    return scope_writer(f"ticks-{cluster}")


def result_writer(cluster: str) -> str:
    """A transactional id for one executor; no other process ever uses it."""
    return f"{result_writers(cluster)}{uuid4()}"


def result_writers(cluster: str) -> str:
    """How the transactional ids of *cluster*'s executors begin."""
    return f"trimtab-executor-{cluster}-"


def doctor_writer(cluster: str) -> str:
    """The transactional id under which ``trimtab doctor`` asks for Kafka's time."""
    return f"trimtab-doctor-{cluster}"


def executor_group(prefix: str, cluster: str) -> str:
    """The consumer group of *cluster*'s executors; *prefix* is ``group`` in [executor]."""
    return f"{prefix}-{cluster}"

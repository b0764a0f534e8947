"""Names in Kafka: none of one cluster is one of another, whatever the clusters are called."""

from itertools import product

from controller.adapters.kafka.names import doctor_writer, executor_group, journal_writer, result_writer, tick_writer

CLUSTERS = ("x", "ticks-x", "journal-x", "executor-x", "doctor-x", "x-ticks", "journal-ticks-x")


def test_no_two_clusters_share_a_transactional_id() -> None:
    names = [write(cluster) for write, cluster in product((journal_writer, tick_writer, doctor_writer), CLUSTERS)]
    assert len(set(names)) == len(names)
    assert not {result_writer(cluster) for cluster in CLUSTERS} & set(names)


def test_executors_of_two_clusters_are_two_groups_and_those_of_one_cluster_one() -> None:
    assert len({executor_group("trimtab-executor", cluster) for cluster in CLUSTERS}) == len(CLUSTERS)
    assert executor_group("mine", "x") == executor_group("mine", "x") == "mine-x"


def test_every_executor_writes_under_an_id_of_its_own() -> None:
    assert result_writer("x") != result_writer("x")

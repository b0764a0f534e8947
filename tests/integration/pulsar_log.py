"""Logs in the shared Pulsar: topics of its own for each test, all in one namespace."""

from uuid import uuid4

from controller.lab.pulsar_server import PulsarCluster
from controller.settings.pulsar_log import PulsarLogSettings

PARTITIONS = 2


def own_topics(pulsar: PulsarCluster, *, partitions: int = PARTITIONS) -> PulsarLogSettings:
    """Settings with topics that no other test uses; not created yet."""
    name = uuid4().hex[:8]
    return PulsarLogSettings(
        service_url=pulsar.service_url,
        admin_url=pulsar.admin_urls,
        namespace="public/trimtab-tests",
        metrics_topic=f"metrics-{name}",
        results_topic=f"results-{name}",
        commands_topic=f"commands-{name}",
        journal_topic=f"journal-{name}",
        dead_letters_topic=f"dead-letters-{name}",
        summaries_topic=f"summaries-{name}",
        election_topic=f"election-{name}",
        partitions=partitions,
    )

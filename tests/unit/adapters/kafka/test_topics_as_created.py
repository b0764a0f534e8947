"""Topics in Kafka as trimtab creates them."""

import pytest

from controller.adapters.kafka.specs import topic_specs
from controller.settings.log import KafkaLogSettings


@pytest.mark.parametrize(("copies", "in_sync"), [(1, "1"), (2, "1"), (3, "2"), (5, "4")])
def test_all_but_one_copy_hold_what_was_acknowledged(copies: int, in_sync: str) -> None:
    specs = topic_specs(KafkaLogSettings(bootstrap="kafka:9092", replication_factor=copies))
    assert len(specs) == 7
    assert {(spec.replication_factor, spec.config["min.insync.replicas"]) for spec in specs} == {(copies, in_sync)}


def test_every_topic_but_journal_and_election_forgets_after_a_while() -> None:
    specs = topic_specs(KafkaLogSettings(bootstrap="kafka:9092", retention_hours=48, summaries_retention_hours=24))
    kept = {spec.name.removeprefix("trimtab-"): spec.config["retention.ms"] for spec in specs}
    hours = str(48 * 3_600_000)
    assert kept == {
        **dict.fromkeys(("metrics", "results", "commands", "dead-letters"), hours),
        "journal": "-1",
        "election": "-1",
        "summaries": str(24 * 3_600_000),
    }

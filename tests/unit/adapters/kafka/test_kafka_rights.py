"""docs/security.md lists the rights of the table; a missing right is named in the error."""

import confluent_kafka as ck
import pytest

from controller.adapters.kafka.errors import failure
from controller.adapters.kafka.java_options import refusal
from controller.adapters.kafka.names import executor_group, journal_writer, result_writer, tick_writer
from controller.adapters.kafka.rights import rights
from controller.model.errors import AccessDeniedError
from controller.settings.log import KafkaLogSettings
from controller.settings.trimtab_toml import ExecutorSettings
from tests.secured import lines_of_the_page

LOG = KafkaLogSettings(bootstrap="kafka:9092")
TABLE = rights(LOG, group=ExecutorSettings().group, cluster="$CLUSTER")
CLIENT = {"sasl.username": "alice", "sasl.password": "hunter2"}


def test_the_page_lists_the_rights_of_the_table() -> None:
    table = rights(LOG, group=ExecutorSettings().group, cluster="$CLUSTER", election=True)
    assert [" ".join(line) for line in lines_of_the_page("acls ")] == [right.command for right in table]


def test_the_names_are_those_under_which_the_processes_come() -> None:
    granted = {(right.resource, right.name, right.prefixed) for right in rights(LOG, group="g", cluster="lab")}
    assert ("transactional-id", journal_writer("lab"), False) in granted
    assert ("transactional-id", tick_writer("lab"), False) in granted
    assert ("group", executor_group("g", "lab"), False) in granted
    [prefix] = [name for kind, name, prefixed in granted if prefixed]
    assert result_writer("lab").startswith(prefix)


def test_each_topic_has_the_writers_that_the_page_says() -> None:
    writers: dict[str, set[str]] = {}
    for right in TABLE:
        if right.resource == "topic" and "Write" in right.operations:
            writers.setdefault(right.name, set()).add(right.principal.removeprefix("User:trimtab-"))
    assert writers == {
        "trimtab-metrics": {"collector"},
        "trimtab-results": {"collector", "executor"},
        "trimtab-commands": {"controller"},
        "trimtab-journal": {"controller"},
        "trimtab-dead-letters": {"controller", "reader"},
        "trimtab-summaries": {"controller"},
    }
    assert not any({"Create", "Alter", "All"} & set(right.operations) for right in TABLE)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            "TOPIC_AUTHORIZATION_FAILED",
            "user 'alice' of [log.kafka.client] may not Write topic 'x': it needs an ACL for",
        ),
        ("GROUP_AUTHORIZATION_FAILED", "may not use the consumer group 'g': it needs an ACL for Read on the group"),
        ("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "may not use the transactional id 'id': it needs an ACL for Write"),
        ("CLUSTER_AUTHORIZATION_FAILED", "may not Write the cluster"),
    ],
)
def test_a_missing_right_is_told_with_who_and_what(code: str, words: str) -> None:
    error = ck.KafkaException(ck.KafkaError(getattr(ck.KafkaError, code)))
    told = failure("Kafka", error, CLIENT, operation="Write", topics=["x"], group="g", transactional_id="id")
    assert isinstance(told, AccessDeniedError)
    assert told.exit_code == 77
    assert words in str(told)
    assert "hunter2" not in str(told)


def test_any_other_error_is_told_in_kafkas_words() -> None:
    told = failure("Kafka", ck.KafkaError(ck.KafkaError._TIMED_OUT), CLIENT, operation="Write")
    assert not isinstance(told, AccessDeniedError)
    assert str(told) == "Kafka: Local: Timed out"


def test_what_sparks_client_was_refused_is_told_the_same_way() -> None:
    failed = (
        "[STREAM_FAILED] ... org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized to access"
        " topics: [trimtab-metrics]\n\tat org.apache.kafka"
    )
    assert "user 'alice' of [log.kafka.client] may not Read topic 'trimtab-metrics'" in str(
        refusal("k", CLIENT, failed)
    )
    assert refusal("k", CLIENT, "java.lang.OutOfMemoryError") is None

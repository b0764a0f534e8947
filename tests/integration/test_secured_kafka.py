"""The log on a real Kafka with SASL_SSL and ACLs: each principal with its own rights and no others."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from controller.adapters.kafka.acls import read_acls
from controller.adapters.kafka.rights import rights
from controller.adapters.kafka.specs import create_topics
from controller.log.inbox import AnswerRecord, Delivery
from controller.log.kafka.log import KafkaLog
from controller.model.errors import AccessDeniedError
from controller.settings.log import KafkaLogSettings
from controller.settings.trimtab_toml import ExecutorSettings
from tests.commands import T
from tests.journal_entries import UNLOAD, entry
from tests.kafka_log import collector_in, inbox_in, journal_in, read_all
from tests.secured import ANOTHER_CA, CA, EXPIRED, SERVER, grant_what_the_page_says
from tests.secured_servers import SUPER, SecuredKafka

pytestmark = pytest.mark.integration

CLUSTER = "lab"
USERS = {f"trimtab-{role}": f"{role}-password" for role in ("collector", "controller", "executor", "reader")}
EXECUTOR = ExecutorSettings(session_timeout_seconds=6)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    """With the topics, and the rights that docs/security.md lists."""
    kafka = SecuredKafka(
        tmp_path_factory.mktemp("kafka"), users={**USERS, "stranger": "strange"}, tls=SERVER, authorities=CA
    )
    kafka.start()
    try:
        create_topics(log(kafka, SUPER))
        grant_what_the_page_says(kafka, CLUSTER)
        yield kafka
    finally:
        kafka.stop()


def log(server: SecuredKafka, user: str, **changed: Any) -> KafkaLogSettings:
    client = {**server.client(user, changed.pop("password", None)), **changed.pop("client", {})}
    return KafkaLogSettings.model_validate(
        {"bootstrap": server.bootstrap, "partitions": 2, "client": client, **changed}
    )


def denied(attempt: Callable[[], object], *words: str) -> str:
    """What is said by an attempt that is refused for access, within seconds."""
    began = time.monotonic()
    with pytest.raises(AccessDeniedError) as caught:
        attempt()
    assert time.monotonic() - began < 30
    told = str(caught.value)
    assert all(word in told for word in words), told
    assert "KafkaError{" not in told
    assert "-password" not in told
    return told


def test_each_principal_does_its_work_with_the_rights_of_the_page(server: SecuredKafka) -> None:
    deadline = time.monotonic() + 120
    collector = collector_in(log(server, "trimtab-collector"), cluster=CLUSTER)
    collector.lead(0)
    collector.publish([("broker:8080", b"{}")], 10)
    collector.tick(T, {"broker:8080": None})
    arrived: list[object] = []
    while len(arrived) < 2:
        arrived += collector.arrived()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    collector.close()

    journal = journal_in(log(server, "trimtab-controller"), cluster=CLUSTER)
    journal.open()
    journal.begin_epoch(1)
    journal.append(entry(T, UNLOAD), epoch=1, issued_at_ms=T, before_commit=lambda: None)
    inbox = inbox_in(log(server, "trimtab-executor"), EXECUTOR, cluster=CLUSTER)
    deliveries: list[Delivery] = []
    while len(deliveries) < 3:  # the epoch in both partitions, and the command
        deliveries += inbox.poll(16, 0.5)
        assert time.monotonic() < deadline
    command = next(each for each in deliveries if b"unload" in each.value)
    inbox.begin(command.partition, UNLOAD.id)
    inbox.answer([AnswerRecord(partition=command.partition, key="tenant/ns", value=b"{}")])
    inbox.close()

    for topic in ("metrics", "results", "commands", "journal", "dead-letters"):
        reader = log(server, "trimtab-reader")
        list(read_all(reader.bootstrap, f"trimtab-{topic}", 0, client=reader.client))


def test_what_a_principal_may_not_do_is_told_by_topic_group_and_id(server: SecuredKafka) -> None:
    def tick_as(user: str) -> None:
        collector_in(log(server, user), cluster=CLUSTER).lead(0)

    def journal_as(user: str) -> None:
        journal_in(log(server, user), cluster=CLUSTER).open()

    def take_as(user: str) -> None:
        inbox = inbox_in(log(server, user), EXECUTOR, cluster=CLUSTER)
        try:
            for _ in range(20):
                inbox.poll(1, 0.5)
        finally:
            inbox.close()

    denied(lambda: journal_as("trimtab-collector"), "user 'trimtab-collector'", "may not Read topic 'trimtab-journal'")
    denied(lambda: tick_as("trimtab-controller"), "user 'trimtab-controller'", "transactional id 'trimtab-ticks-lab'")
    denied(lambda: take_as("trimtab-controller"), "user 'trimtab-controller'", "id 'trimtab-executor-lab-")
    denied(lambda: journal_as("stranger"), "user 'stranger'", "Describe, or else Create", "'trimtab-")

    publisher = collector_in(log(server, "trimtab-executor"), cluster=CLUSTER)
    denied(lambda: publisher.publish([("b", b"{}")], 10), "may not Write topic 'trimtab-metrics'")
    # A transaction as itself, on a topic that is not its own.
    astray = log(server, "trimtab-collector", results_topic="trimtab-commands", commands_topic="trimtab-results")
    collector = collector_in(astray, cluster=CLUSTER)

    def tick_astray() -> None:
        collector.lead(0)
        collector.tick(T, {})

    for _ in range(10):  # librdkafka refuses the second record before or after it says why it refused the first
        assert "trimtab-metrics" not in denied(tick_astray, "may not Write topic 'trimtab-commands': it needs an ACL")
    collector.close()

    def read() -> None:
        with closing(KafkaLog(log(server, "trimtab-executor"), cluster=CLUSTER).read("journal")) as reader:
            list(reader.read_to_end())

    denied(read, "user 'trimtab-executor' of [log.kafka.client] may not Read topic 'trimtab-journal'")


def test_the_reader_may_read_the_acls_and_finds_those_of_the_page(server: SecuredKafka) -> None:
    reader = log(server, "trimtab-reader")
    found = read_acls(server.bootstrap, client=reader.client, answer_seconds=10)
    assert found is not None
    wanted = {
        (right.principal, right.resource, right.name, "prefixed" if right.prefixed else "literal", operation)
        for right in rights(reader, group=EXECUTOR.group, cluster=CLUSTER, election=True)
        for operation in right.operations
    }
    assert {each[:5] for each in found} == wanted
    collector = log(server, "trimtab-collector").client
    denied(
        lambda: read_acls(server.bootstrap, client=collector, answer_seconds=10),
        "user 'trimtab-collector' of [log.kafka.client] may not Describe the cluster",
    )


_SPARK = """
import json, sys
from pathlib import Path
from controller.adapters.disk import jars
from controller.adapters.kafka.java_options import refusal
from controller.settings.log import KafkaLogSettings
from streaming.spark.session import start_session
from streaming.batches.gate import GATED_KAFKA
from streaming.sources import kafka_options

spark = start_session("local[1]", 1, {"spark.driver.memory": "512m"}, jars.fetch("connector"), Path(sys.argv[1]))
for given in map(json.loads, sys.argv[2:]):
    log = KafkaLogSettings.model_validate(given)
    try:
        print(spark.read.format(GATED_KAFKA).options(**kafka_options(log, 1 << 24)).load().count() > 0)
    except Exception as error:
        print(refusal(log.bootstrap, log.client, str(error)))
spark.stop()
"""


def test_spark_reads_what_the_controller_may_and_says_what_another_may_not(
    server: SecuredKafka, tmp_path: Path
) -> None:
    collector = collector_in(log(server, "trimtab-collector"), cluster=CLUSTER)
    collector.publish([("broker:8080", b"{}")], 10)
    collector.close()
    given = [
        {"bootstrap": server.bootstrap, "client": server.client(user)}
        for user in ("trimtab-controller", "trimtab-executor")
    ]
    command = [sys.executable, "-c", _SPARK, str(tmp_path), *map(json.dumps, given)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=400, check=True, env=os.environ)
    read, refused = run.stdout.splitlines()[-2:]
    assert read == "True"
    assert "user 'trimtab-executor' of [log.kafka.client] may not Read topic 'trimtab-metrics'" in refused
    [spark_log] = tmp_path.iterdir()
    told = run.stdout + run.stderr + spark_log.read_text()
    assert not any(password in told for password in USERS.values())


def test_who_may_see_the_commands_but_not_join_the_group_is_told_the_group(server: SecuredKafka) -> None:
    other = EXECUTOR.model_copy(update={"group": "somebody-elses"})

    def take() -> None:
        inbox = inbox_in(log(server, "trimtab-executor"), other, cluster=CLUSTER)
        try:
            for _ in range(20):
                inbox.poll(1, 0.5)
        finally:
            inbox.close()

    denied(take, "may not use the consumer group 'somebody-elses-lab'")


@pytest.mark.parametrize(
    ("user", "changed", "words"),
    [
        (
            "trimtab-collector",
            {"password": "wrong"},
            "refuses user 'trimtab-collector' of [log.kafka.client]: wrong user name or password",
        ),
        (
            "trimtab-collector",
            {"client": {"ssl.ca.location": str(ANOTHER_CA)}},
            "the server's certificate is refused: unable to get local issuer certificate; [log.kafka.client] ssl.ca",
        ),
        (
            "trimtab-collector",
            {"client": {"security.protocol": "PLAINTEXT"}},
            "it speaks TLS: [log.kafka.client] ",
        ),
        ("trimtab-collector", {"client": {"sasl.mechanism": "SCRAM-SHA-512"}}, "it requires another sasl.mechanism"),
    ],
)
def test_wrong_credentials_are_told_by_name(
    server: SecuredKafka, user: str, changed: dict[str, Any], words: str
) -> None:
    denied(lambda: create_topics(log(server, user, **changed)), words)


def test_a_broker_whose_certificate_has_expired_is_told(tmp_path: Path) -> None:
    kafka = SecuredKafka(tmp_path, users=USERS, tls=EXPIRED, authorities=ANOTHER_CA, trusting=True)
    kafka.start()
    try:
        strict = {"ssl.endpoint.identification.algorithm": "https"}
        denied(
            lambda: create_topics(log(kafka, "trimtab-collector", client=strict)),
            "the server's certificate is refused: certificate has expired; [log.kafka.client] ssl.ca.location",
        )
    finally:
        kafka.stop()

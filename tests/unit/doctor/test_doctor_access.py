"""The doctor on ACLs: who else may change what trimtab trusts."""

from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from controller.adapters.kafka.acls import Acl
from controller.adapters.kafka.rights import rights
from controller.cli.doctor import doctor
from controller.doctor.checks import judge
from tests.doctor import facts, kafka, kafka_log, only, problems, settings, zookeeper

STRANGER = "User:stranger"
WORLD = "User:*"


def acl(principal: str, resource: str, name: str, operation: str = "Write", **changed: Any) -> Acl:
    return Acl(principal, resource, name, **{"pattern": "literal", "operation": operation, "allows": True, **changed})


def of_the_table() -> tuple[Acl, ...]:
    """The ACLs of docs/security.md."""
    ours = settings()
    assert ours.log.kafka is not None
    return tuple(
        acl(right.principal, right.resource, right.name, operation, pattern="prefixed" if right.prefixed else "literal")
        for right in rights(ours.log.kafka, group=ours.executor.group, cluster=ours.cluster.name)
        for operation in right.operations
    )


def test_the_rights_of_the_page_are_fine() -> None:
    healthy = judge(facts(kafka=kafka(acls=of_the_table())))
    assert [each.severity for each in healthy if each.code == "kafka-acls"] == ["ok"]


def test_a_kafka_without_authorizer_is_open() -> None:
    found = only(kafka=kafka(acls=None))
    assert (found.code, found.severity) == ("kafka-open", "warning")
    assert "no authorizer" in found.observed


def test_acls_that_cannot_be_read_are_reported_as_unknown() -> None:
    found = only(kafka=kafka(acls=(), acl_error="user 'x' may not Describe the cluster"))
    assert (found.code, found.severity) == ("acls-unknown", "warning")
    assert "Describe the cluster" in found.observed


@pytest.mark.parametrize(
    ("entry", "where", "severity"),
    [
        (acl(STRANGER, "topic", "trimtab-metrics"), "topic trimtab-metrics", "warning"),
        (acl(WORLD, "topic", "trimtab-metrics"), "topic trimtab-metrics", "error"),
        (acl(WORLD, "topic", "trimtab-commands", "All"), "topic trimtab-commands", "error"),
        (acl(STRANGER, "topic", "trimtab-journal", "Delete"), "topic trimtab-journal", "warning"),
        (acl(STRANGER, "topic", "trimtab-metrics", "AlterConfigs"), "topic trimtab-metrics", "warning"),
        # One of ours, on a topic that is another's.
        (acl("User:trimtab-collector", "topic", "trimtab-commands"), "topic trimtab-commands", "warning"),
        (acl("User:trimtab-collector", "topic", "trimtab-metrics", "All"), "topic trimtab-metrics", "warning"),
        (acl(STRANGER, "transactional-id", "trimtab-journal-demo"), "transactional-id trimtab-journal-demo", "warning"),
        (
            acl(STRANGER, "transactional-id", "trimtab-executor-demo-1"),
            "transactional-id trimtab-executor-demo-*",
            "warning",
        ),
        (acl(STRANGER, "group", "trimtab-executor-demo", "Read"), "group trimtab-executor-demo", "warning"),
    ],
)
def test_other_principals_that_may_change_something_are_reported(entry: Acl, where: str, severity: str) -> None:
    found = only(kafka=kafka(acls=(*of_the_table(), entry)))
    assert (found.code, found.severity, found.objects) == ("acl-too-wide", severity, (where,))
    assert entry.principal in found.observed
    assert f"--remove --allow-principal '{entry.principal}' --operation {entry.operation}" in found.advice


def test_patterns_reach_every_name_that_they_cover() -> None:
    every = acl(WORLD, "topic", "*")
    assert len(problems(kafka=kafka(acls=(every,)))) == 6
    prefixed = acl(STRANGER, "topic", "trimtab-", pattern="prefixed")
    assert {each.code for each in problems(kafka=kafka(acls=(prefixed,)))} == {"acl-too-wide"}
    assert len(problems(kafka=kafka(acls=(prefixed,)))) == 6
    ids = acl(STRANGER, "transactional-id", "trimtab-", pattern="prefixed")
    assert len(problems(kafka=kafka(acls=(ids,)))) == 4


@pytest.mark.parametrize(
    "harmless",
    [
        acl(STRANGER, "topic", "trimtab-metrics", "Read"),
        acl(STRANGER, "topic", "trimtab-metrics", "Describe"),
        acl(STRANGER, "topic", "other"),
        acl(STRANGER, "topic", "trimtab-metrics-of-others", pattern="prefixed"),
        acl(WORLD, "topic", "trimtab-metrics", allows=False),
        acl(STRANGER, "group", "trimtab-metrics", "Read"),
        acl(STRANGER, "transactional-id", "trimtab-executor-other-1"),
    ],
)
def test_acls_that_change_nothing_of_ours_are_not_reported(harmless: Acl) -> None:
    assert problems(kafka=kafka(acls=(*of_the_table(), harmless))) == []


def test_principals_of_other_names_are_those_of_the_settings() -> None:
    named = settings(
        log={
            "kind": "kafka",
            "kafka": {"bootstrap": "kafka:9092", "principals": {"collector": "User:CN=collector"}},
        }
    )
    ours = acl("User:CN=collector", "topic", "trimtab-metrics")
    assert problems(settings=named, kafka=kafka(log=kafka_log(named), acls=(ours,))) == []
    found = only(
        settings=named,
        kafka=kafka(log=kafka_log(named), acls=(acl("User:trimtab-collector", "topic", "trimtab-metrics"),)),
    )
    assert found.expected == "User:CN=collector alone"


def test_an_election_without_credentials_is_open() -> None:
    bare = settings(election={"kind": "zookeeper", "hosts": "zk:2181", "path": "/trimtab"})
    found = only(settings=bare)
    assert (found.code, found.severity, found.objects) == ("zookeeper-open", "warning", ("/trimtab/demo",))
    assert "[election.auth]" in found.advice


@pytest.mark.parametrize(
    ("scheme", "nodes", "command"),
    [
        ("sasl", ("/trimtab/demo/epoch",), "in zkCli.sh as 'trimtab': setAcl -R /trimtab/demo auth::cdrwa"),
        (
            "digest",
            ("/trimtab", "/trimtab/demo"),
            "addauth digest trimtab:PASSWORD, then setAcl -R /trimtab auth::cdrwa",
        ),
    ],
)
def test_open_nodes_are_listed_with_the_command_that_closes_them(
    scheme: str, nodes: tuple[str, ...], command: str
) -> None:
    auth = {"scheme": scheme, "user": "trimtab", "password_file": "/password"}
    ours = settings(election={"kind": "zookeeper", "hosts": "zk:2181", "path": "/trimtab", "auth": auth})
    found = only(settings=ours, zookeeper=zookeeper(ours, open_nodes=nodes))
    assert (found.code, found.objects) == ("zookeeper-open", nodes)
    assert found.advice.endswith(command)


def test_nodes_that_cannot_be_read_are_reported() -> None:
    found = only(zookeeper=zookeeper(nodes_error="refuses user 'trimtab'"))
    assert (found.code, found.observed) == ("zookeeper-acls-unknown", "refuses user 'trimtab'")


def test_grants_prints_the_rights_for_these_settings_without_connecting(tmp_path: Path) -> None:
    conf = tmp_path / "trimtab.toml"
    conf.write_text(
        """
        cluster.name = "lab"
        election = {kind = "file", path = "election"}
        checkpoint.path = "checkpoint"
        log.kind = "kafka"
        log.kafka.bootstrap = "nowhere:1"
        log.kafka.metrics_topic = "loads"
        log.kafka.principals.collector = "User:CN=c"
        """
    )
    app = typer.Typer()
    app.command()(doctor)
    answer = CliRunner().invoke(app, ["--conf", str(conf), "--grants"])
    assert answer.exit_code == 0, answer.output
    first = answer.stdout.splitlines()[0]
    assert first == (
        "kafka-acls.sh --bootstrap-server nowhere:1 --add --allow-principal User:CN=c --operation Read"
        " --operation Write --topic loads"
    )
    assert "--transactional-id trimtab-ticks-lab" in answer.stdout

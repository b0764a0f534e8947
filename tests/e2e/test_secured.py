"""The whole of it on servers that serve nobody without credentials: Kafka by SASL_SSL and ACLs, ZooKeeper by digest
and TLS, Pulsar by tokens.  Each process is a principal of its own, with the rights of docs/security.md and no more."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from kazoo.security import ACL, make_acl, make_digest_acl_credential

from controller.adapters.kafka.acls import read_acls
from controller.adapters.kafka.specs import create_topics
from controller.adapters.network.waiting import wait_for
from controller.adapters.pulsar.admin import Credentials
from controller.adapters.pulsar.log import topics
from controller.adapters.pulsar.log.client import topic_name
from controller.adapters.pulsar.log.connection import LogConnection
from controller.adapters.pulsar.log.ends import all_extents, log_extents, starts
from controller.adapters.zookeeper.client import ZooKeeperConnection
from controller.doctor.checks import judge
from controller.doctor.gather import gather
from controller.lab.processes import Processes
from controller.lab.pulsar_demo import next_entry
from controller.lab.pulsar_release import PulsarRelease
from controller.lab.pulsar_server import CLUSTER, PulsarCluster
from controller.lab.pulsar_stage import StageAdmin
from controller.log.commands import CommandLog, IssuedEvent
from controller.log.inbox import Inbox
from controller.log.journal import LogJournal
from controller.log.pulsar.log import PulsarLog
from controller.log.recent import recent_results
from controller.log.tail import LogTail
from controller.log.ticks import MetricsLog
from controller.model.errors import AccessDeniedError
from controller.model.journal import JournalEntry
from controller.settings.log import KafkaLogSettings
from controller.settings.pulsar_log import PulsarLogSettings
from controller.settings.trimtab_toml import Settings, read_settings
from tests.pulsar_tokens import demanding_tokens, token
from tests.secured import CA, SERVER, access, grant_what_the_page_says, lines_of_the_page, ours, secret
from tests.secured_servers import SUPER, SUPER_PASSWORD, SecuredKafka, SecuredZooKeeper

pytestmark = [pytest.mark.e2e, pytest.mark.extended]

ROLES = ("collector", "controller", "executor", "reader")
USERS = {f"trimtab-{role}": f"{role}-password" for role in ROLES}
NAMESPACE = "secured/ns"
MOST_TOPICS = 4
#: Intervals until something is split.
INTERVALS = 8
REFUSED = 77


class Admin(StageAdmin):
    def create_topic(self, name: str) -> None:
        self._put(f"/admin/v2/persistent/{NAMESPACE}/{name}", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    kafka: SecuredKafka
    zookeeper: SecuredZooKeeper
    pulsar: PulsarCluster


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory, pulsar_release: PulsarRelease) -> Iterator[Servers]:
    folder = tmp_path_factory.mktemp("secured")
    superusers = ("admin", *USERS)
    found = Servers(
        kafka=SecuredKafka(folder / "kafka", users=USERS, tls=SERVER, authorities=CA),
        zookeeper=SecuredZooKeeper(folder / "zookeeper", scheme="digest", users={}, tls=SERVER),
        pulsar=PulsarCluster(folder / "pulsar", settings=demanding_tokens(superusers), release=pulsar_release),
    )
    started = (found.zookeeper, found.kafka, found.pulsar)
    with ExitStack() as stack, ThreadPoolExecutor(len(started)) as pool:
        for server in started:
            stack.callback(server.stop)
        for starting in [pool.submit(server.start) for server in started]:
            starting.result()
        prepare(found, folder)
        yield found


def prepare(servers: Servers, folder: Path) -> None:
    """What an administrator does: topics, ACLs and nodes as the page has them."""
    create_topics(
        KafkaLogSettings.model_validate(
            {"bootstrap": servers.kafka.bootstrap, "partitions": 2, "client": servers.kafka.client()}
        )
    )
    grant_what_the_page_says(servers.kafka, CLUSTER)
    administrator = access(servers.zookeeper.hosts, folder, "digest", SUPER, SUPER_PASSWORD, ours(""))
    connection = ZooKeeperConnection(administrator, session_seconds=10)
    with closing(connection):
        connection.open(30)
        for command, node, value, acl in lines_of_the_page("zk "):
            assert command == "create"
            connection.client.create(
                node.replace("$CLUSTER", CLUSTER), value.encode(), acl=list(map(digest, acl.split(",")))
            )


def digest(entry: str) -> ACL:
    """An entry of the page, sasl:USER:PERMISSIONS, for the user of that name by digest."""
    _, user, permissions = entry.split(":")
    granted = {letter: letter in permissions for letter in "cdrwa"}
    return make_acl(
        "digest",
        make_digest_acl_credential(user, USERS[user]),
        create=granted["c"],
        delete=granted["d"],
        read=granted["r"],
        write=granted["w"],
        admin=granted["a"],
    )


def conf(folder: Path, servers: Servers, role: str, **wrong: str) -> Path:
    """The settings of *role*; *wrong* puts other values in the place of its credentials."""
    user = f"trimtab-{role}"
    # The reader looks at the election as the controllers' user.
    elector = "trimtab-collector" if role == "collector" else "trimtab-controller"
    client = {
        **{key: value for key, value in servers.kafka.client(user).items() if key != "sasl.password"},
        "sasl.username": wrong.get("user", user),
        "sasl.password_file": secret(folder, wrong.get("kafka", USERS[user])),
    }
    elector_file = secret(folder, wrong.get("zookeeper", USERS[elector]))
    file = folder / f"{role}{'-wrong' if wrong else ''}.toml"
    (folder / "broker.conf").write_text(
        f"loadBalancerNamespaceBundleMaxTopics={MOST_TOPICS}\nloadBalancerNamespaceBundleMaxSessions=1000000\n"
    )
    text = f"""
        cluster.name = "{CLUSTER}"
        intervals = {{ period_seconds = 10, shards = 2 }}
        checkpoint.path = "checkpoint"
        decisions = {{ mode = "active", shed = false }}
        executor = {{ session_timeout_seconds = 6 }}
        [log]
        kind = "kafka"
        [log.kafka]
        bootstrap = "{servers.kafka.bootstrap}"
        partitions = 2
        [log.kafka.client]
        {chr(10).join(f"{json.dumps(key)} = {json.dumps(value)}" for key, value in client.items())}
        [election]
        kind = "zookeeper"
        hosts = "{servers.zookeeper.hosts}"
        path = "/trimtab"
        auth = {{ scheme = "digest", user = "{elector}", password_file = "{elector_file}" }}
        tls = {{ trust_certs = "{CA}" }}
        [pulsar]
        admin_url = {json.dumps(servers.pulsar.admin_urls)}
        token_file = "{secret(folder, token(user))}"
        [spark]
        master = "local[2]"
        shuffle_partitions = 1
        conf = {{ "spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" }}
        """
    file.write_text("\n".join(line.strip() for line in text.splitlines()))
    return file


@pytest.fixture
def admin(servers: Servers) -> Iterator[Admin]:
    """A namespace of one bundle with more topics than a bundle may have."""
    found = Admin(servers.pulsar.admin_urls, cluster=CLUSTER, credentials=Credentials(token=token("admin")))
    found.create_namespace(NAMESPACE, 1)
    for number in range(2 * MOST_TOPICS):
        found.create_topic(f"topic-{number}")
    yield found
    found.close()


def test_each_process_does_its_part_with_its_own_rights_and_a_decision_is_carried_out(
    servers: Servers, admin: Admin, tmp_path: Path
) -> None:
    confs = {role: conf(tmp_path, servers, role) for role in ROLES}
    reader = read_settings(confs["reader"])
    with ExitStack() as stack:
        execute, run, collect = (
            stack.enter_context(Processes(confs[role], tmp_path)) for role in ("executor", "controller", "collector")
        )
        execute.start("execute")
        run.start("run")
        run.wait_for("run", "reads the log")
        collect.start("collect")
        entry = splitting(reader, run, execute, collect)
        assert {command.bundle.rpartition("/")[0] for command in entry.decision.commands} == {NAMESPACE}
        wait_for_boundaries(admin, execute)
        # Before they are stopped: the group's members are looked at, too.
        told = {each.code: each for each in judge(gather(reader))}
        assert (collect.stop(), run.stop(), execute.stop()) == ({"collect": 0}, {"run": 0}, {"execute": 0})
    results = recent_results(reader, entry.interval)
    assert {results[command.id].status for command in entry.decision.commands} <= {"done", "already_done"}

    assert {"kafka-acls", "zookeeper-acls", "permissions", "balancing-off", "metrics-flow"} <= told.keys()
    assert [each for each in told.values() if each.severity == "error"] == []
    assert not {"kafka-open", "acl-too-wide", "acls-unknown", "zookeeper-open", "kafka-not-writable"} & told.keys()
    logs = "".join(file.read_text(errors="replace") for file in tmp_path.glob("*.log"))
    of_spark = "".join(file.read_text(errors="replace") for file in tmp_path.glob("**/spark-logs/*.log"))
    assert not [hidden for hidden in (*USERS.values(), *map(token, USERS)) if hidden in logs + of_spark]
    assert "Traceback" not in logs


def splitting(reader: Settings, run: Processes, *others: Processes) -> JournalEntry:
    """The first decision with a command."""
    after = 0
    for _ in range(INTERVALS):
        entry = next_entry(reader, after, run)
        if entry.decision.commands:
            return entry
        after = entry.interval
        for each in others:
            each.check()
    raise AssertionError(f"nothing was decided in {INTERVALS} intervals: {entry.decision.summary}")


def wait_for_boundaries(admin: Admin, execute: Processes) -> None:
    deadline = time.monotonic() + 60
    while len(admin.boundaries(NAMESPACE)) < 3:
        execute.check()
        assert time.monotonic() < deadline, execute.log("execute").read_text()[-3000:]
        time.sleep(0.2)


def test_who_may_not_read_the_acls_is_told_so_and_not_that_there_are_none(servers: Servers) -> None:
    kafka = servers.kafka
    with pytest.raises(AccessDeniedError, match=r"user 'trimtab-collector' .* may not Describe the cluster"):
        read_acls(kafka.bootstrap, client=kafka.client("trimtab-collector"), answer_seconds=10)


@pytest.mark.parametrize(
    ("command", "role", "wrong", "words"),
    [
        ("collect", "collector", {"kafka": "wrong"}, "refuses user 'trimtab-collector' of [log.kafka.client]"),
        ("collect", "collector", {"zookeeper": "wrong"}, "to user 'trimtab-collector' of [election.auth]"),
        (
            "execute",
            "executor",
            {"user": "trimtab-collector", "kafka": USERS["trimtab-collector"]},
            "user 'trimtab-collector' of [log.kafka.client] may not use the transactional id 'trimtab-executor-",
        ),
    ],
)
def test_a_process_with_wrong_credentials_ends_with_one_line_that_names_them(
    servers: Servers, tmp_path: Path, command: str, role: str, wrong: dict[str, str], words: str
) -> None:
    # The nodes of the election are there, and not this password's.
    settings = conf(tmp_path, servers, role, **wrong)
    run = subprocess.run(
        [sys.executable, "-m", "controller.cli", command, "--conf", str(settings)],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env=os.environ,
    )
    assert run.returncode == REFUSED, run.stderr
    assert words in run.stderr.splitlines()[-1]
    assert "Traceback" not in run.stderr
    assert not [hidden for hidden in USERS.values() if hidden in run.stderr]


LOG_TENANT = "secured-log"
LOG_NAMESPACE = f"{LOG_TENANT}/trimtab"


def log_in_pulsar(folder: Path, servers: Servers, shown: str, urls: int | None = None) -> PulsarLogSettings:
    """The log in Pulsar, for who shows the token *shown*; with the first *urls* addresses of the admin API."""
    return PulsarLogSettings(
        service_url=servers.pulsar.service_url,
        admin_url=servers.pulsar.admin_urls[:urls],
        namespace=LOG_NAMESPACE,
        partitions=2,
        token_file=secret(folder, shown),
    )


def test_a_log_in_pulsar_needs_no_more_rights_than_its_page_says(servers: Servers, tmp_path: Path) -> None:
    def as_role(role: str, **more: int) -> PulsarLogSettings:
        return log_in_pulsar(tmp_path, servers, token(role), **more)

    grants = {"log-user": ["produce", "consume"], "log-reader": ["consume"]}
    shown = Credentials(token=token("admin"))
    with closing(Admin(servers.pulsar.admin_urls, cluster=CLUSTER, credentials=shown)) as admin:
        admin._put(f"/admin/v2/tenants/{LOG_TENANT}", {"allowedClusters": [CLUSTER]})
        with closing(LogConnection(as_role("admin"))) as connection:
            topics.create_topics(connection)
        for role, rights in grants.items():
            path = f"/admin/v2/namespaces/{LOG_NAMESPACE}/permissions/{role}"
            admin._call("POST", path, {}, body=json.dumps(rights).encode())

    user = as_role("log-user")
    with closing(MetricsLog(PulsarLog(user, cluster=CLUSTER), cluster=CLUSTER)) as log:
        log.publish([("broker-1:8080", b"{}")])
    with closing(LogJournal(PulsarLog(user, cluster=CLUSTER), cluster=CLUSTER)) as journal:
        journal.open()
        journal.begin_epoch(1)
    assert [event.value for event in opened_commands(as_role("log-reader"))]
    tail = LogTail(lambda: PulsarLog(as_role("log-reader"), cluster=CLUSTER), cluster=CLUSTER, endless=True)
    assert tail.journal_tail(1, b"").epoch == 1
    metrics = topic_name(user, user.metrics_topic)
    with closing(log_extents(user)) as http:
        assert sum(extent.entries for extent in all_extents(http, [metrics]).values()) == 1
        assert set(starts(http, [metrics], start_ms=1, at_end=False)) == {(metrics, 0), (metrics, 1)}

    with (
        closing(Inbox(PulsarLog(user, cluster=CLUSTER), group="executors", cluster=CLUSTER)),
        closing(topics.log_admin(user)) as asked,
    ):
        of_commands = (LOG_NAMESPACE, user.commands_topic, f"executors-{CLUSTER}")
        wait_for(lambda: len(asked.active_consumers(*of_commands)) == user.partitions, 30, every=0.2)

    with pytest.raises(AccessDeniedError, match="may not produce here"):
        MetricsLog(PulsarLog(as_role("log-reader"), cluster=CLUSTER), cluster=CLUSTER).publish([("a:8080", b"{}")])
    with pytest.raises(AccessDeniedError, match=r"may not consume here|are refused"):
        opened_commands(as_role("nobody"))
    with pytest.raises(AccessDeniedError, match=r"the credentials in \[log.pulsar\] are refused"):
        opened_commands(log_in_pulsar(tmp_path, servers, token("log-user")[:-4] + "AAAA"))


def opened_commands(log: PulsarLogSettings) -> list[IssuedEvent]:
    with closing(CommandLog(PulsarLog(log, cluster=CLUSTER))) as commands:
        return [*commands.read()]

"""Servers that serve nobody unauthenticated, and who comes to them."""

import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from controller.adapters.kafka.acls import read_acls
from controller.adapters.network.tls import Tls
from controller.adapters.network.waiting import wait_for
from controller.adapters.zookeeper.access import ZooKeeperAccess
from controller.settings.access import ZooKeeperAuthSettings
from tests.secured_servers import SecuredKafka, ServerTls

TLS = Path(__file__).parent / "data" / "tls"
CA, ANOTHER_CA = TLS / "ca.pem", TLS / "another-ca.pem"
#: A server at 127.0.0.1 that any client may talk to, one for clients with a certificate, one whose own has expired.
SERVER = ServerTls(certificate=TLS / "broker.pem", key=TLS / "broker.key")
MUTUAL = ServerTls(certificate=TLS / "broker.pem", key=TLS / "broker.key", client_authorities=CA)
EXPIRED = ServerTls(certificate=TLS / "expired.pem", key=TLS / "expired.key")


def ours(certificate: str = "client", authority: Path = CA) -> Tls:
    """Who we are and whom we trust; *certificate* "" for none of our own."""
    if not certificate:
        return Tls(trust_certs=str(authority))
    return Tls(
        trust_certs=str(authority), certificate=str(TLS / f"{certificate}.pem"), key=str(TLS / f"{certificate}.key")
    )


def secret(folder: Path, content: str) -> str:
    """A file with *content*."""
    file = folder / f"secret-{content}"
    file.write_text(content + "\n", encoding="utf-8")
    return str(file)


def access(hosts: str, folder: Path, scheme: Any, user: str, password: str, tls: Tls | None = None) -> ZooKeeperAccess:
    """*user* at the ZooKeeper at *hosts*; the password goes into a file in *folder*."""
    auth = ZooKeeperAuthSettings(scheme=scheme, user=user, password_file=secret(folder, password))
    return ZooKeeperAccess(hosts=hosts, auth=auth, tls=tls)


def grant_what_the_page_says(kafka: SecuredKafka, cluster: str) -> None:
    """Create the ACLs of docs/security.md, with *cluster* for its $CLUSTER."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, **kafka.client()})
    acls = list(acls_of_the_page(cluster))
    for future in admin.create_acls(acls).values():
        future.result(30)
    # The authorizer hears of them a moment later.
    wait_for(
        lambda: len(read_acls(kafka.bootstrap, client=kafka.client(), answer_seconds=10) or ()) >= len(acls),
        30,
        every=0.1,
    )


def acls_of_the_page(cluster: str) -> Iterator[AclBinding]:
    """What the lines with kafka-acls.sh in docs/security.md grant."""
    for words in lines_of_the_page("acls "):
        options = dict(zip(words, [*words[1:], ""], strict=True))
        operations = [after for word, after in pairwise(words) if word == "--operation"]
        resource = next(each for each in _RESOURCES if f"--{each}" in options)
        name = "kafka-cluster" if resource == "cluster" else options[f"--{resource}"].replace("$CLUSTER", cluster)
        pattern = ResourcePatternType.PREFIXED if "prefixed" in words else ResourcePatternType.LITERAL
        for operation in operations:
            yield AclBinding(
                _RESOURCES[resource],
                name,
                pattern,
                options["--allow-principal"],
                "*",
                _OPERATIONS[operation],
                AclPermissionType.ALLOW,
            )


def lines_of_the_page(beginning: str) -> list[list[str]]:
    """The commands in docs/security.md that begin so, as words, without the beginning."""
    text = (Path(__file__).parents[1] / "docs" / "security.md").read_text(encoding="utf-8")
    return [shlex.split(line.removeprefix(beginning)) for line in text.splitlines() if line.startswith(beginning)]


_RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "cluster": ResourceType.BROKER,
}
_OPERATIONS = {
    "Read": AclOperation.READ,
    "Write": AclOperation.WRITE,
    "Delete": AclOperation.DELETE,
    "Describe": AclOperation.DESCRIBE,
    "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS,
}

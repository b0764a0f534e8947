"""Who may change what trimtab trusts?  The ACLs of Kafka and ZooKeeper, against the table in docs/security.md."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from controller.adapters.kafka.acls import Acl
from controller.adapters.kafka.rights import Right, rights
from controller.doctor.facts import Facts
from controller.doctor.finding import Finding, fine, listed, warning

#: Operations by which records, offsets, writers or settings are changed; "All" is every one of them.
_CHANGES: Final = ("Write", "Delete", "Alter", "AlterConfigs")
_GROUP_CHANGES: Final = ("Read", "Delete", "AlterConfigs")
_EVERYBODY: Final = "User:*"

#: The kind of resource, its name, and whether the name is a prefix.
_Resource: TypeAlias = tuple[str, str, bool]


def kafka_acls(facts: Facts) -> Iterator[Finding]:
    """kafka-open, acls-unknown, acl-too-wide."""
    kafka = facts.kafka
    if kafka is None or kafka.error:
        return
    log = kafka.log
    if kafka.acl_error:
        yield warning(
            "acls-unknown",
            log.bootstrap,
            observed=kafka.acl_error,
            expected="to read Kafka's ACLs",
            advice="allow the reader to Describe the cluster (docs/security.md); who may write was not checked",
        )
        return
    if kafka.acls is None:
        yield warning(
            "kafka-open",
            log.bootstrap,
            observed="Kafka has no authorizer: anyone who can reach it can write metrics and commands",
            expected="an authorizer that denies what no ACL allows",
            advice="set authorizer.class.name on the brokers and grant the rights of docs/security.md"
            " (`trimtab doctor --grants` prints them)",
        )
        return
    ours = facts.settings
    needed = rights(log, group=ours.executor.group, cluster=ours.cluster.name, election=ours.elects_on_log)
    findings = list(_too_wide(kafka.acls, needed))
    yield from findings
    if not findings:
        yield fine("kafka-acls", [log.bootstrap], "nobody else may change trimtab's topics, groups and ids")


def _too_wide(acls: tuple[Acl, ...], needed: tuple[Right, ...]) -> Iterator[Finding]:
    granted: dict[_Resource, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for right in needed:
        if right.resource != "cluster" and right.name != "trimtab-reader":
            for operation in right.operations:
                granted[right.resource, right.name, right.prefixed][operation].add(right.principal)
    for acl in acls:
        reached = [where for where in granted if _reaches(acl, where)]
        for where in reached:
            over = _over(acl, granted[where])
            if over:
                yield _wide(acl, where, over, granted[where])


def _over(acl: Acl, granted: Mapping[str, set[str]]) -> tuple[str, ...]:
    """The operations that change something and that *acl* allows to somebody who does not need them."""
    changes = _GROUP_CHANGES if acl.resource == "group" else _CHANGES
    allowed = changes if acl.operation == "All" else (acl.operation,)
    return tuple(each for each in allowed if each in changes and acl.principal not in granted.get(each, ()))


def _reaches(acl: Acl, where: _Resource) -> bool:
    """Whether *acl* allows something on the resource *where*, or on one whose name begins so."""
    resource, name, many = where
    if not acl.allows or acl.resource != resource:
        return False
    if acl.pattern == "prefixed":
        return name.startswith(acl.name) or (many and acl.name.startswith(name))
    return acl.name == "*" or acl.name == name or (many and acl.name.startswith(name))


def _wide(acl: Acl, where: _Resource, over: tuple[str, ...], granted: Mapping[str, set[str]]) -> Finding:
    resource, name, many = where
    theirs = sorted(granted.get("Read" if resource == "group" else "Write", ()))
    prefixed = " --resource-pattern-type prefixed" if acl.pattern == "prefixed" else ""
    return Finding(
        code="acl-too-wide",
        severity="error" if acl.principal == _EVERYBODY else "warning",
        objects=(f"{resource} {name}{'*' if many else ''}",),
        observed=f"{acl.principal} is allowed {', '.join(over)} by an ACL on {acl.pattern} {acl.name}",
        expected=f"{listed(theirs) or 'nobody'} alone",
        advice=f"kafka-acls.sh --remove --allow-principal '{acl.principal}' --operation {acl.operation}"
        f" --{resource} '{acl.name}'{prefixed}; if it is one of trimtab's principals, add it to"
        " [log.kafka.principals]",
    )


def zookeeper_acls(facts: Facts) -> Iterator[Finding]:
    """zookeeper-open, zookeeper-acls-unknown."""
    zookeeper = facts.zookeeper
    if zookeeper is None or zookeeper.error:
        return
    election = zookeeper.election
    if zookeeper.nodes_error:
        yield warning(
            "zookeeper-acls-unknown",
            election.hosts,
            observed=zookeeper.nodes_error,
            expected="to read the ACLs of trimtab's nodes",
            advice="correct [election.auth] and [election.tls]; who may change the nodes was not checked",
        )
        return
    root = f"{election.path.rstrip('/')}/{facts.settings.cluster.name}"
    if election.auth is None:
        yield warning(
            "zookeeper-open",
            zookeeper.open_nodes or (root,),
            observed="no [election.auth]: anyone who can reach ZooKeeper can end leaderships and set the epoch",
            expected="nodes that only trimtab's user can change",
            advice="add [election.auth] with scheme, user and password_file (docs/security.md); then run"
            " `trimtab doctor` again, which says how to protect the existing nodes",
        )
    elif zookeeper.open_nodes:
        who = f"addauth digest {election.auth.user}:PASSWORD, then " if election.auth.scheme == "digest" else ""
        under = election.path if election.path in zookeeper.open_nodes else root
        yield warning(
            "zookeeper-open",
            zookeeper.open_nodes,
            observed="anyone can change these nodes: they are older than [election.auth]",
            expected=f"{election.auth.scheme}:{election.auth.user}:cdrwa alone",
            advice=f"in zkCli.sh as {election.auth.user!r}: {who}setAcl -R {under} auth::cdrwa",
        )
    else:
        yield fine("zookeeper-acls", [root], f"for {election.auth.scheme}:{election.auth.user} alone")

"""The election's ZooKeeper, or its topic, and the folders that are written to."""

from collections.abc import Iterator

from controller.doctor.facts import Facts
from controller.doctor.finding import Finding, error, fine, warning


def zookeeper(facts: Facts) -> Iterator[Finding]:
    """zookeeper-unreachable, session-timeout."""
    granting = facts.zookeeper
    if granting is None:
        return
    election = granting.election
    if granting.error:
        yield error(
            "zookeeper-unreachable",
            election.hosts,
            observed=granting.error,
            expected="a session",
            advice="start ZooKeeper, or correct hosts in [election]",
        )
        return
    timeout_ms = election.session_timeout_seconds * 1000
    if granting.granted_ms == timeout_ms:
        yield fine("zookeeper", [election.hosts], f"a session of {timeout_ms / 1000:g} s")
        return
    bound = "minSessionTimeout" if granting.granted_ms > timeout_ms else "maxSessionTimeout"
    yield warning(
        "session-timeout",
        election.hosts,
        observed=f"the server grants {granting.granted_ms / 1000:g} s instead of the requested {timeout_ms / 1000:g} s",
        expected="the value of [election] session_timeout_seconds",
        advice=f"session_timeout_seconds = {granting.granted_ms // 1000} in [election], or another {bound} in zoo.cfg",
    )


def lease(facts: Facts) -> Iterator[Finding]:
    """lease-unreachable, lease-forbidden, lease-of-another-cluster."""
    of_lease = facts.lease
    if of_lease is None:
        return
    if not of_lease.error:
        yield fine("lease", [of_lease.place], "can be read and changed")
    elif of_lease.is_forbidden:
        yield error(
            "lease-forbidden",
            of_lease.place,
            observed=of_lease.error,
            expected="a Role that lets the account get, create and update the Lease",
            advice="deploy/kubernetes/lease, or lease.enabled of the chart; elsewhere token_file in [election.lease]",
        )
    elif of_lease.is_of_another:
        yield error(
            "lease-of-another-cluster",
            of_lease.place,
            observed=of_lease.error,
            expected="a Lease for each cluster",
            advice="another name in [election.lease], and in the Role",
        )
    else:
        yield error(
            "lease-unreachable",
            of_lease.place,
            observed=of_lease.error,
            expected="an answer of the API server",
            advice="correct [election.lease], or let the NetworkPolicy pass the API server's port",
        )


def controls(facts: Facts) -> Iterator[Finding]:
    """controls-unknown."""
    if facts.controls_error:
        yield error(
            "controls-unknown",
            "controls",
            observed=facts.controls_error,
            expected="what persons set: while nobody can read it, nothing is issued",
            advice="mend the election, or set them anew with `trimtab pause` and `trimtab resume`",
        )


def on_log(facts: Facts) -> Iterator[Finding]:
    """election-on-log, bundle-data."""
    log = facts.settings.log
    topics = log.kafka or log.pulsar
    if not facts.settings.elects_on_log or topics is None:
        return
    seconds = facts.settings.election.session_timeout_seconds
    yield fine("election-on-log", [topics.election_topic], f"sessions of {seconds} s; no ZooKeeper is needed")
    if not facts.settings.collector.zookeeper:
        yield fine(
            "bundle-data",
            [facts.settings.cluster.name],
            "bundles start from Pulsar's default stats and what collectors measure: [collector] zookeeper names no"
            " metadata store, and the brokers' REST API does not have its averages",
        )


def folders(facts: Facts) -> Iterator[Finding]:
    """folder-not-writable, folder-not-lockable."""
    for folder in facts.folders:
        if folder.problem:
            yield error(
                "folder-not-writable",
                folder.path,
                observed=f"{folder.purpose}: {folder.problem}",
                expected="a folder that trimtab can write to",
                advice=f"create {folder.path} and give it to trimtab's user, or name another folder in the settings",
            )
        if folder.unlocked:
            yield error(
                "folder-not-lockable",
                folder.path,
                observed=f"{folder.purpose}: {folder.unlocked}",
                expected="a file system that locks files: no process leads, collects or executes without its lock",
                advice="mount it with locks (NFS: lockd, or version 4), or name a folder on a local disk",
            )
    written = [folder.path for folder in facts.folders if not folder.problem]
    if written:
        yield fine("folders", written, "can be written to")

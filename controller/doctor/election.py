"""The election's ZooKeeper, and the folders that are written to."""

from collections.abc import Iterator

from controller.doctor.facts import Facts
from controller.doctor.finding import Finding, error, fine, warning


def zookeeper(facts: Facts) -> Iterator[Finding]:
    """zookeeper-unreachable, session-timeout."""
    found = facts.zookeeper
    if found is None:
        return
    election = found.election
    if found.error:
        yield error(
            "zookeeper-unreachable",
            election.hosts,
            seen=found.error,
            wanted="a session",
            advice="start ZooKeeper, or correct hosts in [election]",
        )
        return
    asked = election.session_timeout_seconds * 1000
    if found.granted_ms == asked:
        yield fine("zookeeper", [election.hosts], f"a session of {asked / 1000:g} s")
        return
    bound = "minSessionTimeout" if found.granted_ms > asked else "maxSessionTimeout"
    yield warning(
        "session-timeout",
        election.hosts,
        seen=f"the server makes {found.granted_ms / 1000:g} s of the {asked / 1000:g} s that are asked for",
        wanted="what [election] session_timeout_seconds says",
        advice=f"session_timeout_seconds = {found.granted_ms // 1000} in [election], or another {bound} in zoo.cfg",
    )


def folders(facts: Facts) -> Iterator[Finding]:
    """folder-not-writable, folder-not-lockable."""
    for folder in facts.folders:
        if folder.problem:
            yield error(
                "folder-not-writable",
                folder.path,
                seen=f"{folder.purpose}: {folder.problem}",
                wanted="a folder that trimtab can write to",
                advice=f"create {folder.path} and give it to trimtab's user, or name another folder in the settings",
            )
        if folder.unlocked:
            yield error(
                "folder-not-lockable",
                folder.path,
                seen=f"{folder.purpose}: {folder.unlocked}",
                wanted="a file system that locks files: no process leads, collects or executes without its lock",
                advice="mount it with locks (NFS: lockd, or version 4), or name a folder on a local disk",
            )
    written = [folder.path for folder in facts.folders if not folder.problem]
    if written:
        yield fine("folders", written, "can be written to")

"""Which version of Pulsar an interval is decided by: that of the broker that would decide it in Pulsar, the leader.

It follows from the records of the interval and from the memory alone.

    the settings name one -> the leader's -> the one that all brokers have -> the last one known -> the oldest of all

Without a leader nobody sheds in Pulsar until one is elected, so the last version that decided goes on, as long as some
broker still has it.  Where none has decided yet it is the oldest one there: nothing of a newer version begins before a
broker that runs it is known to lead.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from controller.aggregate.snapshot import Snapshot
from controller.aggregate.view import check_complete
from controller.cycle.policy import Policy
from controller.model.decision import CLUSTER, Reason, Verdict
from controller.model.memory import Memory
from controller.model.pulsar_version import PulsarVersion, VersionInUse, version_among, version_text
from controller.model.records import BrokerState

#: A verdict names so many versions of brokers.
_MAX_NAMED: Final = 8


def version_in_use(
    snapshots: Sequence[Snapshot], last: VersionInUse | None, pinned: PulsarVersion | None
) -> VersionInUse:
    """The version that decides the interval of *snapshots*; *last* is that of the interval before."""
    return version_among(*_versions_of(snapshots), last, pinned)


def policy_for(snapshots: Sequence[Snapshot], memory: Memory, policy: Policy) -> Policy:
    """*policy* for the version that decides the interval of *snapshots*.  For that version again, it is the same.

    SettingsError where the settings allow no policy for it.
    """
    if policy.versions is None:
        return policy
    return policy.on(version_in_use(snapshots, memory.pulsar, policy.versions.pinned).version)


def about_version(snapshots: Sequence[Snapshot], used: VersionInUse, last: VersionInUse | None) -> tuple[Verdict, ...]:
    """A verdict on the version *used*, where it is another one than before, or not that of every broker."""
    versions, _ = _versions_of(snapshots)
    is_new = last is not None and last.version != used.version
    others = any(used.version not in (version, version.line) for version in versions.values())
    if not is_new and not others and used.source in ("leader", "brokers", "settings"):
        return ()
    parts = [version_text(used)]
    if is_new and last is not None:
        parts.append(f"before it was {last.version}")
    if others:
        count = Counter(versions.values())
        first = [f"{version}: {count[version]}" for version in sorted(count)[:_MAX_NAMED]]
        parts.append(f"brokers by version: {', '.join(first)}")
    return (Verdict(subject=CLUSTER, reason=Reason.PULSAR_VERSION, by="version", detail="; ".join(parts)),)


def _versions_of(snapshots: Sequence[Snapshot]) -> tuple[Mapping[str, PulsarVersion], str]:
    """Active broker -> its version, where it is known; and Pulsar's leader, "" where nobody leads."""
    check_complete(snapshots)
    zero = next(each for each in snapshots if each.shard == 0)
    active = frozenset(zero.roster)
    states = [state for state in zero.broker_states if state.broker in active]
    versions = {state.broker: version for state in states if (version := PulsarVersion.parse(state.broker_version))}
    leaders = [state for state in states if state.leader]
    return versions, max(leaders, key=_since).broker if leaders else ""


def _since(state: BrokerState) -> tuple[int, str]:
    """Of several that claim to lead, the one that was heard of last."""
    return state.version, state.broker

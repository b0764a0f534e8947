"""Reads the state of the cluster, without its load: namespaces, policies, domains, stored averages, the leader.

Parts that cannot be read are left out, and their published state stays as it is.  Policies are an exception: a
namespace is never published without policies only because those could not be read.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from controller.adapters.network.calls import Calls
from controller.adapters.network.deadline import Deadline
from controller.adapters.pulsar.admin import PulsarAdmin, PulsarError
from controller.collector.states import (
    ClusterPolicies,
    Namespace,
    State,
    Unread,
    bundle_data,
    domains_by_broker,
    namespace_state,
)
from controller.collector.sweeper import USUAL_ANSWER
from controller.model.errors import TrimtabError, WireError
from controller.model.isolation_policies import isolation_flaws
from controller.wire.metrics import NamespaceStateRecord
from controller.wire.readable import counted

log = logging.getLogger(__name__)

V = TypeVar("V")

#: The most stored averages that one reading publishes; the next readings publish the rest.
_MOST_BUNDLES: Final = 20_000
#: The most namespaces that one reading asks for; the next readings ask for the others.
_MOST_NAMESPACES: Final = 20_000
#: After so many failures in a row the metadata store is not asked again in this reading.
_MOST_FAILURES: Final = 3
#: How many problems the log line about unreadable parts names.
_NAMED: Final = 5
_NOBODY: Final[frozenset[str]] = frozenset()


class StoredLoad(Protocol):
    """The averages of bundles' load that Pulsar stores in its metadata store."""

    def of_namespace(self, namespace: str, skip: Collection[str]) -> Mapping[str, tuple[str, bytes]]:
        """Bundle -> (``bundle_data`` or ``resource_quota``, JSON as it is stored), without the bundles to *skip*."""
        ...

    def close(self) -> None:
        """End the connection."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The result of one read."""

    states: tuple[State, ...]
    #: The broker that leads Pulsar's own load manager, "" where there is none.
    leader: str


@dataclass(slots=True)
class ClusterState:
    """Reads the cluster; ``read`` is for one thread at a time, and asks about many namespaces at once."""

    admin: PulsarAdmin
    cluster: str
    stored: StoredLoad | None
    #: Calls at a time.
    most_at_once: int
    #: The time for one reading; what has not answered by then counts as not readable.
    seconds: float
    _calls: Calls = field(init=False)
    #: Tenant -> its namespaces, and namespace -> its anti-affinity group, as last read.
    _names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _groups: dict[str, str] = field(default_factory=dict)
    #: Namespace -> its policy of segments, as last read; and whether brokers know such policies: 5.0.
    _scales: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _know_scales: bool = True
    #: Namespace -> the interval in which it was last read, and in which its stored averages were last asked for.
    _read_at: dict[str, int] = field(default_factory=dict)
    _stored_at: dict[str, int] = field(default_factory=dict)
    #: Namespaces whose groups and policies are to be read anew: a reading may not come to all of them.
    _groups_due: set[str] = field(default_factory=set)
    #: As last read, and the interval in which they were found to be others than before; None: never.
    _policies: ClusterPolicies | None = None
    _policies_since: int = 0
    #: Which of them cannot be read.
    _flaws: str = ""
    _leader: str = ""
    #: What could not be read, and why: in this read, and in the previous one.
    _problems: dict[str, str] = field(default_factory=dict)
    _reported_problems: frozenset[str] = _NOBODY

    def __post_init__(self) -> None:
        self._calls = Calls(self.most_at_once)
        # Nothing here is long, and much is asked for at once.
        self.admin = self.admin.reading_at_most(USUAL_ANSWER)

    def domains(self) -> dict[str, str]:
        """Broker -> its failure domain."""
        return domains_by_broker(self.admin.failure_domains())

    def leader(self) -> str:
        """The broker that leads Pulsar's own load manager; "" while one is elected."""
        try:
            return self.admin.leader()
        except PulsarError as error:
            if error.status == 404:
                return ""
            raise

    def read(self, interval: int, *, whole: bool, known_bundles: Collection[str] = _NOBODY) -> Reading:
        """All namespaces' boundaries; with *whole* also what changes less: groups, policies, stored averages.

        Without stored averages of *known_bundles*.  PulsarError: the namespaces cannot be listed.
        """
        deadline = Deadline.after(self.seconds)
        self._calls.renew()
        had_all_policies = "isolation policies" not in self._problems and self._policies is not None
        self._problems = {}
        names = self._list(interval, deadline)
        if whole or not had_all_policies:
            self._read_policies(interval)
        if self._flaws:
            self._problems["policies that cannot be read"] = self._flaws
        namespaces = self._namespaces(interval, names, deadline, whole=whole)
        unread = self._unread()
        if self._policies is not None:
            self._policies.ask_about([each.name for each in namespaces])
        described = [state for each in namespaces if (state := self._state(each, interval, unread)) is not None]
        states: list[State] = [*(described if unread is None else unread.added_to(described))]
        if whole:
            states += self._stored_load(interval, [each.name for each in namespaces], known_bundles, deadline)
        self._read_leader()
        self._tell()
        return Reading(states=tuple(states), leader=self._leader)

    def _list(self, interval: int, deadline: Deadline) -> list[str]:
        """All namespaces; of a tenant that cannot be read, those of the last reading."""
        try:
            tenants: Sequence[str] = self.admin.tenants()
        except PulsarError as error:
            if not self._names:
                raise
            self._problems["tenants"] = str(error)
            tenants = tuple(self._names)
        calls = {f"tenant {each}": partial(self.admin.namespaces, each) for each in tenants}
        listed = self._run_concurrently(interval, calls, deadline)
        self._names = {each: listed.get(f"tenant {each}", self._names.get(each, ())) for each in tenants}
        return [name for each in tenants for name in self._names[each]]

    def _read_policies(self, interval: int) -> None:
        try:
            policies = self.admin.isolation_policies()
        except PulsarError as error:
            without = "" if self._policies is not None else "; namespaces are not published until they can be read"
            self._problems["isolation policies"] = f"{error}{without}"
            return
        self._know(policies, interval)
        flaws = [f"{name:.100}: {why}" for name, why in isolation_flaws(policies).items()]
        # The log shows 300 characters: one policy and the consequence, however many there are and however long.
        more = f"; and {len(flaws) - 1} more" if len(flaws) > 1 else ""
        self._flaws = f"{flaws[0]:.200}{more}; bundles that they name stay where they are" if flaws else ""

    def _know(self, policies: Mapping[str, Mapping[str, Any]], interval: int) -> None:
        # Their order counts as well: the first one that names a namespace holds for it.
        if self._policies is None or list(policies.items()) != list(self._policies.policies.items()):
            self._policies, self._policies_since = ClusterPolicies(policies), interval

    def _unread(self) -> Unread | None:
        """What names namespaces that were not read since the policies are what they are."""
        if self._policies is None:
            return None
        return self._policies.unread([name for name, at in self._read_at.items() if at < self._policies_since])

    def _namespaces(self, interval: int, names: Sequence[str], deadline: Deadline, *, whole: bool) -> list[Namespace]:
        """Those of *names* that could be read; those that were not read for the longest come first."""
        if whole:
            self._groups_due, self._know_scales = set(names), True
        now = sorted(names, key=lambda name: self._read_at.get(name, 0))[:_MOST_NAMESPACES]
        if len(now) < len(names):
            self._problems["namespaces"] = f"{len(names) - len(now)} of {len(names)} are left for the next reads"
        work = {name: partial(self._namespace, name) for name in now}
        values = self._run_concurrently(interval, work, deadline)
        self._read_at = {name: interval if name in values else self._read_at.get(name, 0) for name in names}
        self._groups_due -= values.keys()
        namespaces = [namespace for name in names if (namespace := values.get(name)) is not None]
        self._groups = {name: self._groups[name] for name in names if name in self._groups}
        self._groups |= {each.name: each.anti_affinity_group for each in namespaces}
        self._scales = {name: self._scales[name] for name in names if name in self._scales}
        self._scales |= {each.name: each.auto_scale for each in namespaces}
        return namespaces

    def _namespace(self, name: str) -> Namespace | None:
        try:
            boundaries = self.admin.boundaries(name)
            group = None if name in self._groups_due else self._groups.get(name)
            if group is not None:
                return Namespace(name, boundaries, group, self._scales.get(name, {}))
            return Namespace(name, boundaries, self.admin.anti_affinity_group(name), self._auto_scale(name))
        except PulsarError as error:
            if error.status == 404:  # deleted since it was listed
                return None
            raise

    def _auto_scale(self, name: str) -> Mapping[str, Any]:
        """What *name* says of its segments; what was read before where it cannot be read."""
        if not self._know_scales:
            return {}
        try:
            return self.admin.auto_scale_policy(name)
        except PulsarError as error:
            if error.status in (404, 405):  # brokers before 5.0
                self._know_scales = False
                return {}
            self._problems["policies of splits and merges"] = f"{name:.100}: {error}"
            return self._scales.get(name, {})

    def _state(self, values: Namespace, interval: int, unread: Unread | None) -> NamespaceStateRecord | None:
        if self._policies is None:
            return None
        try:
            return namespace_state(self.cluster, values, self._policies, version=interval, beside=unread)
        except ValueError as error:  # boundaries that are none
            self._problems[values.name] = str(error)
            return None

    def _stored_load(
        self, interval: int, namespaces: Sequence[str], known_bundles: Collection[str], deadline: Deadline
    ) -> Iterator[State]:
        """The stored averages, of the least recently read namespaces first."""
        count = failures = unusable = 0
        read_before, self._stored_at = self._stored_at, {name: self._stored_at.get(name, 0) for name in namespaces}
        for namespace in (
            sorted(namespaces, key=lambda each: read_before.get(each, 0)) if self.stored is not None else ()
        ):
            if count >= _MOST_BUNDLES or failures >= _MOST_FAILURES or deadline.passed:
                return
            assert self.stored is not None
            self._stored_at[namespace] = interval
            try:
                stored = self.stored.of_namespace(namespace, known_bundles)
            except TrimtabError as error:
                self._problems[f"stored averages of {namespace}"] = str(error)
                failures += 1
                continue
            failures = 0
            for bundle, (kind, content) in stored.items():
                count += 1
                try:
                    state = bundle_data(self.cluster, bundle, kind, content)
                except WireError as error:
                    unusable += 1
                    self._problems["stored averages"] = f"{unusable} cannot be used, one of {bundle}: {error}"
                else:
                    yield state

    def _read_leader(self) -> None:
        try:
            self._leader = self.leader()
        except PulsarError as error:
            self._problems["leader"] = str(error)

    def _run_concurrently(self, interval: int, work: Mapping[str, Callable[[], V]], deadline: Deadline) -> dict[str, V]:
        """The values that *work* returned; its errors are added to the problems."""
        # By interval: an answer that comes too late must not be taken for one of the next reading.
        keyed = {(interval, name): call for name, call in work.items()}
        values: dict[str, V] = {}
        for (_, name), call in self._calls.together(keyed, deadline.remaining).items():
            error = call.error
            if error is None:
                values[name] = call.value
            else:
                self._problems[name] = str(error) if isinstance(error, TrimtabError) else repr(error)
        return values

    def _tell(self) -> None:
        """Log what could not be read, when that has changed since the last reading."""
        now = frozenset(self._problems)
        if now and now != self._reported_problems:
            problems = [f"{name:.100}: {why:.300}" for name, why in sorted(self._problems.items())[:_NAMED]]
            more = f"; and {len(now) - _NAMED} more" if len(now) > _NAMED else ""
            log.warning(
                "cannot read %s of the cluster's state; their published state stays in force: %s%s",
                counted(len(now), "part"),
                "; ".join(problems),
                more,
            )
        elif self._reported_problems and not now:
            log.info("all parts of the cluster's state can be read again")
        self._reported_problems = now

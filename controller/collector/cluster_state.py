"""What is read of the cluster besides its load: namespaces, policies, domains, stored averages, the leader."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from controller.adapters.pulsar_admin import PulsarAdmin, PulsarError
from controller.collector.states import (
    Namespace,
    State,
    bundle_data,
    domains_by_broker,
    namespace_state,
)

log = logging.getLogger(__name__)


class StoredLoad(Protocol):
    """Pulsar's own memory of bundles' load, in its metadata store."""

    def of_namespace(self, namespace: str) -> Mapping[str, tuple[str, bytes]]:
        """Bundle -> (``bundle_data`` or ``resource_quota``, JSON as it is stored)."""
        ...

    def close(self) -> None:
        """End the connection."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one reading found."""

    states: tuple[State, ...]
    #: The broker that leads Pulsar's own load manager, "" where there is none.
    leader: str


@dataclass(slots=True)
class ClusterState:
    """Reads the cluster; one thread at a time."""

    admin: PulsarAdmin
    cluster: str
    stored: StoredLoad | None
    _groups: dict[str, str] = field(default_factory=dict)
    _policies: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def domains(self) -> dict[str, str]:
        """Broker -> its failure domain."""
        return domains_by_broker(self.admin.failure_domains())

    def read(self, interval: int, *, whole: bool) -> Found:
        """All namespaces' boundaries; with *whole* also what changes less: groups, policies, stored averages."""
        names = [name for tenant in self.admin.tenants() for name in self.admin.namespaces(tenant)]
        if whole:
            self._policies = self.admin.isolation_policies()
            self._groups = {}
        namespaces = [found for name in names if (found := self._namespace(name, whole=whole)) is not None]
        states: list[State] = [
            namespace_state(self.cluster, found, self._policies, version=interval) for found in namespaces
        ]
        if whole:
            states += self._stored_load(found.name for found in namespaces)
        return Found(states=tuple(states), leader=self._leader())

    def _leader(self) -> str:
        try:
            return self.admin.leader()
        except PulsarError as error:
            if error.status == 404:  # an election is going on
                return ""
            raise

    def _namespace(self, name: str, *, whole: bool) -> Namespace | None:
        try:
            boundaries = self.admin.boundaries(name)
            if whole or name not in self._groups:
                self._groups[name] = self.admin.anti_affinity_group(name)
        except PulsarError as error:
            if error.status == 404:  # deleted since it was listed
                return None
            raise
        return Namespace(name, boundaries, self._groups[name])

    def _stored_load(self, namespaces: Iterable[str]) -> Iterable[State]:
        if self.stored is None:
            return
        for namespace in namespaces:
            for bundle, (kind, content) in self.stored.of_namespace(namespace).items():
                state = bundle_data(self.cluster, bundle, kind, content)
                if state is not None:
                    yield state

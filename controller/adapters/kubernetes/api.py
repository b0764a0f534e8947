"""One Lease in the API of Kubernetes: read, created and replaced.

A Lease is replaced by who knows its newest version: each answer has a resourceVersion, and the API server refuses an
update with another one.  Credentials are read for each request, as the kubelet renews them.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias
from urllib.parse import quote

from controller.adapters.network.pool import (
    HttpAnswer,
    HttpError,
    RenewedConnections,
    because,
    connection_pool,
    read_answer,
)
from controller.adapters.network.tls import Tls
from controller.model.errors import AccessDeniedError, SettingsError, TrimtabError, WireError
from controller.settings.election import LeaseSettings
from controller.settings.redaction import redacted
from controller.settings.small_file import read_small_file
from controller.wire.base import read_object

#: A Lease, as the API has it.
LeaseObject: TypeAlias = dict[str, Any]

_GROUP: Final = "/apis/coordination.k8s.io/v1"
_LARGEST_ANSWER: Final = 1 << 20
_NOT_FOUND, _CONFLICT, _REFUSED = 404, 409, (401, 403)
_DRY_RUN: Final = "?dryRun=All"
#: Where Kubernetes tells a pod how to reach the API, and which namespace is its own.
_HOST, _PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"
_NAMESPACE_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class LeaseConflictError(TrimtabError):
    """Somebody else has changed, created or deleted the Lease in the meantime."""


class KubernetesUnreachableError(TrimtabError):
    """The API server gave no usable answer: a request may have been carried out, or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasePlace:
    """Where a Lease is, and how it is reached."""

    server: str
    namespace: str
    name: str
    token_file: str
    trust_certs: str

    def __str__(self) -> str:
        return f"lease {self.namespace}/{self.name} at {self.server}"


def lease_place(settings: LeaseSettings, environment: Mapping[str, str] = os.environ) -> LeasePlace:
    """Where the Lease of *settings* is; what they leave out is as in a pod.  SettingsError outside of one."""
    server, namespace = settings.server, settings.namespace
    if not server:
        host = environment.get(_HOST, "")
        if not host:
            raise SettingsError("election.lease.server: set it, https://host:port, as this process runs in no pod")
        server = f"https://{f'[{host}]' if ':' in host else host}:{environment.get(_PORT, '443')}"
    if not namespace:
        try:
            namespace = _NAMESPACE_FILE.read_text(encoding="ascii").strip()
        except (OSError, ValueError) as error:
            raise SettingsError("election.lease.namespace: set it, as this process runs in no pod") from error
    return LeasePlace(
        server=server.rstrip("/"),
        namespace=namespace,
        name=settings.name,
        token_file=settings.token_file,
        trust_certs=settings.trust_certs,
    )


class LeaseApi:
    """The Lease at *place*.  Threads may share it.

    Calls raise KubernetesUnreachableError, AccessDeniedError where the API refuses us, and TrimtabError.
    """

    def __init__(self, place: LeasePlace, *, answer_seconds: float) -> None:
        self.place = place
        self._seconds = answer_seconds
        self._all = f"{place.server}{_GROUP}/namespaces/{quote(place.namespace, safe='')}/leases"
        self._one = f"{self._all}/{quote(place.name, safe='')}"
        tls = Tls(trust_certs=place.trust_certs) if place.server.startswith("https:") else None
        self._connections = RenewedConnections(
            tls, lambda ssl_context: connection_pool(hosts=1, connections=2, ssl_context=ssl_context, verify_host=True)
        )

    def read(self) -> LeaseObject | None:
        """The newest Lease; None where there is none."""
        answer = self._send("GET", self._one)
        return None if answer.status == _NOT_FOUND else self._object("GET", answer)

    def create(self, lease: LeaseObject, *, dry_run: bool = False) -> LeaseObject:
        """Create *lease*; LeaseConflictError where there is one.  *dry_run*: the API checks it alone."""
        named = {**lease, "apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        named["metadata"] = {**lease.get("metadata", {}), "name": self.place.name, "namespace": self.place.namespace}
        return self._changed("POST", self._all, named, dry_run=dry_run)

    def replace(self, lease: LeaseObject, *, dry_run: bool = False) -> LeaseObject:
        """Replace the Lease by *lease*, which has the version that was read; LeaseConflictError where it has another.

        *dry_run*: the API checks it alone.
        """
        return self._changed("PUT", self._one, lease, dry_run=dry_run)

    def close(self) -> None:
        """End the connections."""
        self._connections.close()

    def _changed(self, method: str, url: str, lease: LeaseObject, *, dry_run: bool) -> LeaseObject:
        answer = self._send(method, f"{url}{_DRY_RUN if dry_run else ''}", json.dumps(lease).encode())
        if answer.status == _CONFLICT or (method == "PUT" and answer.status == _NOT_FOUND):
            raise LeaseConflictError(f"{self.place} was changed by somebody else: {_reason(answer)}")
        return self._object(method, answer)

    def _object(self, method: str, answer: HttpAnswer) -> LeaseObject:
        if answer.status >= 300:
            self._refuse(method, answer)
        try:
            lease = read_object(answer.data)
        except WireError as error:
            raise KubernetesUnreachableError(f"{method} {self.place}: {redacted(str(error))}") from error
        if not isinstance(lease.get("metadata"), dict):
            raise KubernetesUnreachableError(f"{method} {self.place}: the answer is no Lease")
        return lease

    def _refuse(self, method: str, answer: HttpAnswer) -> NoReturn:
        text = f"{method} {self.place}: {answer.status} {_reason(answer)}"
        if answer.status in _REFUSED:
            raise AccessDeniedError(
                f"{text}; the account needs get, create and update of leases (coordination.k8s.io) there: see"
                " docs/kubernetes.md"
            )
        if answer.status == _NOT_FOUND:
            raise TrimtabError(f"{text}; is there a namespace {self.place.namespace}?")
        raise KubernetesUnreachableError(text)

    def _send(self, method: str, url: str, body: bytes | None = None) -> HttpAnswer:
        token = self._token()
        headers = {"Accept": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            response = self._connections.pool.request(
                method,
                url,
                body=body,
                headers=headers,
                redirect=False,
                timeout=self._seconds,
                preload_content=False,
            )
            return read_answer(response, _LARGEST_ANSWER, token)
        except HttpError as error:
            raise KubernetesUnreachableError(f"{method} {self.place}: no answer: {because(error)}") from error

    def _token(self) -> str:
        file = self.place.token_file
        if not file:
            return ""
        try:
            token = read_small_file(Path(file)).decode("ascii").strip()
        except (OSError, ValueError) as error:
            raise AccessDeniedError(f"election.lease.token_file: {file} cannot be read: {error}") from error
        if not token or not token.isprintable():
            raise AccessDeniedError(f"election.lease.token_file: {file} holds no token")
        return token


def _reason(answer: HttpAnswer) -> str:
    """Why the API refused, in its words."""
    try:
        message = read_object(answer.data).get("message")
    except WireError:
        message = None
    return redacted(str(message or answer.reason))[:300]

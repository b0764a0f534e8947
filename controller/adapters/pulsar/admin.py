"""Pulsar's admin and lookup REST API, as little of it as trimtab needs.

No act is repeated here that a broker may have begun: none is idempotent, and only the caller knows what may be done
twice.
"""

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final
from urllib.parse import urlsplit

from controller.adapters.network.tls import Tls
from controller.adapters.pulsar.answers import as_object, refuse_many
from controller.adapters.pulsar.credentials import Credentials
from controller.adapters.pulsar.http import LargeAnswerError, NotListedError, PulsarError, PulsarHttp
from controller.adapters.pulsar.settling import settle
from controller.model.errors import WireError
from controller.model.names import parse_bundle
from controller.model.topic_name import TopicName
from controller.settings.redaction import redacted
from controller.wire.base import read_object

__all__ = ["Credentials", "LargeAnswerError", "NotListedError", "PulsarAdmin", "PulsarError", "Tls", "probe_topic"]

#: Names tried for a topic in a bundle, a second at most: enough for a hundred thousandth of the ring.
_PROBES: Final = 2_000_000
_DOMAINS: Final = ("persistent", "non-persistent")
_METRICS: Final = "/admin/v2/broker-stats/metrics"
#: When the JVM started, epoch ms, among the metrics of a broker.  Pulsar: JvmMetrics.
_STARTED: Final = "jvm_start_time"
_LATEST_MS: Final = 1 << 52
#: For all lookups that settle an unloaded bundle.
_SETTLE_SECONDS: Final = 2.0


class PulsarAdmin(PulsarHttp):
    """The admin API behind *urls*, http(s)://host:port of one or more brokers of *cluster*, tried in this order.

    Every call raises PulsarError, naming method, URL, status and the broker's reason.
    """

    def leader(self) -> str:
        """The broker that leads Pulsar's own load manager.

        Older releases answer with its URL alone, whose host and port are the broker's name.
        """
        answer = self._object("/admin/v2/brokers/leaderBroker")
        return str(answer.get("brokerId") or urlsplit(str(answer.get("serviceUrl") or "")).netloc)

    def configuration(self, broker: str = "") -> dict[str, str]:
        """The settings that *broker*, or any, runs with, under broker.conf's names."""
        return _texts(self._object("/admin/v2/brokers/configuration/runtime", at=broker))

    def load_report(self, broker: str) -> dict[str, Any]:
        """*broker*'s LocalBrokerData; with the extensible load manager: PulsarError, status 500."""
        return self._object("/admin/v2/broker-stats/load-report", at=broker)

    def topic_stats(self, broker: str) -> dict[str, Any]:
        """*broker*'s topics: namespace -> bundle range -> persistent or non-persistent -> topic -> statistics."""
        return self.asked_topic_stats(broker)()

    def asked_topic_stats(self, broker: str) -> Callable[[], dict[str, Any]]:
        """``topic_stats`` as they are now, parsed when they are called: a byte of the answer becomes up to twenty."""
        path = "/admin/v2/broker-stats/topics"
        answer = self._call("GET", path, {}, at=broker)
        refuse_many(answer, self.most_values, path)

        def parsed() -> dict[str, Any]:
            try:
                return read_object(answer)  # some MB: twice as fast as the json module
            except WireError as error:
                raise PulsarError(f"GET {path} at {broker}: {redacted(str(error))}", status=200) from error

        return parsed

    def boundaries(self, namespace: str) -> tuple[int, ...]:
        """The boundaries of *namespace*'s bundles, ascending."""
        path = f"/admin/v2/namespaces/{namespace}/bundles"
        boundaries = self._object(path).get("boundaries")
        try:
            return tuple(int(boundary, 16) for boundary in boundaries or ())
        except (TypeError, ValueError) as error:
            raise PulsarError(
                f"GET {path}: {redacted(str(boundaries)):.100} is not a list of bundle boundaries", status=200
            ) from error

    def topics(self, bundle: str) -> tuple[str, ...]:
        """The topics of *bundle*, sorted; a release that does not know ``bundle`` lists all of its namespace.

        PulsarError where neither persistent nor non-persistent topics can be listed; asking changes nothing.
        """
        name = parse_bundle(bundle)
        topics: set[str] = set()
        errors = []
        for domain in _DOMAINS:
            query = {"bundle": name.range, "includeSystemTopic": "true"}
            try:
                topics.update(self._names(f"/admin/v2/{domain}/{name.namespace}", query=query))
            except PulsarError as error:
                errors.append(error)
        if len(errors) == len(_DOMAINS):
            raise errors[0]
        return tuple(sorted(topics))

    def scalable_topic(self, topic: TopicName) -> dict[str, Any]:
        """The statistics of the scalable *topic* (Pulsar 5.0) with its layout: segments, their owners and load."""
        return self._object(f"/admin/v2/scalable/{topic.namespace}/{topic.local_name}/stats")

    def scalable_topics(self, namespace: str) -> tuple[str, ...]:
        """The full names of *namespace*'s scalable topics (Pulsar 5.0), sorted."""
        return tuple(sorted(self._names(f"/admin/v2/scalable/{namespace}")))

    def policies(self, namespace: str) -> dict[str, Any]:
        """The policies of *namespace*."""
        return self._object(f"/admin/v2/namespaces/{namespace}")

    def owned(self, broker: str) -> frozenset[str]:
        """The bundles that *broker* says are its own; asking changes nothing."""
        answer = self._object(f"/admin/v2/brokers/{self._cluster}/{broker}/ownedNamespaces", at=broker)
        return frozenset(
            bundle for bundle, state in answer.items() if not isinstance(state, dict) or state.get("is_active", True)
        )

    def owner(self, bundle: str, brokers: Sequence[str] = ()) -> str:
        """The owner of *bundle*, "" where there is none; active *brokers* are asked first.  Changes nothing."""
        first = [broker for broker in dict.fromkeys(brokers) if broker]
        for broker in first:
            if self.serves(broker, bundle):
                return broker
        return next((each for each in self.brokers() if each not in first and bundle in self.owned(each)), "")

    def serves(self, broker: str, bundle: str) -> bool:
        """Whether *broker* has *bundle*; one that is gone, or no active one, has none, and is not asked."""
        try:
            return bundle in self.owned(broker)
        except PulsarError as error:
            if error.status == 404 or not error.sent:
                return False
            raise

    def lookup(self, bundle: str) -> str:
        """The broker that serves *bundle*; one that nobody has gets its owner by this, as at a client's lookup."""
        return _owner(bundle, self._object(_lookup_path(bundle)))

    def settle(self, bundle: str, source: str, destination: str, leader: str) -> None:
        """Have *destination* take *bundle*, which was just unloaded to there from *source*: see settling.py.

        *leader*: of Pulsar's load manager.
        """
        ask = partial(self.within(_SETTLE_SECONDS)._lookup_at, bundle)
        settle(ask, source=source, destination=destination, leader=leader, sleep=self._sleep)

    def _lookup_at(self, bundle: str, broker: str, *, authoritative: bool = False) -> str:
        """The owner of *bundle* according to *broker*, "" if it redirects.  *authoritative*: it never does."""
        query = {"authoritative": "true"} if authoritative else {}
        return _owner(bundle, self._object_there(_lookup_path(bundle), broker, query))

    def unload(self, bundle: str, destination: str = "") -> None:
        """Unload *bundle* from its owner.  *destination* is best effort; never give one for an unowned bundle.

        Pulsar keeps it by the range alone, without the namespace: unused, it would move another namespace's bundle.
        """
        self._call("PUT", f"{_path(bundle)}/unload", {"destinationBroker": destination} if destination else {})

    def split(self, bundle: str, *, algorithm: str = "", boundaries: Sequence[int] = (), unload: bool = False) -> None:
        """Cut *bundle* at *boundaries*, or wherever *algorithm* wants to; no error does not mean that it was cut."""
        name = "specified_positions_divide" if boundaries else algorithm
        query = {"unload": str(unload).lower()} | ({"splitAlgorithmName": name} if name else {})
        body = json.dumps(list(boundaries)).encode() if boundaries else None
        self._call("PUT", f"{_path(bundle)}/split", query, body=body)

    def dynamic_configuration(self) -> dict[str, str]:
        """The settings that were changed for all brokers while they run; they go before those of broker.conf."""
        return _texts(self._object("/admin/v2/brokers/configuration/values"))

    def change_dynamic_configuration(self, key: str, value: str) -> None:
        """Set *key* to *value* for all brokers while they run; each hears of it by the metadata store."""
        self._call("POST", f"/admin/v2/brokers/configuration/{key}/{value}", {})

    def clusters(self) -> tuple[str, ...]:
        """The clusters that the brokers know of, in order of their names."""
        return self._names("/admin/v2/clusters")

    def tenants(self) -> tuple[str, ...]:
        """All tenants; for super users."""
        return self._names("/admin/v2/tenants")

    def version(self, broker: str) -> tuple[str, str]:
        """*broker*'s version, and what its clock says as HTTP's Date, "" where it says nothing."""
        url = f"{self._address(broker)}/admin/v2/brokers/version"
        answer = self._send("GET", url, None)
        if answer.status >= 300:
            raise PulsarError(f"GET {url}: {answer.status} {answer.reason}", status=answer.status)
        return answer.data.decode(errors="replace").strip('" \n'), answer.headers.get("Date", "")

    def metrics(self, broker: str) -> list[dict[str, Any]]:
        """*broker*'s metrics: dimensions, and the values that they have."""
        metrics = self._get(_METRICS, at=broker)
        return [each for each in metrics if isinstance(each, dict)] if isinstance(metrics, list) else []

    def started_ms(self, broker: str) -> int:
        """When the process of *broker*, an active one, started, by its own clock, epoch ms."""
        if broker not in self.brokers():
            raise PulsarError(f"{broker} is no active broker", sent=False)
        for entry in self.metrics(broker):
            values = entry.get("metrics")
            started = values.get(_STARTED) if isinstance(values, dict) else None
            if isinstance(started, int | float) and 0 < started < _LATEST_MS:
                return int(started)
        raise PulsarError(f"GET {_METRICS} at {broker}: it does not say when it started ({_STARTED})", status=200)

    def require_healthy(self, broker: str) -> None:
        """PulsarError unless *broker* can store a message and read it, by Pulsar's own check."""
        self._call("GET", "/admin/v2/brokers/health", {}, at=broker)

    def namespaces(self, tenant: str) -> tuple[str, ...]:
        """The namespaces of *tenant*, each as tenant/namespace."""
        return self._names(f"/admin/v2/namespaces/{tenant}")

    def anti_affinity_group(self, namespace: str) -> str:
        """The anti-affinity group of *namespace*, "" where it has none."""
        # The answer is the bare name, although its type says JSON.
        return (
            self._call("GET", f"/admin/v2/namespaces/{namespace}/antiAffinity", {})
            .decode(errors="replace")
            .strip('" \n')
        )

    def auto_scale_policy(self, namespace: str) -> dict[str, Any]:
        """What *namespace* says of splits and merges of its topics' segments (Pulsar 5.0); empty where it says nothing.

        PulsarError with status 404 before 5.0.
        """
        path = f"/admin/v2/namespaces/{namespace}/scalableTopicAutoScalePolicy"
        answer = self._call("GET", path, {})
        if answer.strip() in (b"", b"null"):
            return {}
        return as_object(self._json(answer, path), path)

    def isolation_policies(self) -> dict[str, dict[str, Any]]:
        """The cluster's namespace isolation policies, by name, in Pulsar's order.

        What is no object becomes one that cannot be read: it must not hide the others.
        """
        path = f"/admin/v2/clusters/{self._cluster}/namespaceIsolationPolicies"
        try:
            policies = self._object(path)
        except PulsarError as error:
            if error.status == 404:  # there never was one
                return {}
            raise
        return {name: each if isinstance(each, dict) else {"unreadable": each} for name, each in policies.items()}

    def failure_domains(self) -> dict[str, dict[str, Any]]:
        """The cluster's failure domains by name, each with its brokers."""
        path = f"/admin/v2/clusters/{self._cluster}/failureDomains"
        domains = self._object(path)
        for name, domain in domains.items():
            brokers = domain.get("brokers") or [] if isinstance(domain, dict) else None
            if not isinstance(brokers, list) or not all(isinstance(broker, str) for broker in brokers):
                raise PulsarError(f"GET {path}: {name:.100} is not a failure domain", status=200)
        return domains

    def service_url(self) -> str:
        """The service URL of the cluster, with TLS where this API uses it; "" where none is set.

        PulsarError where that is neither a host of the admin URLs nor an active broker's: it would see credentials.
        """
        cluster = self._object(f"/admin/v2/clusters/{self._cluster}")
        secure = self._urls[0].startswith("https:")
        url = str(cluster.get("brokerServiceUrlTls" if secure else "brokerServiceUrl") or "")
        for place in url.partition("://")[2].split(",") if url else ():
            if not self._in_fresh_list(partial(self._trusted.has_host, place)):
                raise PulsarError(
                    f"the cluster's data names {url:.200} as its service URL, and {place:.100} is neither a host of"
                    " admin_url in [pulsar] nor an active broker's: set service_url in [collector] where it is right"
                )
        return url


@lru_cache(1024)
def probe_topic(bundle: str) -> str:
    """The name of a topic that would lie in *bundle*, "" where none is found; looking it up creates nothing."""
    name = parse_bundle(bundle)
    stem = f"non-persistent://{name.namespace}/trimtab-"
    # The hash of the whole name goes on from that of its stem.
    crc = zlib.crc32(stem.encode())
    for number in range(_PROBES):
        if name.lower <= zlib.crc32(b"%d" % number, crc) < name.upper:
            return f"{stem}{number}"
    return ""


def _texts(settings: Mapping[str, Any]) -> dict[str, str]:
    """*settings* as Pulsar gives them; what is no text there becomes one, so that no check takes it for left out."""
    return {
        name: value if isinstance(value, str) else "" if value is None else json.dumps(value)
        for name, value in settings.items()
    }


def _lookup_path(bundle: str) -> str:
    topic = probe_topic(bundle)
    if not topic:
        raise PulsarError(f"{bundle}: cannot find a topic name whose hash lies in this narrow range", sent=False)
    return f"/lookup/v2/topic/{topic.replace('://', '/')}"


def _owner(bundle: str, answer: Mapping[str, Any]) -> str:
    """The broker that the answer to a lookup names."""
    url = answer.get("httpUrl") or answer.get("httpUrlTls") or answer.get("brokerUrl") or ""
    try:
        return urlsplit(str(url)).netloc
    except ValueError as error:
        raise PulsarError(f"lookup of {bundle}: {redacted(repr(url)):.100} is not an address", status=200) from error


def _path(bundle: str) -> str:
    name = parse_bundle(bundle)
    return f"/admin/v2/namespaces/{name.namespace}/{name.range}"

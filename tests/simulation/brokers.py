"""A modelled Pulsar behind its REST API: load, lookups, unloads, splits, moves of its own, brokers that die or lie."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from urllib3 import HTTPHeaderDict
from urllib3.exceptions import NewConnectionError, ReadTimeoutError

from controller.executor.attempt import PulsarTarget
from controller.model.decision import Command
from controller.model.names import topic_hash
from tests.simulation.logs import cuts_of
from tests.simulation.world import World

CLUSTER: Final = "sim"
#: Rates of a broker that is used up, msg/s, and the size of a message, bytes.
_CAPACITY, _MESSAGE = 1_000.0, 1_000.0
#: Seconds until clients look an unloaded bundle up, and until others may have the bundles of a broker that died.
_CLIENTS, _SESSION = 1.0, 3.0
_SWITCHES: Final = {
    "loadBalancerEnabled": "true",
    "loadBalancerSheddingEnabled": "false",
    "loadBalancerAutoBundleSplitEnabled": "false",
}
#: What a broker may lie about.
LIES: Final = (
    "done-not-done",
    "refused-but-done",
    "stale-owner",
    "mad-load",
    "hidden",
    "silent",
    "busy",
    "stale-bundles",
)


@dataclass
class Broker:
    """One broker."""

    name: str
    alive: bool = True
    version: str = "4.0.8"
    #: Lie -> until when it tells it, seconds.
    lies: dict[str, float] = field(default_factory=dict)


class Cluster:
    """The brokers, their bundles and the load on them."""

    def __init__(self, world: World, *, brokers: int, namespaces: int, bundles: int) -> None:
        self.world, self._random = world, world.sim.random
        self.brokers = {name: Broker(name) for name in (f"broker-{n}.sim:8080" for n in range(1, brokers + 1))}
        step = (1 << 32) // bundles
        self.boundaries = {
            f"acme/ns{n}": [*(step * each for each in range(bundles)), 0xFFFFFFFF] for n in range(namespaces)
        }
        #: Bundle -> its owner, "" while it has none.
        self.owners = {bundle: self._random.choice(list(self.brokers)[:2]) for bundle in self.all_bundles()}
        for bundle, owner in self.owners.items():
            world.note("owned", content=bundle, outcome=owner)
        #: Broker -> until when its load report stands still, seconds, and that report.
        self._kept = dict[str, tuple[float, dict[str, Any]]]()
        #: Bundle -> its owner before, for brokers that lie.
        self._before = dict[str, str]()
        #: Range -> where its next lookup places it.
        self._destined = dict[str, str]()
        #: The command that a task of an executor carries out.
        self.acting = dict[object, str]()
        self.topics = {
            namespace: [self._topic(namespace, n) for n in range(3 * bundles)] for namespace in self.boundaries
        }

    def _topic(self, namespace: str, number: int) -> tuple[str, int, float]:
        name = f"persistent://{namespace}/t{number}"
        return name, topic_hash(name), self._random.uniform(10, 90)

    def all_bundles(self) -> list[str]:
        """The names of all bundles."""
        return [
            f"{namespace}/0x{low:08x}_0x{high:08x}"
            for namespace, ends in self.boundaries.items()
            for low, high in pairwise(ends)
        ]

    # ---- what happens by itself ----

    def drift(self, interval: int) -> None:
        """The load changes, and now and then Pulsar moves or splits a bundle of its own accord."""
        for namespace, topics in self.topics.items():
            for at, (name, place, rate) in enumerate(topics):
                factor = math.exp(self._random.gauss(0, 0.6))
                topics[at] = name, place, min(400.0, max(2.0, rate * factor))
            if interval % 7 == 3 and self._random.random() < 0.5:
                topics.append(self._topic(namespace, len(topics)))
        for _ in range(self._random.choice([0, 0, 1, 2])):
            self._place(self._random.choice(self.all_bundles()), self._random.choice(self.active()[:2]))
        if self._random.random() < 0.03:
            bundle = self._random.choice(self.all_bundles())
            low, high = _ends(bundle)
            self._split(bundle, [(low + high) // 2])

    def kill(self, name: str, seconds: float) -> None:
        """A broker dies, and is back after *seconds*."""
        broker = self.brokers[name]
        if len(self.active()) < 3 or not broker.alive:
            return
        broker.alive = False
        self.world.note("broker-died", content=name)
        sim = self.world.sim
        sim.at(sim.now + _SESSION, lambda: self._orphan(name))
        sim.at(sim.now + max(seconds, _SESSION + 1), lambda: self._back(name))

    def _orphan(self, name: str) -> None:
        for bundle in [each for each, owner in self.owners.items() if owner == name]:
            self._place(bundle, "")
            self._look_up_later(bundle)

    def _back(self, name: str) -> None:
        self.brokers[name].alive = True
        self.world.note("broker-back", content=name)

    def active(self) -> list[str]:
        """The brokers that run."""
        return [name for name, each in self.brokers.items() if each.alive]

    def _look_up_later(self, bundle: str) -> None:
        sim = self.world.sim
        sim.at(sim.now + _CLIENTS * (0.5 + self._random.random()), partial(self._look_up, bundle))

    def _look_up(self, bundle: str) -> str:
        if bundle not in self.owners:
            return ""
        if not self.owners[bundle]:
            destined = self._destined.pop(bundle.rpartition("/")[2], "")
            loads = {name: self._rate_of(name) for name in self.active()}
            self._place(bundle, destined if destined in loads else min(loads, key=lambda name: (loads[name], name)))
        return self.owners[bundle]

    def _place(self, bundle: str, broker: str) -> None:
        if bundle in self.owners:
            self._before[bundle] = self.owners[bundle]
            self.owners[bundle] = broker
            self.world.note("owned", content=bundle, outcome=broker)

    def _split(self, bundle: str, cuts: list[int]) -> None:
        namespace = bundle.rpartition("/")[0]
        low, high = _ends(bundle)
        cuts = [cut for cut in cuts if low < cut < high]
        owner = self.owners.get(bundle)
        if owner and cuts:
            self.boundaries[namespace] = sorted({*self.boundaries[namespace], *cuts})
            del self.owners[bundle]
            self.world.note("owned", content=bundle, outcome="-")
            for ends in pairwise([low, *sorted(cuts), high]):
                part = f"{namespace}/0x{ends[0]:08x}_0x{ends[1]:08x}"
                self.owners[part] = owner
                self.world.note("owned", content=part, outcome=owner)

    # ---- what brokers say ----

    def _topics_of(self, bundle: str) -> list[tuple[str, int, float]]:
        low, high = _ends(bundle)
        topics = self.topics[bundle.rpartition("/")[0]]
        return [each for each in topics if low <= min(each[1], 0xFFFFFFFE) < high]

    def _rate_of(self, broker: str) -> float:
        return sum(rate for bundle in self._of(broker) for _, _, rate in self._topics_of(bundle))

    def _of(self, broker: str) -> list[str]:
        return [bundle for bundle, owner in self.owners.items() if owner == broker]

    def be_honest(self) -> None:
        """No broker lies any more."""
        self._kept.clear()
        for broker in self.brokers.values():
            broker.lies.clear()
            self.world.note("report-renewed", content=broker.name)

    def lies(self, broker: str, lie: str) -> bool:
        """Whether *broker* tells *lie* now."""
        if self.brokers[broker].lies.get(lie, 0.0) > self.world.sim.now:
            self.world.met[f"lie {lie}", "brokers"] += 1
            return True
        return False

    def _owned(self, broker: str) -> dict[str, Any]:
        bundles = self._of(broker)
        if self.lies(broker, "stale-owner"):
            bundles += [each for each, owner in self._before.items() if owner == broker]
        return {bundle: {"is_active": True} for bundle in bundles}

    def keep_report(self, broker: str, seconds: float) -> None:
        """Have the load report of *broker* stay as it is now, with its time."""
        self._kept[broker] = self.world.sim.now + seconds, self._report(broker)
        self.world.note("report-stands-still", content=broker)
        self.world.sim.at(self.world.sim.now + seconds, lambda: self.world.note("report-renewed", content=broker))

    def _report(self, broker: str) -> dict[str, Any]:
        until, kept = self._kept.get(broker, (0.0, {}))
        if until > self.world.sim.now:
            return kept
        rate = self._rate_of(broker)
        used = {"usage": 100 * rate / _CAPACITY, "limit": 100.0}
        if self.lies(broker, "mad-load"):
            used["usage"] = self._random.choice([math.nan, -5.0, 1e300, 0.0])
        stats = {bundle: _stats(self._topics_of(bundle)) for bundle in self._of(broker)}
        return {
            "cpu": used,
            "memory": {"usage": 10.0, "limit": 100.0},
            "directMemory": {"usage": 10.0, "limit": 100.0},
            "bandwidthIn": {"usage": rate * 8, "limit": 1e6},
            "bandwidthOut": {"usage": rate * 8, "limit": 1e6},
            "lastUpdate": self.world.sim.true_ms(),
            "lastStats": stats,
            "brokerVersionString": self.brokers[broker].version,
        }

    def _listed_topics(self, broker: str) -> dict[str, Any]:
        listed: dict[str, Any] = {}
        for bundle in self._of(broker):
            namespace, _, range_ = bundle.rpartition("/")
            topics = {name: _stats([(name, place, rate)]) for name, place, rate in self._topics_of(bundle)}
            listed.setdefault(namespace, {})[range_] = {"persistent": topics}
        return listed

    def answer(
        self, method: str, broker: str, path: str, query: Mapping[str, str], body: bytes, command: str = ""
    ) -> tuple[int, Any]:
        """Status and content of *broker*'s answer to what is asked for *command*; of a redirect the address."""
        if self.lies(broker, "busy"):
            return 429, {"reason": "too many requests"}
        parts = path.removeprefix("/admin/v2/").strip("/").split("/")
        if method == "PUT":
            return self._act(broker, path, parts, query, body, command)
        match parts:
            case ["broker-stats", "load-report"]:
                return 200, self._report(broker)
            case ["broker-stats", "topics"]:
                return 200, self._listed_topics(broker)
            case ["brokers", "configuration", "runtime"]:
                return 200, _SWITCHES
            case ["brokers", "leaderBroker"]:
                return 200, {"brokerId": self.active()[0]}
            case ["brokers", "version"]:
                return 200, self.brokers[broker].version
            case ["brokers", _]:
                return 200, [name for name in self.active() if not self.lies(name, "hidden")]
            case ["brokers", _, name, "ownedNamespaces"]:
                return (200, self._owned(name)) if name == broker else (307, f"http://{name}{path}")
            case ["tenants"]:
                return 200, ["acme"]
            case ["namespaces", "acme"]:
                return 200, list(self.boundaries)
            case ["namespaces", "acme", name, "bundles"]:
                ends = self.boundaries[f"acme/{name}"]
                if self.lies(broker, "stale-bundles"):
                    ends = ends[::2] if ends[::2][-1] == ends[-1] else [*ends[::2], ends[-1]]
                return 200, {"boundaries": [f"0x{end:08x}" for end in ends]}
            case ["namespaces", "acme", _, "antiAffinity"]:
                return 200, ""
            case ["clusters", _, "namespaceIsolationPolicies"]:
                return 404, {"reason": "none"}
            case ["clusters", _, "failureDomains"]:
                return 200, {}
            case ["", "lookup", "v2", "topic", *rest] | ["lookup", "v2", "topic", *rest]:
                return self._lookup(broker, rest, query)
        return 404, {"reason": f"not modelled: {path}"}

    def _lookup(self, broker: str, topic: list[str], query: Mapping[str, str]) -> tuple[int, Any]:
        kind, tenant, namespace, name = topic
        place = topic_hash(f"{kind}://{tenant}/{namespace}/{name}")
        bundle = next(
            each
            for each in self.owners
            if each.startswith(f"{tenant}/{namespace}/") and _ends(each)[0] <= place < _ends(each)[1]
        )
        if query.get("authoritative") == "true" and not self.owners[bundle]:
            self._place(bundle, broker)
        return 200, {"httpUrl": f"http://{self._look_up(bundle)}"}

    def _act(
        self, broker: str, path: str, parts: list[str], query: Mapping[str, str], body: bytes, command: str
    ) -> tuple[int, Any]:
        _, tenant, namespace, range_, action = parts
        bundle = f"{tenant}/{namespace}/{range_}"
        owner = self.owners.get(bundle)
        if owner is None:
            return 412, {"reason": "no such bundle"}
        if not owner:
            return 404, {"reason": "not loaded"}
        if owner != broker:
            return 307, f"http://{owner}{path}" + (
                "?" + "&".join(f"{k}={v}" for k, v in query.items()) if query else ""
            )
        if self.lies(broker, "done-not-done"):
            return 204, ""
        what = (json.loads(body) if body else ()) if action == "split" else query.get("destinationBroker") or "-"
        done = f"{action} {bundle} {what if isinstance(what, str) else cuts_of(what)}"
        self.world.note("effect", command=command, content=done)
        if action == "unload":
            if destination := query.get("destinationBroker"):
                self._destined[range_] = destination
            self._place(bundle, "")
            self._look_up_later(bundle)
        else:
            low, high = _ends(bundle)
            self._split(bundle, json.loads(body) if body else [(low + high) // 2])
        return (500, {"reason": "failed, it says"}) if self.lies(broker, "refused-but-done") else (204, "")


class Pool:
    """urllib3.PoolManager, as PulsarAdmin uses it: requests to the cluster, over the network with its faults."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._world = cluster, cluster.world

    def __call__(self, **_: Any) -> "Pool":
        """Make one."""
        return self

    def request(self, method: str, url: str, *, body: bytes | None, timeout: Any, **_: Any) -> "Response":
        """See PoolManager."""
        parts = urlsplit(url)
        broker = self._cluster.brokers.get(parts.netloc)
        query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
        # A call may arrive once its sender has given it up.
        command = self._cluster.acting.get(self._world.sim.task, "")

        def unanswered(sent: bool) -> Exception:
            if sent:
                if command and method == "PUT":
                    self._world.note("unanswered", command=command)
                return ReadTimeoutError(self, url, "no answer")  # type: ignore[arg-type]
            return NewConnectionError(self, "no connection")  # type: ignore[arg-type]

        if broker is None or not broker.alive:
            self._world.sim.sleep(0.01)
            raise unanswered(False)
        if self._cluster.lies(broker.name, "silent"):
            self._world.sim.sleep(timeout.read_timeout)
            raise unanswered(True)

        def answer() -> tuple[int, Any]:
            if not broker.alive:
                raise unanswered(True)
            return self._cluster.answer(method, broker.name, parts.path, query, body or b"", command)

        kind = "brokers " + ("act" if method == "PUT" else "lookup" if "/lookup/" in parts.path else "ask")
        status, content = self._world.call("brokers", kind, answer, unanswered)
        return Response(status, content, self._world.sim.true_ms() // 1000)

    def clear(self) -> None:
        """See PoolManager."""


class Response:
    """urllib3.BaseHTTPResponse."""

    def __init__(self, status: int, content: Any, seconds: int) -> None:
        self.status, self.reason = status, ""
        self.headers = _headers(seconds, content if status == 307 else "")
        content = "" if status == 307 else content
        self._left = content.encode() if isinstance(content, str) else json.dumps(content).encode()

    def read(self, _: int) -> bytes:
        """The body, once."""
        body, self._left = self._left, b""
        return body

    def release_conn(self) -> None:
        """See urllib3."""

    def close(self) -> None:
        """See urllib3."""


@lru_cache(64)
def _headers(seconds: int, location: str) -> HTTPHeaderDict:
    """Of an answer at *seconds*; nobody changes them."""
    headers = HTTPHeaderDict({"Date": formatdate(seconds, usegmt=True)})
    if location:
        headers["Location"] = location
    return headers


def traced_target(cluster: Cluster) -> type[PulsarTarget]:
    """PulsarTarget whose acts on *cluster* are in the trace."""
    world = cluster.world

    class TracedTarget(PulsarTarget):
        def act(self, command: Command) -> None:
            world.note("act", command=command.id, expires_at=command.expires_at_ms, interval=command.interval)
            cluster.acting[world.sim.task] = command.id
            try:
                super().act(command)
            finally:
                del cluster.acting[world.sim.task]

    return TracedTarget


def _ends(bundle: str) -> tuple[int, int]:
    low, _, high = bundle.rpartition("/")[2].partition("_")
    return int(low, 16), int(high, 16)


def _stats(topics: list[tuple[str, int, float]]) -> dict[str, Any]:
    rate = round(sum(each[2] for each in topics), 3)
    return {
        "msgRateIn": rate,
        "msgThroughputIn": rate * _MESSAGE,
        "msgRateOut": rate,
        "msgThroughputOut": rate * _MESSAGE,
        "producerCount": len(topics),
        "consumerCount": len(topics),
        "topics": len(topics),
    }

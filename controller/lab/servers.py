"""A real Kafka broker and a real ZooKeeper server of one node each, on loopback, for demos and tests.

Everything a server writes lies in its folder: data, log, configuration, and the pid by which it is stopped.
"""

import base64
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar
from uuid import uuid4

from controller.adapters.disk import files, jars
from controller.adapters.kafka import topics as kafka_topics
from controller.adapters.long_work import long_work
from controller.adapters.network.deadline import Deadline
from controller.adapters.network.waiting import wait_for
from controller.adapters.process.tied_child import foreign, tied_child
from controller.lab import class_archives
from controller.model.errors import TrimtabError

_LOOPBACK: Final = "127.0.0.1"
_READY_SECONDS: Final = 300.0  # a busy machine takes half a minute, an overloaded one ten times that
#: For the one that waits: Pulsar takes this long, the others less.
_USUAL_SECONDS: Final = 10.0
_STOP_SECONDS: Final = 20.0
_LOG_LINES_SHOWN: Final = 15
_POLL_SECONDS: Final = 0.05
#: To choose a free one from.  Clients get theirs from 32768 on (Linux) or higher (macOS).
_PORTS: Final = range(20_000, 30_000)
#: Kafka's name for a broker that is alone.
_NODE: Final = 1
#: No divisor of 10,000: the places where processes begin to look differ for a long time.
_PORTS_PER_PROCESS: Final = 97
#: Ports that this process has drawn; a server that uses one may be down for a moment.
_DRAWN: Final[set[int]] = set()

S = TypeVar("S", bound="Server")


class Server(ABC):
    """One server: its folder, its port, and the process that may be running there."""

    name: str
    default_port: int

    def __init__(self, folder: Path, port: int = 0, host: str = _LOOPBACK) -> None:
        """*port* 0 picks a free one; it stays the same for the life of this object.  *host*: where it listens."""
        self.folder, self.host = folder.resolve(), host
        self.port = port or free_port()
        self.log = self.folder / "server.log"
        self._pid_file = self.folder / "pid"
        self._process: subprocess.Popen[bytes] | None = None
        self._tied = ExitStack()

    @property
    def address(self) -> str:
        """host:port for clients."""
        return f"{self.host}:{self.port}"

    @property
    def summary(self) -> str:
        """See ``serve.Service``."""
        return f"{self.name} at {self.address}, pid {self.pid()}, log {self.log}"

    @property
    def logs(self) -> str:
        """See ``serve.Service``."""
        return str(self.log)

    def start(self, *, tied: bool = False) -> None:
        """Start on what the folder holds already, and return when clients are served.

        *tied*: it is killed when this process ends, however that ends.
        """
        running = self.pid()
        if running is not None:
            raise TrimtabError(f"{self.name} is already running in {self.folder}, pid {running}: stop it first")
        if not is_free(self.port, self.host):
            raise TrimtabError(f"{self.name}: port {self.port} is taken; choose another with --port, 0 for a free one")
        self.folder.mkdir(parents=True, exist_ok=True)
        classpath = self._classpath()
        with self.log.open("ab") as log:
            self._prepare(classpath)
            options = [*self._java_options(), *self._archive_options(classpath), f"-Djava.io.tmpdir={self._scratch()}"]
            command = [self._java(), *options, "-cp", classpath, *self._main()]
            # A session of its own: Ctrl-C in the terminal reaches only this process, which stops the server.
            if tied:
                child = tied_child(
                    foreign(command),
                    stdout=log,
                    stderr=log,
                    environment=os.environ,
                    new_session=True,
                    folder=self.folder,
                )
                self._process = self._tied.enter_context(child)
            else:
                self._process = subprocess.Popen(
                    command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
                )
        files.replace(self._pid_file, b"%d\n" % self._process.pid)
        try:
            self._wait_until_ready(self._process)
        except BaseException:
            # Not in order: the archive of the few classes that it has loaded would be kept.
            self.stop(signal.SIGKILL)
            raise

    def _scratch(self) -> Path:
        """An empty folder for what the server unpacks, as native libraries: one that is killed leaves them behind."""
        scratch = self.folder / "tmp"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        return scratch

    def stop(self, number: signal.Signals = signal.SIGTERM) -> bool:
        """End the server that runs in the folder, if any; its data stays.  SIGKILL for a crash.  False: none ran."""
        pid = self.pid()
        if pid is not None:
            os.kill(pid, number)
            if self._ends_in_time(pid) and number == signal.SIGTERM:
                class_archives.store_archive(self.folder)
        self._tied.close()
        self._process = None
        self._pid_file.unlink(missing_ok=True)
        return pid is not None

    def pid(self) -> int | None:
        """The pid of the server that runs in the folder."""
        if self._process is not None:
            return self._process.pid if self._process.poll() is None else None
        try:
            pid = int(self._pid_file.read_text(encoding="ascii"))
        except (FileNotFoundError, ValueError):
            return None
        # Another process may have this pid by now.
        return pid if self._is_ours(pid) else None

    def wait(self) -> None:
        """Block until the server started here has ended."""
        if self._process is not None:
            self._process.wait()

    def _java(self) -> str:
        return jars.java()

    def _classpath(self) -> str:
        return os.pathsep.join(map(str, jars.fetch(self.name)))

    @abstractmethod
    def _prepare(self, classpath: str) -> None:
        """Write the configuration, and what a first start needs."""

    @abstractmethod
    def _java_options(self) -> list[str]: ...

    def _archive_options(self, classpath: str) -> list[str]:
        return class_archives.options(self.name, classpath, self.folder)

    @abstractmethod
    def _main(self) -> list[str]:
        """The main class and its arguments."""

    @abstractmethod
    def _answers(self) -> bool:
        """True once a client is served."""

    def _is_ours(self, pid: int) -> bool:
        if Path("/proc").is_dir():
            try:
                return self._main()[-1].encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:  # it has ended, maybe just now
                return False
        listing = subprocess.run(["ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, check=False)
        return self._main()[-1].encode() in listing.stdout

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        def is_ready() -> bool:
            if self._answers():
                return True
            if process.poll() is not None:
                raise TrimtabError(f"{self.name} ended with {process.returncode}; {self._end_of_log()}")
            return False

        try:
            with long_work(f"starting {self.name}", usual_seconds=_USUAL_SECONDS):
                wait_for(is_ready, _READY_SECONDS, every=_POLL_SECONDS)
        except TimeoutError as error:
            raise TrimtabError(
                f"{self.name} does not answer after {_READY_SECONDS:g} s; {self._end_of_log()}"
            ) from error

    def _ends_in_time(self, pid: int) -> bool:
        """Return when it has ended; False where it had to be killed."""
        patience = Deadline.after(_STOP_SECONDS)
        while self.pid() == pid:
            if patience.passed:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(_POLL_SECONDS)
        return not patience.passed

    def _end_of_log(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_LINES_SHOWN:]
        return "\n".join([f"{self.log} ends with", *lines])


class KafkaServer(Server):
    """A Kafka broker that is its own controller (KRaft)."""

    name = "kafka"
    default_port = 9092

    def __init__(self, folder: Path, port: int = 0, host: str = _LOOPBACK) -> None:
        super().__init__(folder, port, host)
        self._controller_port = free_port()
        self._properties = self.folder / "server.properties"
        self._meta = self.folder / "data" / "meta.properties"

    @property
    def bootstrap(self) -> str:
        """The address, under Kafka's name for it."""
        return self.address

    @property
    def controller_address(self) -> str:
        """Where its controller listens for those of other brokers."""
        return f"{self.host}:{self._controller_port}"

    @property
    def cluster_id(self) -> str:
        """Of the cluster that the folder's data belong to."""
        [cluster_id] = re.findall(r"^cluster\.id=(.*)$", self._meta.read_text(encoding="utf-8"), re.MULTILINE)
        return str(cluster_id)

    def _prepare(self, classpath: str) -> None:  # noqa: ARG002
        self._properties.write_text(self._configuration(), encoding="utf-8")
        if not self._meta.exists():
            self._format(_kafka_id(), _NODE)

    def _format(self, cluster: str, node: int) -> None:
        """As kafka.tools.StorageTool does, which takes a second of processor time."""
        self._meta.parent.mkdir(parents=True, exist_ok=True)
        files.replace(
            self._meta, f"version=1\ncluster.id={cluster}\nnode.id={node}\ndirectory.id={_kafka_id()}\n".encode()
        )

    def _configuration(self) -> str:
        broker, controller = self.address, self.controller_address
        return f"""process.roles=broker,controller
node.id={_NODE}
controller.quorum.voters={_NODE}@{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://{broker},CONTROLLER://{controller}
advertised.listeners=PLAINTEXT://{broker}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={self.folder / "data"}
auto.create.topics.enable=false
message.max.bytes={12 << 20}
replica.fetch.max.bytes={12 << 20}
group.initial.rebalance.delay.ms=0
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
# No record twice a second that says nothing.
metadata.max.idle.interval.ms=0
"""

    def _java_options(self) -> list[str]:
        return ["-Xmx1g", *_QUICK_START, *_LOGGING]

    def _main(self) -> list[str]:
        return ["kafka.Kafka", str(self._properties)]

    def _answers(self) -> bool:
        # A client complains of every refused connection: first see whether anybody listens.
        return not is_free(self.port, self.host) and kafka_topics.ping(self.bootstrap, 1.0)


class ZooKeeperServer(Server):
    """A ZooKeeper server by itself."""

    name = "zookeeper"
    default_port = 2181

    def __init__(self, folder: Path, port: int = 0, host: str = _LOOPBACK) -> None:
        super().__init__(folder, port, host)
        self._cfg = self.folder / "zoo.cfg"

    @property
    def hosts(self) -> str:
        """The address, under ZooKeeper's name for it."""
        return self.address

    def _prepare(self, classpath: str) -> None:  # noqa: ARG002
        # A short tick: the shortest session that a client may ask for is two of them.
        self._cfg.write_text(
            f"""dataDir={self.folder / "data"}
clientPort={self.port}
clientPortAddress={self.host}
tickTime=500
minSessionTimeout=1000
maxSessionTimeout=60000
maxClientCnxns=0
""",
            encoding="utf-8",
        )

    def _java_options(self) -> list[str]:
        return [
            "-Xmx128m",
            *_QUICK_START,
            "-Dzookeeper.admin.enableServer=false",
            "-Dzookeeper.forceSync=no",
            *_LOGGING,
        ]

    def _main(self) -> list[str]:
        return ["org.apache.zookeeper.server.ZooKeeperServerMain", str(self._cfg)]

    def _answers(self) -> bool:
        try:
            with socket.create_connection((self.host, self.port), timeout=1) as connection:
                connection.sendall(b"srvr")
                return connection.recv(64).startswith(b"Zookeeper version")
        except OSError:
            return False


def kafka_server(folder: Path) -> AbstractContextManager[KafkaServer]:
    """A Kafka broker for the length of a block, with its state in *folder*."""
    return _running(KafkaServer(folder))


def zookeeper_server(folder: Path) -> AbstractContextManager[ZooKeeperServer]:
    """A ZooKeeper server for the length of a block, with its state in *folder*."""
    return _running(ZooKeeperServer(folder))


@contextmanager
def _running(server: S) -> Iterator[S]:
    server.start(tied=True)
    try:
        yield server
    finally:
        server.stop()


def free_port() -> int:
    """A port of this machine that nobody listens on, that no client is given, and that this process has not drawn yet.

    Each process begins to look elsewhere: several that start servers at once do not draw the same one.
    """
    # None of those that the kernel gives to clients: a client that looks for its server while it is down could get
    # the server's own port, be connected to itself, and keep the server from coming back.
    first = os.getpid() * _PORTS_PER_PROCESS
    for nth in range(len(_PORTS)):
        port = _PORTS[(first + nth) % len(_PORTS)]
        if port not in _DRAWN and _can_listen(port):
            _DRAWN.add(port)
            return port
    raise TrimtabError(f"no port from {_PORTS.start} to {_PORTS.stop - 1} is free")


def _kafka_id() -> str:
    return base64.urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")


def _can_listen(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((_LOOPBACK, port))
        except OSError:
            return False
    return True


def is_free(port: int, host: str = _LOOPBACK) -> bool:
    """True when nobody listens on *port* of this machine, at its address *host*."""
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) != 0


#: Half the time to start, for some of the throughput: these servers are not for production.
_QUICK_START: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true")
#: Either server's slf4j-simple: warnings alone, with the time.
_LOGGING: Final = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true")
#: Where servers of this checkout have their state, a folder each.
FOLDER: Final = Path(__file__).parents[2] / ".servers"

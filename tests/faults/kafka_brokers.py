"""More Kafka brokers than one: a second beside a first, and three that are one cluster."""

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

from controller.lab.servers import KafkaServer

NODE = 2
#: Of each of three brokers: they hold little.
_MEMORY: Final = "-Xmx400m"
_COPIES: Final = 3
#: A broker that others do not hear is out in seconds, as with Kafka's own settings it is in half a minute.
_QUICK: Final = (
    "broker.session.timeout.ms=4000",
    "broker.heartbeat.interval.ms=1000",
    "replica.lag.time.max.ms=4000",
    "replica.socket.timeout.ms=3000",
    "controller.socket.timeout.ms=3000",
)


class SecondBroker(KafkaServer):
    """A broker of the cluster whose controller is *first*; partitions on it alone are offline while it is stopped."""

    def __init__(self, folder: Path, first: KafkaServer) -> None:
        super().__init__(folder)
        self._first = first

    def _prepare(self, classpath: str) -> None:
        self._properties.write_text(self._configuration(), encoding="utf-8")
        if not self._meta.exists():
            self._format(self._first.cluster_id, NODE)

    def _configuration(self) -> str:
        text = (self._first.folder / "server.properties").read_text(encoding="utf-8")
        return _with(
            text,
            "process.roles=broker",
            f"node.id={NODE}",
            f"listeners=PLAINTEXT://{self.address}",
            f"advertised.listeners=PLAINTEXT://{self.address}",
            f"log.dirs={self.folder / 'data'}",
        )


class Member(KafkaServer):
    """One of three brokers, each a controller, too; every topic has a copy on each."""

    def __init__(self, folder: Path, node: int, host: str) -> None:
        super().__init__(folder, host=host)
        self.node = node
        #: The whole cluster, and its id.
        self.members: Sequence[Member] = ()
        self.cluster = ""

    def _prepare(self, classpath: str) -> None:
        self._properties.write_text(self._configuration(), encoding="utf-8")
        if not self._meta.exists():
            self._format(self.cluster, self.node)

    def _configuration(self) -> str:
        voters = ",".join(f"{each.node}@{each.controller_address}" for each in self.members)
        return _with(
            super()._configuration(),
            f"node.id={self.node}",
            f"controller.quorum.voters={voters}",
            f"offsets.topic.replication.factor={_COPIES}",
            f"transaction.state.log.replication.factor={_COPIES}",
            f"transaction.state.log.min.isr={_COPIES - 1}",
            f"share.coordinator.state.topic.replication.factor={_COPIES}",
            f"share.coordinator.state.topic.min.isr={_COPIES - 1}",
        ) + "".join(f"{line}\n" for line in _QUICK)

    def _java_options(self) -> list[str]:
        return [_MEMORY if option.startswith("-Xmx") else option for option in super()._java_options()]


@contextmanager
def three_brokers(
    folder: Path, hosts: Sequence[tuple[str, str]], on: Callable[[str], AbstractContextManager[None]]
) -> Iterator[Sequence[Member]]:
    """A cluster of as many brokers as there are *hosts*, name and address each; *on*: runs its block on such a host."""
    members = [Member(folder / name, nth, address) for nth, (name, address) in enumerate(hosts, start=1)]
    for each in members:
        each.members, each.cluster = members, "MkU3OEVBNTcwNTJENDM2Qg"

    def start(nth: int) -> None:
        with on(hosts[nth][0]):
            members[nth].start(tied=True)

    try:
        with ThreadPoolExecutor(len(hosts)) as pool:
            # All at once: none serves clients before most of them are there.
            list(pool.map(start, range(len(hosts))))
        yield members
    finally:
        for each in members:
            each.stop()


def _with(properties: str, *lines: str) -> str:
    """*properties* with *lines* in the place of those with the same names."""
    for line in lines:
        properties = re.sub(rf"(?m)^{re.escape(line.partition('=')[0])}=.*$", line.replace("\\", r"\\"), properties)
    return properties

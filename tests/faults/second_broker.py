"""A second Kafka broker beside the first one: partitions that lie on it alone are offline while it is stopped."""

import re
from pathlib import Path

from controller.lab.servers import KafkaServer

NODE = 2


class SecondBroker(KafkaServer):
    """A broker of the cluster whose controller is *first*; *folder* has its state."""

    def __init__(self, folder: Path, first: KafkaServer) -> None:
        super().__init__(folder)
        self._first = first

    def _prepare(self, classpath: str) -> None:
        self._properties.write_text(self._configuration(), encoding="utf-8")
        if not self._meta.exists():
            self._format(self._first.cluster_id, NODE)

    def _configuration(self) -> str:
        text = (self._first.folder / "server.properties").read_text(encoding="utf-8")
        for line in (
            "process.roles=broker",
            f"node.id={NODE}",
            f"listeners=PLAINTEXT://{self.address}",
            f"advertised.listeners=PLAINTEXT://{self.address}",
            f"log.dirs={self.folder / 'data'}",
        ):
            text = re.sub(rf"(?m)^{line.partition('=')[0]}=.*$", line.replace("\\", r"\\"), text)
        return text

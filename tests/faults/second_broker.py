"""A second Kafka broker beside the first one: partitions that lie on it alone are offline while it is stopped."""

import re
import subprocess
from pathlib import Path

from controller.adapters.disk import jars
from controller.lab.servers import KafkaServer

NODE = 2


class SecondBroker(KafkaServer):
    """A broker of the cluster whose controller is *first*; *folder* has its state."""

    def __init__(self, folder: Path, first: KafkaServer) -> None:
        super().__init__(folder)
        self._first = first

    def _prepare(self, classpath: str) -> None:
        self._properties.write_text(self._configuration(), encoding="utf-8")
        if (self.folder / "data" / "meta.properties").exists():
            return
        [cluster] = re.findall(r"cluster.id=(.*)", (self._first.folder / "data" / "meta.properties").read_text())
        tool = [jars.java(), "-cp", classpath, "kafka.tools.StorageTool", "format"]
        subprocess.run([*tool, f"--cluster-id={cluster}", "-c", str(self._properties)], capture_output=True, check=True)

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

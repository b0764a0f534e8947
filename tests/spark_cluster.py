"""A standalone Spark cluster on loopback: a master and workers, each in a process of its own, from PySpark's jars."""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from controller.adapters.disk import jars
from controller.adapters.network.waiting import wait_for
from controller.adapters.process.process_tree import descendants, kill_descendants
from controller.lab.servers import free_port

_START_SECONDS: Final = 120.0
_JAVA: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
_EXECUTOR: Final = b"CoarseGrainedExecutorBackend"


class SparkCluster:
    """Its address, and its executors."""

    #: Environment variables of its clients.
    environment: Final[Mapping[str, str]] = {}

    def __init__(self, folder: Path) -> None:
        self.master = f"spark://127.0.0.1:{free_port()}"
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, workers: int) -> None:
        """Return when the master has registered so many workers of one core."""
        host, port = self.master.removeprefix("spark://").split(":")
        self._run("master", "master.Master", "--host", host, "--port", port, "--webui-port", str(free_port()))
        self._wait("master", "Starting Spark master at", 1)
        for number in range(workers):
            name = f"worker-{number}"
            here = ("--host", host, "--webui-port", str(free_port()), "--work-dir", str(self._folder / name))
            self._run(name, "worker.Worker", *here, "--cores", "1", "--memory", "1g", self.master)
        self._wait("master", "Registering worker", workers)

    def executors(self) -> list[int]:
        """The processes of all executors."""
        return [pid for process in self._processes for pid in executors_of(process.pid)]

    def stop(self) -> None:
        """End all processes."""
        for process in self._processes:
            kill_descendants(process.pid)
            process.kill()
            process.wait(30)

    def _run(self, name: str, main: str, *words: str) -> None:
        home = jars.pyspark_jars().parent
        # Nothing of this environment's path: what executors run comes from the driver.
        env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        env |= {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
        env |= {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": f"{_JAVA} -Djava.io.tmpdir={self._folder}"}
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{main}"]
        with (self._folder / f"{name}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen([*command, *words], env=env, stdout=log, stderr=log, cwd=self._folder)
            )

    def _wait(self, name: str, text: str, times: int) -> None:
        log = self._folder / f"{name}.log"
        wait_for(lambda: len(re.findall(text, log.read_text(errors="replace"))) >= times, _START_SECONDS, every=0.2)


@contextmanager
def spark_cluster(folder: Path, workers: int) -> Iterator[SparkCluster]:
    """A cluster of *workers* with one core each; all of its processes end with the block."""
    cluster = SparkCluster(folder)
    try:
        cluster.start(workers)
        yield cluster
    finally:
        cluster.stop()


def executors_of(pid: int) -> list[int]:
    """The processes of executors that *pid* has started."""
    return [each for each in descendants(pid) if _is_executor(each)]


def _is_executor(pid: int) -> bool:
    """Not the shell that YARN starts it with, which has the same words."""
    try:
        program, _, words = Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")
    except OSError:
        return False
    return program.endswith(b"java") and _EXECUTOR in words

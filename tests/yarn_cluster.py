"""YARN and HDFS on loopback: mini clusters of Hadoop in one JVM, which Python drives; containers are processes.

As on a real cluster, HDFS is Hadoop's default file system: a path without a scheme is not one of this machine.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from controller.adapters.disk import jars
from controller.adapters.process.process_tree import kill_descendants
from tests.spark_cluster import executors_of

_JAVA: Final = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_SET: Final = "hadoop"
_OF_HDFS: Final = {"dfs.replication": "1"}
#: Small containers, on disks however full, without a look at their virtual memory.
_OF_YARN: Final = {
    "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99.9",
    "yarn.nodemanager.pmem-check-enabled": "false",
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "0.9",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.minimum-allocation-mb": "256",
}


class YarnCluster:
    """Its executors, and how programs find it."""

    master: Final = "yarn"

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "hadoop"
        self._process: Any = None
        #: Environment variables of its clients.
        self.environment = {"HADOOP_CONF_DIR": str(self._folder / "conf")}
        #: The URI of HDFS.
        self.files = ""

    def start(self, workers: int) -> None:
        """Return when HDFS, with one data node, and YARN, with so many node managers, serve."""
        (self._folder / "conf").mkdir(parents=True)
        jvm = self._jvm()
        home = Path(jars.java_program()).resolve().parents[1]
        of_hdfs = jvm.org.apache.hadoop.conf.Configuration()
        for name, value in {**_OF_HDFS, "hdfs.minidfs.basedir": str(self._folder)}.items():
            of_hdfs.set(name, value)
        hdfs = jvm.org.apache.hadoop.hdfs.MiniDFSCluster.Builder(of_hdfs).numDataNodes(1).build()
        hdfs.waitActive()
        self.files = str(hdfs.getURI())
        of_yarn = jvm.org.apache.hadoop.yarn.conf.YarnConfiguration()
        own = {"fs.defaultFS": self.files, "yarn.nodemanager.admin-env": f"JAVA_HOME={home}"}
        for name, value in {**_OF_YARN, **own}.items():
            of_yarn.set(name, value)
        yarn = jvm.org.apache.hadoop.yarn.server.MiniYARNCluster("yarn", workers, 1, 1)
        yarn.init(of_yarn)
        yarn.start()
        for name in ("core-site.xml", "yarn-site.xml"):
            with_all = jvm.java.io.FileWriter(str(self._folder / "conf" / name))
            yarn.getConfig().writeXml(with_all)
            with_all.close()

    def executors(self) -> list[int]:
        """The processes of all executors."""
        return executors_of(self._process.pid)

    def stop(self) -> None:
        """End all processes."""
        if self._process is not None:
            kill_descendants(self._process.pid)
            self._process.kill()
            self._process.wait(30)

    def _jvm(self) -> Any:
        """The classes of a new JVM, in which the clusters are to run."""
        shipped = jars.pyspark_jars()
        (py4j,) = shipped.glob("py4j-*.jar")
        with (self._folder / "hadoop.log").open("wb") as log:
            port, token, self._process = launch_gateway(
                jarpath=str(py4j),
                # Ours first: Hadoop's clients are among both.
                classpath=":".join([*map(str, jars.fetch(_SET)), f"{shipped}/*"]),
                javaopts=[*_JAVA, f"-Djava.io.tmpdir={self._folder}"],
                die_on_exit=True,
                enable_auth=True,
                redirect_stderr=log,
                java_path=jars.java(),
                cwd=str(self._folder),
                return_proc=True,
            )
        # Java need not be told which objects Python has forgotten: at the end of a test there is nobody to tell.
        parameters = GatewayParameters(port=port, auth_token=token, enable_memory_management=False)
        return JavaGateway(gateway_parameters=parameters).jvm


@contextmanager
def yarn_cluster(folder: Path, workers: int) -> Iterator[YarnCluster]:
    """A cluster of *workers* node managers; all of its processes end with the block."""
    cluster = YarnCluster(folder)
    try:
        cluster.start(workers)
        yield cluster
    finally:
        cluster.stop()

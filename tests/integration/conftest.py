"""One Spark session for all tests that need no process of their own."""

from collections.abc import Iterator
from typing import Any

import pytest
from kazoo.client import KazooClient
from pyspark.sql import SparkSession

from controller.adapters.disk import jars
from controller.lab.servers import ZooKeeperServer
from streaming.spark import gateway
from streaming.spark.session import start_session

#: A JVM that lives for a minute is better compiled quickly than well.
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Two cores, one shuffle partition unless a test says otherwise, and what reads Kafka."""
    conf = {"spark.driver.extraJavaOptions": _QUICK, "spark.driver.memory": "1g"}
    session = start_session("local[2]", 1, conf, jars.fetch("connector"))
    yield session
    session.stop()
    gateway.end_in_order()


@pytest.fixture
def zookeeper_client(zookeeper: ZooKeeperServer) -> Iterator[KazooClient]:
    """A client of the shared ZooKeeper, for what an administrator would do there."""
    client = KazooClient(zookeeper.hosts)
    client.start()
    yield client
    client.stop()
    client.close()


@pytest.fixture
def hadoop_elsewhere(spark: SparkSession) -> Iterator[None]:
    """Hadoop's default file system is one that does not answer, as HDFS is on a cluster that is not this one."""
    context: Any = spark.sparkContext
    conf, name = context._jsc.hadoopConfiguration(), "fs.defaultFS"
    before = conf.get(name)
    conf.set(name, "nowhere://cluster/")
    yield
    conf.set(name, before)

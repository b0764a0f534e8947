"""The configuration of the Pulsar cluster for demos and tests; see pulsar_server."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

#: The cluster's name.
CLUSTER: Final = "standalone"
LOOPBACK: Final = "127.0.0.1"

#: The options with the fastest start, and the packages that Pulsar's own script opens.
JAVA_OPTIONS: Final = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Djava.net.preferIPv4Stack=true",
    "-Dzookeeper.forceSync=no",
    "-Dzookeeper.admin.enableServer=false",
    f"-Dlog4j.configurationFile={Path(__file__).parent / 'java' / 'log4j2.properties'}",
    "-Dbookkeeper.metadata.bookie.drivers=org.apache.pulsar.metadata.bookkeeper.PulsarMetadataBookieDriver",
    "-Dbookkeeper.metadata.client.drivers=org.apache.pulsar.metadata.bookkeeper.PulsarMetadataClientDriver",
    "-Dio.netty.tryReflectionSetAccessible=true",
    *(
        f"--add-opens={package}=ALL-UNNAMED"
        for package in (
            "java.base/java.io",
            "java.base/java.util.zip",
            "java.base/java.nio",
            "java.base/jdk.internal.misc",
            "java.base/jdk.internal.platform",
            "java.management/sun.management",
            "jdk.management/com.sun.management.internal",
        )
    ),
)

#: Small, with frequent load reports, and without load balancing of its own.
BROKER_CONF: Final[Mapping[str, str]] = {
    "clusterName": CLUSTER,
    "bindAddress": LOOPBACK,
    "advertisedAddress": LOOPBACK,
    "loadBalancerEnabled": "true",
    "loadBalancerSheddingEnabled": "false",
    "loadBalancerAutoBundleSplitEnabled": "false",
    "loadBalancerAutoUnloadSplitBundlesEnabled": "false",
    "loadBalancerNamespaceMaximumBundles": "128",
    "loadBalancerOverrideBrokerNicSpeedGbps": "1",
    "loadBalancerReportUpdateMinIntervalMillis": "5000",
    "loadBalancerReportUpdateMaxIntervalMinutes": "1",
    "loadBalancerHostUsageCheckIntervalMinutes": "1",
    "loadBalancerResourceQuotaUpdateIntervalMinutes": "1",
    "defaultNumberOfNamespaceBundles": "4",
    "statsUpdateFrequencyInSecs": "2",
    "statsUpdateInitialDelayInSecs": "2",
    "supportedNamespaceBundleSplitAlgorithms": "range_equally_divide,topic_count_equally_divide,"
    "specified_positions_divide,flow_or_qps_equally_divide",
    "allowAutoTopicCreation": "true",
    "allowAutoTopicCreationType": "non-partitioned",
    "brokerDeleteInactiveTopicsEnabled": "false",
    "transactionCoordinatorEnabled": "false",
    "functionsWorkerEnabled": "false",
    "webSocketServiceEnabled": "false",
    "brokerShutdownTimeoutMs": "5000",
    "metadataStoreSessionTimeoutMillis": "10000",
    # Without these two each broker wakes 300 times a second while it has nothing to do.
    "metadataStoreBatchingEnabled": "false",
    "managedLedgerCacheEvictionIntervalMs": "1000",
    "managedLedgerDefaultEnsembleSize": "1",
    "managedLedgerDefaultWriteQuorum": "1",
    "managedLedgerDefaultAckQuorum": "1",
    "managedLedgerCacheSizeMB": "16",
    "managedLedgerNumSchedulerThreads": "1",
    "bookkeeperUseV2WireProtocol": "true",
    "bookkeeperClientNumIoThreads": "1",
    "bookkeeperClientNumWorkerThreads": "1",
    "numIOThreads": "2",
    "numOrderedExecutorThreads": "2",
    "numExecutorThreadPoolSize": "2",
    "numHttpServerThreads": "8",
}

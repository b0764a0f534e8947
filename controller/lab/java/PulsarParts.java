import java.io.File;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import org.apache.bookkeeper.client.BookKeeperAdmin;
import org.apache.bookkeeper.common.allocator.PoolingPolicy;
import org.apache.bookkeeper.common.component.ComponentStarter;
import org.apache.bookkeeper.common.component.Lifecycle;
import org.apache.bookkeeper.common.component.LifecycleComponentStack;
import org.apache.bookkeeper.conf.ServerConfiguration;
import org.apache.bookkeeper.server.Main;
import org.apache.bookkeeper.server.conf.BookieConfiguration;
import org.apache.pulsar.PulsarClusterMetadataSetup;
import org.apache.pulsar.broker.PulsarService;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.common.configuration.PulsarConfigurationLoader;
import org.apache.pulsar.metadata.api.MetadataStoreConfig;
import org.apache.pulsar.metadata.api.extended.MetadataStoreExtended;
import org.apache.pulsar.metadata.bookkeeper.AbstractMetadataDriver;
import org.apache.pulsar.metadata.impl.MetadataStoreFactoryImpl;
import org.apache.zookeeper.server.ServerCnxnFactory;
import org.apache.zookeeper.server.ZooKeeperServer;

/**
 * Parts of a Pulsar cluster in this process, on loopback alone, started in the order they are named in:
 * {@code zookeeper PORT FOLDER}, {@code bookie ZOOKEEPER_PORT PORT FOLDER}, {@code broker CONF}.
 *
 * <p>Compiled by Janino at every start, so it keeps to what Janino knows: no lambdas, no inferred types.
 */
public class PulsarParts {
    private static final String LOOPBACK = "127.0.0.1";
    /** ms; sessions may last from 2 to 20 ticks. */
    private static final int TICK = 500;
    /** The cluster's metadata, by this process. */
    private static boolean isSetUp = false;

    /** Ends one part; never mind how. */
    private interface Part {
        void close() throws Exception;
    }

    public static void main(String[] arguments) {
        try {
            run(arguments);
        } catch (Throwable problem) {
            // Threads of what has started would keep the process, and whoever waits for it would wait in vain.
            problem.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
    }

    private static void run(String[] arguments) throws Exception {
        final List parts = new ArrayList();
        Runtime.getRuntime().addShutdownHook(new Thread() {
            public void run() {
                closeFromLast(parts);
            }
        });
        int at = 0;
        while (at < arguments.length) {
            String kind = arguments[at];
            if (kind.equals("zookeeper")) {
                parts.add(zooKeeper(Integer.parseInt(arguments[at + 1]), new File(arguments[at + 2])));
                at += 3;
            } else if (kind.equals("bookie")) {
                parts.add(bookie(arguments[at + 1], Integer.parseInt(arguments[at + 2]), arguments[at + 3]));
                at += 4;
            } else if (kind.equals("broker")) {
                parts.add(broker(arguments[at + 1]));
                at += 2;
            } else {
                at += 1; // what the process is recognised by
            }
        }
        Thread.currentThread().join();
    }

    /** Brokers before the bookie and the bookie before ZooKeeper: in another order each waits for what is gone. */
    private static void closeFromLast(List parts) {
        for (int i = parts.size() - 1; i >= 0; i--) {
            try {
                ((Part) parts.get(i)).close();
            } catch (Throwable problem) {
                System.err.println("while closing: " + problem);
            }
        }
    }

    private static Part zooKeeper(int port, File folder) throws Exception {
        ZooKeeperServer server = new ZooKeeperServer(folder, folder, TICK);
        final ServerCnxnFactory connections = ServerCnxnFactory.createFactory(new InetSocketAddress(LOOPBACK, port), 0);
        connections.startup(server);
        return new Part() {
            public void close() {
                connections.shutdown();
            }
        };
    }

    private static Part bookie(String zooKeeperPort, int port, String folder) throws Exception {
        String metadata = "zk:" + LOOPBACK + ":" + zooKeeperPort;
        // To batch what it writes, it would wake 200 times a second.
        MetadataStoreConfig oneByOne = MetadataStoreConfig.builder().batchingEnabled(false).build();
        final MetadataStoreExtended store = MetadataStoreFactoryImpl.createExtended(metadata, oneByOne);
        ServerConfiguration conf = new ServerConfiguration();
        conf.setListeningInterface("lo");
        conf.setAllowLoopback(true);
        conf.setAdvertisedAddress(LOOPBACK);
        conf.setAllowEphemeralPorts(true); // without it, the port is not the one that is asked for
        conf.setJournalSyncData(false);
        conf.setNumReadWorkerThreads(1);
        conf.setNumAddWorkerThreads(1);
        conf.setNumHighPriorityWorkerThreads(1);
        conf.setNumJournalCallbackThreads(1);
        conf.setDiskUsageWarnThreshold(0.98f);
        conf.setDiskUsageThreshold(0.99f);
        conf.setProperty("dbStorage_writeCacheMaxSizeMb", Integer.valueOf(8));
        conf.setProperty("dbStorage_readAheadCacheMaxSizeMb", Integer.valueOf(4));
        conf.setProperty("dbStorage_rocksDB_writeBufferSizeMB", Integer.valueOf(2));
        conf.setProperty("dbStorage_rocksDB_blockCacheSize", Integer.valueOf(2 << 20));
        conf.setJournalRemovePagesFromCache(false);
        conf.setAllocatorPoolingPolicy(PoolingPolicy.UnpooledHeap);
        conf.setBookiePort(port);
        conf.setJournalDirName(folder);
        conf.setLedgerDirNames(new String[] {folder});
        conf.setMetadataServiceUri("metadata-store:" + metadata);
        conf.setProperty(AbstractMetadataDriver.METADATA_STORE_INSTANCE, store);
        BookKeeperAdmin.initNewCluster(conf);
        final LifecycleComponentStack server = Main.buildBookieServer(new BookieConfiguration(conf));
        ComponentStarter.startComponent(server);
        while (server.lifecycleState() != Lifecycle.State.STARTED) {
            Thread.sleep(10);
        }
        return new Part() {
            public void close() throws Exception {
                server.close();
                store.close();
            }
        };
    }

    private static Part broker(final String path) throws Exception {
        ServiceConfiguration conf =
            (ServiceConfiguration) PulsarConfigurationLoader.create(path, ServiceConfiguration.class);
        if (!isSetUp) {
            PulsarClusterMetadataSetup.main(new String[] {
                "--cluster", conf.getClusterName(),
                "--metadata-store", conf.getMetadataStoreUrl(),
                "--configuration-metadata-store", conf.getConfigurationMetadataStoreUrl(),
                "--web-service-url", "http://" + LOOPBACK + ":" + conf.getWebServicePort().get(),
                "--broker-service-url", "pulsar://" + LOOPBACK + ":" + conf.getBrokerServicePort().get(),
            });
            isSetUp = true;
        }
        final PulsarService broker = new PulsarService(conf, Optional.empty(), new Consumer() {
            public void accept(Object status) {
                System.err.println(path + " wants to exit with " + status);
                Runtime.getRuntime().halt(1);
            }
        });
        broker.start();
        return new Part() {
            public void close() throws Exception {
                broker.close();
            }
        };
    }
}

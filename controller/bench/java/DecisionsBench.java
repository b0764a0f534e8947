import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiConsumer;
import org.apache.pulsar.broker.PulsarService;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.LoadData;
import org.apache.pulsar.broker.loadbalance.LoadSheddingStrategy;
import org.apache.pulsar.broker.loadbalance.extensions.BrokerRegistry;
import org.apache.pulsar.broker.loadbalance.extensions.LoadManagerContext;
import org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLoadData;
import org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLookupData;
import org.apache.pulsar.broker.loadbalance.extensions.data.TopBundlesLoadData;
import org.apache.pulsar.broker.loadbalance.extensions.models.TopKBundles;
import org.apache.pulsar.broker.loadbalance.extensions.models.UnloadCounter;
import org.apache.pulsar.broker.loadbalance.extensions.scheduler.TransferShedder;
import org.apache.pulsar.broker.loadbalance.extensions.store.LoadDataStore;
import org.apache.pulsar.broker.loadbalance.impl.AvgShedder;
import org.apache.pulsar.broker.loadbalance.impl.BundleSplitterTask;
import org.apache.pulsar.broker.loadbalance.impl.OverloadShedder;
import org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder;
import org.apache.pulsar.broker.loadbalance.impl.UniformLoadShedder;
import org.apache.pulsar.broker.namespace.NamespaceService;
import org.apache.pulsar.common.naming.NamespaceName;
import org.apache.pulsar.policies.data.loadbalancer.BrokerData;
import org.apache.pulsar.policies.data.loadbalancer.BundleData;
import org.apache.pulsar.policies.data.loadbalancer.LocalBrokerData;
import org.apache.pulsar.policies.data.loadbalancer.NamespaceBundleStats;
import org.apache.pulsar.policies.data.loadbalancer.ResourceUsage;
import org.apache.pulsar.policies.data.loadbalancer.SystemResourceUsage;
import org.apache.pulsar.policies.data.loadbalancer.TimeAverageBrokerData;
import org.apache.pulsar.policies.data.loadbalancer.TimeAverageMessageData;

/**
 * Runs Pulsar's real classes on the load in a file, one decision for each line of standard input that names one.
 *
 * <p>Answers with name, milliseconds and how many bundles were chosen. Each decision has a fresh object, so that none
 * profits from the one before; only the decision itself is timed.
 */
public final class DecisionsBench {
    private static final NamespaceBundleStats NO_STATS = new NamespaceBundleStats();

    private final ServiceConfiguration conf = new ServiceConfiguration();
    private final LoadData loadData = new LoadData();
    private final List<String> brokers = new ArrayList<>();
    private final Map<String, Integer> bundlesOfNamespace = new HashMap<>();
    private final List<Map.Entry<BundleData, NamespaceBundleStats>> samples = new ArrayList<>();

    public static void main(String[] arguments) throws Exception {
        DecisionsBench bench = new DecisionsBench();
        bench.read(Path.of(arguments[0]));
        System.out.println("ready");
        BufferedReader asked = new BufferedReader(new InputStreamReader(System.in));
        for (String name = asked.readLine(); name != null; name = asked.readLine()) {
            Timed timed = bench.decision(name);
            long begin = System.nanoTime();
            int chosen = timed.run();
            System.out.println(name + " " + (System.nanoTime() - begin) / 1e6 + " " + chosen);
        }
    }

    private interface Timed {
        int run() throws Exception;
    }

    private Timed decision(String name) {
        switch (name) {
            case "OverloadShedder": return shedding(new OverloadShedder());
            case "ThresholdShedder": return shedding(new ThresholdShedder());
            case "UniformLoadShedder": return shedding(new UniformLoadShedder());
            case "AvgShedder": return shedding(new AvgShedder());
            case "TransferShedder": return transfer();
            case "BundleSplitterTask": {
                BundleSplitterTask task = new BundleSplitterTask();
                PulsarService pulsar = Stubs.pulsar(conf, bundlesOfNamespace);
                return () -> task.findBundlesToSplit(loadData, pulsar).size();
            }
            case "averages": return this::averages;
            default: throw new IllegalArgumentException("no decision named " + name);
        }
    }

    private Timed shedding(LoadSheddingStrategy strategy) {
        return () -> strategy.findBundlesForUnloading(loadData, conf).size();
    }

    /** The brokers' reports, then the decision: what trimtab's shedder of that name does too. */
    private Timed transfer() {
        Map<String, BrokerLoadData> loads = new HashMap<>();
        Map<String, TopBundlesLoadData> tops = new HashMap<>();
        Map<String, BrokerLookupData> available = new HashMap<>();
        for (String broker : brokers) {
            loads.put(broker, new BrokerLoadData());
            available.put(broker, null);
        }
        TransferShedder shedder = new TransferShedder(new UnloadCounter());
        LoadManagerContext context = Stubs.context(conf, new Store<>(loads), new Store<>(tops), available);
        // Without the look at the policies of every bundle's namespace, which brokers would have to read.
        ServiceConfiguration withPolicies = new ServiceConfiguration();
        withPolicies.setLoadBalancerSheddingBundlesWithPoliciesEnabled(true);
        PulsarService reporter = Stubs.pulsar(withPolicies, Map.of());
        int most = conf.getLoadBalancerMaxNumberOfBundlesInBundleLoadReport();
        return () -> {
            for (Map.Entry<String, BrokerLoadData> entry : loads.entrySet()) {
                LocalBrokerData local = loadData.getBrokerData().get(entry.getKey()).getLocalData();
                SystemResourceUsage usage = new SystemResourceUsage();
                usage.setCpu(local.getCpu());
                usage.setMemory(local.getMemory());
                usage.setDirectMemory(local.getDirectMemory());
                usage.setBandwidthIn(local.getBandwidthIn());
                usage.setBandwidthOut(local.getBandwidthOut());
                entry.getValue().update(usage, local.getMsgThroughputIn(), local.getMsgThroughputOut(),
                        local.getMsgRateIn(), local.getMsgRateOut(), local.getNumBundles(), local.getNumTopics(), conf);
                TopKBundles top = new TopKBundles(reporter);
                top.update(local.getLastStats(), most);
                tops.put(entry.getKey(), top.getLoadData());
            }
            return shedder.findBundlesForUnloading(context, new HashMap<>(), new HashMap<>()).size();
        };
    }

    private int averages() {
        for (Map.Entry<BundleData, NamespaceBundleStats> sample : samples) {
            sample.getKey().update(sample.getValue());
        }
        for (BrokerData broker : loadData.getBrokerData().values()) {
            broker.getTimeAverageData().reset(
                    broker.getLocalData().getLastStats().keySet(), loadData.getBundleData(), NO_STATS);
        }
        return 0;
    }

    /** Lines of words: option name value; broker name usages limits load; bundle name broker loads counts. */
    private void read(Path file) throws IOException {
        try (BufferedReader lines = Files.newBufferedReader(file)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] words = line.split(" ");
                switch (words[0]) {
                    case "option": set(words[1], words[2]); break;
                    case "broker": addBroker(words); break;
                    default: addBundle(words);
                }
            }
        }
        for (BrokerData broker : loadData.getBrokerData().values()) {
            LocalBrokerData local = broker.getLocalData();
            local.setNumBundles(local.getBundles().size());
        }
    }

    private void set(String option, String value) {
        switch (option) {
            case "loadBalancerAvgShedderHitCountLowThreshold":
                conf.setLoadBalancerAvgShedderHitCountLowThreshold(Integer.parseInt(value)); break;
            case "loadBalancerAvgShedderHitCountHighThreshold":
                conf.setLoadBalancerAvgShedderHitCountHighThreshold(Integer.parseInt(value)); break;
            case "loadBalancerSheddingConditionHitCountThreshold":
                conf.setLoadBalancerSheddingConditionHitCountThreshold(Integer.parseInt(value)); break;
            case "loadBalancerNamespaceBundleSplitConditionHitCountThreshold":
                conf.setLoadBalancerNamespaceBundleSplitConditionHitCountThreshold(Integer.parseInt(value)); break;
            default: throw new IllegalArgumentException("no option named " + option);
        }
    }

    private void addBroker(String[] words) {
        LocalBrokerData local = new LocalBrokerData("http://" + words[1], null, null, null, Map.of());
        double[] numbers = numbers(words, 2);
        local.setCpu(new ResourceUsage(numbers[0], numbers[5]));
        local.setMemory(new ResourceUsage(numbers[1], numbers[6]));
        local.setDirectMemory(new ResourceUsage(numbers[2], numbers[7]));
        local.setBandwidthIn(new ResourceUsage(numbers[3], numbers[8]));
        local.setBandwidthOut(new ResourceUsage(numbers[4], numbers[9]));
        local.setMsgRateIn(numbers[10]);
        local.setMsgRateOut(numbers[11]);
        local.setMsgThroughputIn(numbers[12]);
        local.setMsgThroughputOut(numbers[13]);
        local.setLastStats(new HashMap<>());
        local.setBundles(new HashSet<>());
        BrokerData broker = new BrokerData(local);
        broker.setTimeAverageData(new TimeAverageBrokerData());
        loadData.getBrokerData().put(words[1], broker);
        brokers.add(words[1]);
    }

    private void addBundle(String[] words) {
        String bundle = words[1];
        String broker = brokers.get(Integer.parseInt(words[2]));
        double[] numbers = numbers(words, 3);
        NamespaceBundleStats stats = new NamespaceBundleStats();
        stats.msgRateIn = numbers[0];
        stats.msgRateOut = numbers[1];
        stats.msgThroughputIn = numbers[2];
        stats.msgThroughputOut = numbers[3];
        stats.topics = (long) numbers[12];
        stats.producerCount = (int) numbers[13];
        stats.consumerCount = (int) numbers[14];
        BundleData data = new BundleData(10, 1000);
        fill(data.getShortTermData(), numbers, 4);
        fill(data.getLongTermData(), numbers, 8);
        LocalBrokerData local = loadData.getBrokerData().get(broker).getLocalData();
        local.getBundles().add(bundle);
        local.getLastStats().put(bundle, stats);
        loadData.getBundleData().put(bundle, data);
        samples.add(Map.entry(data, stats));
        bundlesOfNamespace.merge(bundle.substring(0, bundle.lastIndexOf('/')), 1, Integer::sum);
    }

    private static void fill(TimeAverageMessageData average, double[] numbers, int from) {
        average.setMsgRateIn(numbers[from]);
        average.setMsgRateOut(numbers[from + 1]);
        average.setMsgThroughputIn(numbers[from + 2]);
        average.setMsgThroughputOut(numbers[from + 3]);
        average.setNumSamples(average.getMaxSamples());
    }

    private static double[] numbers(String[] words, int from) {
        double[] numbers = new double[words.length - from];
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = Double.parseDouble(words[from + i]);
        }
        return numbers;
    }

    /** What the brokers of an extensible load manager publish, without the topic it is published on. */
    private static final class Store<T> implements LoadDataStore<T> {
        private final Map<String, T> values;

        Store(Map<String, T> values) {
            this.values = values;
        }

        @Override
        public CompletableFuture<Void> pushAsync(String key, T value) {
            throw new UnsupportedOperationException();
        }

        @Override
        public CompletableFuture<Void> removeAsync(String key) {
            throw new UnsupportedOperationException();
        }

        @Override
        public Optional<T> get(String key) {
            return Optional.ofNullable(values.get(key));
        }

        @Override
        public void forEach(BiConsumer<String, T> action) {
            values.forEach(action);
        }

        @Override
        public Set<Map.Entry<String, T>> entrySet() {
            return values.entrySet();
        }

        @Override
        public int size() {
            return values.size();
        }

        @Override
        public void closeTableView() { }

        @Override
        public void start() { }

        @Override
        public void init() { }

        @Override
        public void startTableView() { }

        @Override
        public void startProducer() { }

        @Override
        public void close() { }
    }

    /** Services that a decision asks one thing of, made without running their constructors, which start a broker. */
    private static final class Stubs {
        static PulsarService pulsar(ServiceConfiguration conf, Map<String, Integer> counts) {
            StubPulsar pulsar = unconstructed(StubPulsar.class);
            pulsar.conf = conf;
            pulsar.namespaces = unconstructed(StubNamespaces.class);
            pulsar.namespaces.counts = counts;
            return pulsar;
        }

        static LoadManagerContext context(ServiceConfiguration conf, LoadDataStore<BrokerLoadData> loads,
                LoadDataStore<TopBundlesLoadData> tops, Map<String, BrokerLookupData> available) {
            BrokerRegistry registry = (BrokerRegistry) java.lang.reflect.Proxy.newProxyInstance(
                    BrokerRegistry.class.getClassLoader(), new Class<?>[] {BrokerRegistry.class},
                    (proxy, method, arguments) -> CompletableFuture.completedFuture(available));
            return new LoadManagerContext() {
                @Override
                public ServiceConfiguration brokerConfiguration() {
                    return conf;
                }

                @Override
                public LoadDataStore<BrokerLoadData> brokerLoadDataStore() {
                    return loads;
                }

                @Override
                public LoadDataStore<TopBundlesLoadData> topBundleLoadDataStore() {
                    return tops;
                }

                @Override
                public BrokerRegistry brokerRegistry() {
                    return registry;
                }
            };
        }

        private static <T> T unconstructed(Class<T> type) {
            try {
                java.lang.reflect.Field field = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
                field.setAccessible(true);
                return type.cast(((sun.misc.Unsafe) field.get(null)).allocateInstance(type));
            } catch (ReflectiveOperationException error) {
                throw new IllegalStateException(error);
            }
        }
    }

    private static final class StubPulsar extends PulsarService {
        private ServiceConfiguration conf;
        private StubNamespaces namespaces;

        private StubPulsar() {
            super(null);
        }

        @Override
        public ServiceConfiguration getConfiguration() {
            return conf;
        }

        @Override
        public NamespaceService getNamespaceService() {
            return namespaces;
        }
    }

    private static final class StubNamespaces extends NamespaceService {
        private Map<String, Integer> counts;

        private StubNamespaces() {
            super(null);
        }

        @Override
        public int getBundleCount(NamespaceName namespace) {
            return counts.get(namespace.toString());
        }
    }
}

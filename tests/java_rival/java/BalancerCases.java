import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.pulsar.broker.PulsarService;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.LoadData;
import org.apache.pulsar.broker.loadbalance.LoadSheddingStrategy;
import org.apache.pulsar.broker.loadbalance.ModularLoadManagerStrategy;
import org.apache.pulsar.broker.loadbalance.impl.BundleSplitterTask;
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

/** Asks Pulsar's real classes, one question a line of standard input, and answers each with a line; see clusters.py. */
public final class BalancerCases {
    private ServiceConfiguration conf;
    private Object strategy;
    private LoadData loadData;
    private TimeAverageMessageData average;
    private LocalBrokerData local;
    private Iterator<String> words;

    public static void main(String[] arguments) throws Exception {
        BalancerCases cases = new BalancerCases();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            cases.words = Arrays.asList(line.split(" ")).iterator();
            System.out.println(String.join(" ", cases.answer(cases.words.next())));
        }
    }

    private List<String> answer(String question) throws Exception {
        switch (question) {
            case "new": return begin();
            case "cluster": return cluster();
            case "shed": return shed();
            case "select": return select();
            case "split": return split();
            case "average": return averaged();
            case "local": return reported();
            default: throw new IllegalArgumentException(question);
        }
    }

    /** A new strategy: its class, then options with their values. */
    private List<String> begin() throws Exception {
        String name = words.next();
        strategy = Class.forName("org.apache.pulsar.broker.loadbalance.impl." + name)
                .getDeclaredConstructor().newInstance();
        conf = new ServiceConfiguration();
        average = null;
        local = null;
        while (words.hasNext()) {
            Field field = ServiceConfiguration.class.getDeclaredField(words.next());
            field.setAccessible(true);
            String value = words.next();
            if (field.getType() == int.class) {
                field.setInt(conf, Integer.parseInt(value));
            } else if (field.getType() == double.class) {
                field.setDouble(conf, Double.parseDouble(value));
            } else {
                field.setBoolean(conf, Boolean.parseBoolean(value));
            }
        }
        return List.of(name);
    }

    /** Brokers with usages, limits and loads; bundles with broker, averages and counts; those unloaded recently. */
    private List<String> cluster() {
        loadData = new LoadData();
        List<String> brokers = new ArrayList<>();
        for (int left = number(); left > 0; left--) {
            String name = words.next();
            double[] numbers = numbers(16);
            LocalBrokerData data = new LocalBrokerData();
            data.setCpu(new ResourceUsage(numbers[0], numbers[5]));
            data.setMemory(new ResourceUsage(numbers[1], numbers[6]));
            data.setDirectMemory(new ResourceUsage(numbers[2], numbers[7]));
            data.setBandwidthIn(new ResourceUsage(numbers[3], numbers[8]));
            data.setBandwidthOut(new ResourceUsage(numbers[4], numbers[9]));
            data.setMsgRateIn(numbers[10]);
            data.setMsgRateOut(numbers[11]);
            data.setMsgThroughputIn(numbers[12]);
            data.setMsgThroughputOut(numbers[13]);
            data.setLastStats(new HashMap<>());
            data.setBundles(new HashSet<>());
            BrokerData broker = new BrokerData(data);
            TimeAverageBrokerData longTerm = new TimeAverageBrokerData();
            longTerm.setLongTermMsgRateIn(numbers[14]);
            longTerm.setLongTermMsgRateOut(numbers[15]);
            broker.setTimeAverageData(longTerm);
            loadData.getBrokerData().put(name, broker);
            brokers.add(name);
        }
        for (int left = number(); left > 0; left--) {
            String name = words.next();
            int owner = number();
            BundleData data = new BundleData(10, 1000);
            data.setShortTermData(messages(10));
            data.setLongTermData(messages(1000));
            NamespaceBundleStats stats = new NamespaceBundleStats();
            stats.topics = number();
            stats.producerCount = number();
            stats.consumerCount = number();
            data.setTopics((int) stats.topics);
            loadData.getBundleData().put(name, data);
            if (owner >= 0) {
                LocalBrokerData of = loadData.getBrokerData().get(brokers.get(owner)).getLocalData();
                of.getBundles().add(name);
                of.setNumBundles(of.getBundles().size());
                of.getLastStats().put(name, stats);
            }
        }
        for (int left = number(); left > 0; left--) {
            loadData.getRecentlyUnloadedBundles().put(words.next(), 1L);
        }
        return List.of("cluster");
    }

    private TimeAverageMessageData messages(int samples) {
        TimeAverageMessageData data = new TimeAverageMessageData(samples);
        double[] numbers = numbers(4);
        data.setMsgRateIn(numbers[0]);
        data.setMsgRateOut(numbers[1]);
        data.setMsgThroughputIn(numbers[2]);
        data.setMsgThroughputOut(numbers[3]);
        return data;
    }

    private List<String> shed() {
        Map<String, Collection<String>> found = new TreeMap<>(
                ((LoadSheddingStrategy) strategy).findBundlesForUnloading(loadData, conf).asMap());
        List<String> said = new ArrayList<>(List.of("shed"));
        found.forEach((broker, bundles) -> {
            said.add(broker);
            said.addAll(bundles);
        });
        return said;
    }

    /** The broker taken for a bundle, then all brokers that were as good, where the class keeps them. */
    private List<String> select() throws Exception {
        BundleData bundle = loadData.getBundleData().get(words.next());
        Set<String> candidates = new LinkedHashSet<>();
        words.forEachRemaining(candidates::add);
        List<String> said = new ArrayList<>();
        said.add(((ModularLoadManagerStrategy) strategy).selectBroker(candidates, bundle, loadData, conf).orElse("-"));
        for (Field field : strategy.getClass().getDeclaredFields()) {
            if (field.getName().equals("bestBrokers")) {
                field.setAccessible(true);
                ((Collection<?>) field.get(strategy)).stream().map(Object::toString).sorted().forEach(said::add);
            }
        }
        return said;
    }

    /** Namespaces with how many bundles they have; the bundles that are split, and their brokers. */
    private List<String> split() throws Exception {
        Map<String, Integer> counts = new HashMap<>();
        while (words.hasNext()) {
            counts.put(words.next(), number());
        }
        StubPulsar pulsar = unconstructed(StubPulsar.class);
        pulsar.conf = conf;
        pulsar.namespaces = unconstructed(StubNamespaces.class);
        pulsar.namespaces.counts = counts;
        List<String> said = new ArrayList<>(List.of("split"));
        new TreeMap<>(((BundleSplitterTask) strategy).findBundlesToSplit(loadData, pulsar)).forEach((bundle, broker) -> {
            said.add(bundle);
            said.add(broker);
        });
        return said;
    }

    /** The most samples and a sample: the average after it. */
    private List<String> averaged() {
        int most = number();
        if (average == null) {
            average = new TimeAverageMessageData(most);
        }
        double[] sample = numbers(4);
        average.update(sample[2], sample[3], sample[0], sample[1]);
        return List.of(String.valueOf(average.getNumSamples()), String.valueOf(average.getMsgRateIn()),
                String.valueOf(average.getMsgRateOut()), String.valueOf(average.getMsgThroughputIn()),
                String.valueOf(average.getMsgThroughputOut()));
    }

    /** Whether to forget what was gained and lost, then bundles with their load and counts: the broker's totals. */
    private List<String> reported() {
        if (local == null) {
            local = new LocalBrokerData();
        }
        if (words.next().equals("clean")) {
            local.cleanDeltas();
        }
        Map<String, NamespaceBundleStats> stats = new HashMap<>();
        while (words.hasNext()) {
            NamespaceBundleStats one = new NamespaceBundleStats();
            stats.put(words.next(), one);
            double[] load = numbers(4);
            one.msgRateIn = load[0];
            one.msgRateOut = load[1];
            one.msgThroughputIn = load[2];
            one.msgThroughputOut = load[3];
            one.topics = number();
            one.producerCount = number();
            one.consumerCount = number();
        }
        local.update(new SystemResourceUsage(), stats);
        List<String> said = new ArrayList<>();
        for (Object total : List.of(local.getMsgRateIn(), local.getMsgRateOut(), local.getMsgThroughputIn(),
                local.getMsgThroughputOut(), local.getNumTopics(), local.getNumProducers(),
                local.getNumConsumers())) {
            said.add(total.toString());
        }
        for (Collection<String> names : List.of(local.getBundles(), local.getLastBundleGains(),
                local.getLastBundleLosses())) {
            said.add(String.valueOf(names.size()));
            names.stream().sorted().forEach(said::add);
        }
        return said;
    }

    private int number() {
        return Integer.parseInt(words.next());
    }

    private double[] numbers(int count) {
        double[] found = new double[count];
        for (int i = 0; i < count; i++) {
            found[i] = Double.parseDouble(words.next());
        }
        return found;
    }

    private static <T> T unconstructed(Class<T> type) throws Exception {
        Field field = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        return type.cast(((sun.misc.Unsafe) field.get(null)).allocateInstance(type));
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

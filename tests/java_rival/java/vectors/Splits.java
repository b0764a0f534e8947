import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.github.benmanes.caffeine.cache.AsyncLoadingCache;
import com.google.common.hash.Hashing;
import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.commons.lang3.tuple.Pair;
import org.apache.pulsar.broker.loadbalance.LoadData;
import org.apache.pulsar.broker.loadbalance.extensions.BrokerRegistry;
import org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl;
import org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerWrapper;
import org.apache.pulsar.broker.loadbalance.extensions.LoadManagerContext;
import org.apache.pulsar.broker.loadbalance.extensions.channel.ServiceUnitState;
import org.apache.pulsar.broker.loadbalance.extensions.channel.ServiceUnitStateChannel;
import org.apache.pulsar.broker.loadbalance.extensions.channel.ServiceUnitStateData;
import org.apache.pulsar.broker.loadbalance.extensions.models.SplitCounter;
import org.apache.pulsar.broker.loadbalance.extensions.models.SplitDecision;
import org.apache.pulsar.broker.loadbalance.extensions.strategy.DefaultNamespaceBundleSplitStrategyImpl;
import org.apache.pulsar.broker.loadbalance.impl.BundleSplitterTask;
import org.apache.pulsar.broker.namespace.NamespaceService;
import org.apache.pulsar.broker.service.BrokerService;
import org.apache.pulsar.common.naming.BundleSplitOption;
import org.apache.pulsar.common.naming.FlowOrQpsEquallyDivideBundleSplitAlgorithm;
import org.apache.pulsar.common.naming.FlowOrQpsEquallyDivideBundleSplitOption;
import org.apache.pulsar.common.naming.NamespaceBundle;
import org.apache.pulsar.common.naming.NamespaceBundleFactory;
import org.apache.pulsar.common.naming.NamespaceBundleSplitAlgorithm;
import org.apache.pulsar.common.naming.NamespaceBundles;
import org.apache.pulsar.common.naming.NamespaceName;
import org.apache.pulsar.common.naming.RangeEquallyDivideBundleSplitAlgorithm;
import org.apache.pulsar.common.naming.SpecifiedPositionsBundleSplitAlgorithm;
import org.apache.pulsar.common.naming.TopicCountEquallyDivideBundleSplitAlgorithm;
import org.apache.pulsar.common.policies.data.PoliciesUtil;
import org.apache.pulsar.common.policies.data.stats.TopicStatsImpl;
import org.apache.pulsar.policies.data.loadbalancer.BrokerData;
import org.apache.pulsar.policies.data.loadbalancer.LocalBrokerData;
import org.apache.pulsar.policies.data.loadbalancer.NamespaceBundleStats;

/** Which bundles are split, and where. */
final class Splits {
    private static final String MAXIMUM = "loadBalancerNamespaceMaximumBundles";
    private static final String SELF = "self:8080";

    private Splits() {
    }

    static Object splitterTask(JsonNode config, JsonNode input) throws Exception {
        Map<String, String> split = split(config, input);
        ObjectNode unlimited = config.deepCopy();
        unlimited.put(MAXIMUM, Integer.MAX_VALUE);
        Map<String, Integer> perNamespace = new TreeMap<>();
        split.keySet().forEach(one -> perNamespace.merge(NamespaceBundle.getBundleNamespace(one), 1, Integer::sum));
        return Map.of("split", split, "split_per_namespace", perNamespace,
                "eligible_ignoring_max_bundles", new TreeSet<>(split(unlimited, input).keySet()));
    }

    private static Map<String, String> split(JsonNode config, JsonNode input) throws Exception {
        Cluster cluster = Given.cluster(config);
        counts(cluster, input);
        LoadData data = new LoadData();
        for (Map.Entry<String, JsonNode> broker : Given.entries(input.get("broker_last_stats"))) {
            LocalBrokerData report = new LocalBrokerData();
            for (Map.Entry<String, JsonNode> one : Given.entries(broker.getValue())) {
                double[] numbers = Given.numbers(one.getValue());
                NamespaceBundleStats stats = new NamespaceBundleStats();
                stats.topics = (long) numbers[0];
                stats.producerCount = (int) numbers[1];
                stats.consumerCount = (int) numbers[2];
                report.getLastStats().put(one.getKey(), stats);
            }
            data.getBrokerData().put(broker.getKey(), new BrokerData(report));
        }
        for (Map.Entry<String, JsonNode> one : Given.entries(input.get("bundle_long_term"))) {
            data.getBundleData().put(one.getKey(), Given.bundle(null, Given.numbers(one.getValue())));
        }
        return new TreeMap<>(new BundleSplitterTask().findBundlesToSplit(data, cluster.pulsar));
    }

    private static void counts(Cluster cluster, JsonNode input) {
        for (Map.Entry<String, JsonNode> one : Given.entries(input.get("namespace_bundle_count"))) {
            cluster.bundleCounts.put(one.getKey(), one.getValue().asInt());
        }
        Given.texts(input.get("count_fails")).forEach(name -> cluster.bundleCounts.put(name, null));
    }

    static Object strategy(JsonNode config, JsonNode input) throws Exception {
        Cluster cluster = Given.cluster(config);
        counts(cluster, input);
        Stage stage = new Stage(cluster);
        SplitCounter counter = new SplitCounter();
        DefaultNamespaceBundleSplitStrategyImpl strategy = new DefaultNamespaceBundleSplitStrategyImpl(counter);
        List<Object> rounds = new ArrayList<>();
        for (JsonNode given : input.get("rounds")) {
            stage.begin(given);
            Map<String, Object> decisions = new TreeMap<>();
            for (SplitDecision one : strategy.findBundlesToSplit(stage.context, cluster.pulsar)) {
                decisions.put(one.getSplit().serviceUnit(), Map.of("source", one.getSplit().sourceBroker(),
                        "reason", one.getReason().toString(),
                        "children", new TreeSet<>(one.getSplit().splitServiceUnitToDestBroker().keySet())));
            }
            Map<String, Long> counts = new TreeMap<>();
            Map<?, Map<?, AtomicLong>> breakdown = Reflected.get(counter, "breakdownCounters");
            breakdown.forEach((label, reasons) -> reasons.forEach((reason, count) -> {
                if (count.get() > 0) {
                    counts.put(label + "/" + reason, count.get());
                }
            }));
            rounds.add(Copies.of(Map.of("decisions", decisions, "counters_total", counts,
                    "hit_counts", Reflected.get(strategy, "splitConditionHitCounts"))));
        }
        return Map.of("rounds", rounds);
    }

    static Object algorithms(JsonNode config, JsonNode input) throws Exception {
        List<Long> edges = new ArrayList<>();
        input.get("bundle_boundaries").forEach(one -> edges.add(Long.decode(one.asText())));
        NamespaceBundleFactory factory = factory(edges.stream().mapToLong(Long::longValue).toArray());
        NamespaceBundle bundle = factory.getBundle(Given.NAMESPACE.toString(), input.get("bundle").asText());
        JsonNode topics = input.path("topics");
        Owning service = Reflected.unconstructed(Owning.class);
        service.topics = topics.isArray() ? Given.texts(topics) : null;
        List<Long> positions = null;
        if (input.hasNonNull("positions")) {
            positions = new ArrayList<>();
            for (JsonNode one : input.get("positions")) {
                positions.add(one.asLong());
            }
        }
        String name = config.get("algorithm").asText();
        Map<String, Object> answer = new TreeMap<>();
        List<Long> found;
        try {
            found = algorithm(name).getSplitBoundary(option(name, config, input, service, bundle, positions)).get();
        } catch (IllegalArgumentException error) {
            answer.put("error", error.getClass().getSimpleName());
            return answer;
        }
        answer.put("boundaries", found == null ? null : new ArrayList<>(found));
        if (found == null || found.isEmpty()) {
            return answer;
        }
        try {
            Pair<NamespaceBundles, List<NamespaceBundle>> split =
                    factory.splitBundles(bundle, 2, new ArrayList<>(found)).get();
            answer.put("children", ranges(split.getRight()));
            answer.put("all_bundles_after", ranges(split.getLeft().getBundles()));
        } catch (Exception error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            answer.put("split_error", cause.getClass().getSimpleName());
        }
        return answer;
    }

    private static NamespaceBundleSplitAlgorithm algorithm(String name) {
        return switch (name) {
            case "range_equally_divide" -> new RangeEquallyDivideBundleSplitAlgorithm();
            case "topic_count_equally_divide" -> new TopicCountEquallyDivideBundleSplitAlgorithm();
            case "flow_or_qps_equally_divide" -> new FlowOrQpsEquallyDivideBundleSplitAlgorithm();
            case "specified_positions_divide" -> new SpecifiedPositionsBundleSplitAlgorithm();
            case "specified_positions_divide_force" -> new SpecifiedPositionsBundleSplitAlgorithm(true);
            default -> throw new IllegalStateException(name);
        };
    }

    private static BundleSplitOption option(String name, JsonNode config, JsonNode input, NamespaceService service,
            NamespaceBundle bundle, List<Long> positions) {
        if (!name.equals("flow_or_qps_equally_divide")) {
            return new BundleSplitOption(service, bundle, positions);
        }
        Map<String, TopicStatsImpl> stats = new HashMap<>();
        for (Map.Entry<String, JsonNode> one : Given.entries(input.path("topic_stats"))) {
            double[] load = Given.numbers(one.getValue());
            TopicStatsImpl topic = new TopicStatsImpl();
            topic.msgRateIn = load[0];
            topic.msgRateOut = load[1];
            topic.msgThroughputIn = load[2];
            topic.msgThroughputOut = load[3];
            stats.put(one.getKey(), topic);
        }
        return new FlowOrQpsEquallyDivideBundleSplitOption(service, bundle, positions, stats,
                config.get("loadBalancerNamespaceBundleMaxMsgRate").asInt(),
                config.get("loadBalancerNamespaceBundleMaxBandwidthMbytes").asInt(),
                config.get("flowOrQpsDifferenceThresholdPercentage").asInt());
    }

    private static List<String> ranges(List<NamespaceBundle> bundles) {
        return bundles.stream().map(NamespaceBundle::getBundleRange).toList();
    }

    static Object equalParts(JsonNode config, JsonNode input) throws Exception {
        NamespaceBundleFactory factory = factory(edges(input.get("bundles").asInt()));
        NamespaceBundle bundle = factory.getBundle(Given.NAMESPACE.toString(), input.get("bundle").asText());
        Pair<NamespaceBundles, List<NamespaceBundle>> split =
                factory.splitBundles(bundle, config.get("num_bundles").asInt(), null).get();
        Map<String, Object> answer = new TreeMap<>();
        answer.put("children", split == null ? null : ranges(split.getRight()));
        answer.put("all_bundles_after", split == null ? null : split.getLeft().getBundlesData().getBoundaries());
        return answer;
    }

    static long[] edges(int bundles) {
        return PoliciesUtil.getBundles(bundles).getBoundaries().stream().mapToLong(Long::decode).toArray();
    }

    /** A factory that has one namespace. */
    static NamespaceBundleFactory factory(long[] edges) {
        NamespaceBundleFactory factory = Reflected.unconstructed(NamespaceBundleFactory.class);
        NamespaceBundles bundles = bundles(factory, edges);
        Reflected.set(factory, "hashFunc", Hashing.crc32());
        Reflected.set(factory, "bundlesCache", Reflected.proxy(AsyncLoadingCache.class,
                (method, given) -> CompletableFuture.completedFuture(bundles)));
        return factory;
    }

    static NamespaceBundles bundles(NamespaceBundleFactory factory, long[] edges) {
        for (Constructor<?> one : NamespaceBundles.class.getDeclaredConstructors()) {
            if (one.getParameterTypes()[one.getParameterCount() - 1] == long[].class) {
                return (NamespaceBundles) Reflected.made(one, Given.NAMESPACE, factory, Optional.empty(), edges);
            }
        }
        throw new IllegalStateException("NamespaceBundles has no constructor with boundaries");
    }

    /** A broker's topics. */
    private static final class Owning extends NamespaceService {
        private List<String> topics;

        private Owning() {
            super(null);
        }

        @Override
        public CompletableFuture<List<String>> getOwnedTopicListForNamespaceBundle(NamespaceBundle bundle) {
            return CompletableFuture.completedFuture(topics);
        }
    }

    /** What the extensible load manager's strategy asks: the channel, the broker's bundles, and the algorithm. */
    private static final class Stage {
        private final LoadManagerContext context;
        private final Stats broker = Reflected.unconstructed(Stats.class);
        private final Cutting service = Reflected.unconstructed(Cutting.class);
        private JsonNode round;

        Stage(Cluster cluster) {
            BrokerRegistry registry = Reflected.proxy(BrokerRegistry.class, (method, given) -> SELF);
            context = Reflected.proxy(LoadManagerContext.class, (method, given) -> registry);
            ExtensibleLoadManagerImpl manager = Reflected.unconstructed(ExtensibleLoadManagerImpl.class);
            Reflected.set(manager, "serviceUnitStateChannel",
                    Reflected.proxy(ServiceUnitStateChannel.class, this::published));
            service.counts = cluster.pulsar.getNamespaceService();
            cluster.pulsar.use(service, broker, new ExtensibleLoadManagerWrapper(manager));
        }

        void begin(JsonNode given) {
            round = given;
            broker.stats = new LinkedHashMap<>();
            for (Map.Entry<String, JsonNode> one : Given.entries(given.get("stats"))) {
                broker.stats.put(one.getKey(), Given.stats(one.getValue()));
            }
            service.modes = given.get("split_boundary_mode");
        }

        private Object published(String method, Object[] given) {
            switch (method) {
                case "isOwner": return !Given.texts(round.get("not_owner")).contains((String) given[0]);
                case "getOwnershipEntrySet":
                    Map<String, ServiceUnitStateData> states = new LinkedHashMap<>();
                    Given.entries(round.get("ownership_states")).forEach(one -> states.put(one.getKey(),
                            new ServiceUnitStateData(ServiceUnitState.valueOf(one.getValue().asText()), SELF, SELF, 1)));
                    return states.entrySet();
                default: throw new UnsupportedOperationException(method);
            }
        }
    }

    private static final class Stats extends BrokerService {
        private Map<String, NamespaceBundleStats> stats;

        private Stats() throws Exception {
            super(null, null);
        }

        @Override
        public Map<String, NamespaceBundleStats> getBundleStats() {
            return stats;
        }
    }

    private static final class Cutting extends NamespaceService {
        private NamespaceService counts;
        private JsonNode modes;

        private Cutting() {
            super(null);
        }

        @Override
        public int getBundleCount(NamespaceName namespace) throws Exception {
            return counts.getBundleCount(namespace);
        }

        @Override
        public NamespaceBundleFactory getNamespaceBundleFactory() {
            return counts.getNamespaceBundleFactory();
        }

        @Override
        public NamespaceBundleSplitAlgorithm getNamespaceBundleSplitAlgorithmByName(String name) {
            return new RangeEquallyDivideBundleSplitAlgorithm();
        }

        @Override
        public CompletableFuture<List<Long>> getSplitBoundary(NamespaceBundle bundle, List<Long> positions,
                NamespaceBundleSplitAlgorithm algorithm) {
            long lower = bundle.getKeyRange().lowerEndpoint();
            long third = (bundle.getKeyRange().upperEndpoint() - lower) / 3;
            return switch (modes.path(bundle.toString()).asText("")) {
                case "null" -> CompletableFuture.completedFuture(null);
                case "two" -> CompletableFuture.completedFuture(List.of(lower + third, lower + 2 * third));
                case "fail" -> CompletableFuture.failedFuture(new IllegalStateException("recorded"));
                default -> algorithm.getSplitBoundary(new BundleSplitOption(this, bundle, null));
            };
        }
    }
}

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.LoadData;
import org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLoadData;
import org.apache.pulsar.broker.loadbalance.extensions.models.TopKBundles;
import org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl;
import org.apache.pulsar.policies.data.loadbalancer.BrokerData;
import org.apache.pulsar.policies.data.loadbalancer.BundleData;
import org.apache.pulsar.policies.data.loadbalancer.LocalBrokerData;
import org.apache.pulsar.policies.data.loadbalancer.NamespaceBundleStats;
import org.apache.pulsar.policies.data.loadbalancer.ResourceUsage;
import org.apache.pulsar.policies.data.loadbalancer.SystemResourceUsage;
import org.apache.pulsar.policies.data.loadbalancer.TimeAverageBrokerData;
import org.apache.pulsar.policies.data.loadbalancer.TimeAverageMessageData;

/** What load managers make of what brokers report. */
final class Loads {
    /** A long row of averages is told at steps: all of the first ones, then each hundredth, and those around 1000. */
    private static final int ALL_STEPS = 25;
    private static final int SOME_STEPS = 100;
    private static final int LONG_SAMPLES = 1000;
    private static final String[] RESOURCES = {"cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut"};

    private Loads() {
    }

    static Object timeAverage(JsonNode config, JsonNode input) {
        int most = config.get("max_samples").asInt();
        TimeAverageMessageData average = config.get("default_stats").asBoolean()
                ? new TimeAverageMessageData(most, Given.defaults(new NamespaceBundleStats())) : new TimeAverageMessageData(most);
        JsonNode samples = input.get("samples");
        double[] initial = state(average);
        List<Object> states = new ArrayList<>();
        int steps = input.get("steps").asInt();
        for (int step = 1; step <= steps; step++) {
            double[] sample = Given.numbers(samples.get((step - 1) % samples.size()));
            average.update(sample[2], sample[3], sample[0], sample[1]);
            boolean shown = step == 1 || steps <= ALL_STEPS || step % SOME_STEPS == 0
                    || Math.abs(step - LONG_SAMPLES) <= 1 || step == steps;
            if (shown) {
                states.add(Map.of("step", step, "state", state(average)));
            }
        }
        return Map.of("initial", initial, "states", states, "total_msg_rate", average.totalMsgRate(),
                "total_msg_throughput", average.totalMsgThroughput());
    }

    private static double[] state(TimeAverageMessageData average) {
        return new double[] {average.getNumSamples(), average.getMsgRateIn(), average.getMsgRateOut(),
            average.getMsgThroughputIn(), average.getMsgThroughputOut()};
    }

    static Object brokerAverage(JsonNode config, JsonNode input) {
        Map<String, BundleData> known = new HashMap<>();
        for (Map.Entry<String, JsonNode> one : Given.entries(input.get("data"))) {
            known.put(one.getKey(), Given.bundle(Given.numbers(one.getValue().get("st")),
                    Given.numbers(one.getValue().get("lt"))));
        }
        TimeAverageBrokerData average = new TimeAverageBrokerData();
        average.reset(Given.set(input.get("bundles")), known, Given.stats(config.get("default_stats")));
        return sums(average);
    }

    private static Map<String, Object> sums(TimeAverageBrokerData average) {
        return Map.of("short_term", new double[] {average.getShortTermMsgRateIn(), average.getShortTermMsgRateOut(),
            average.getShortTermMsgThroughputIn(), average.getShortTermMsgThroughputOut()},
                "long_term", new double[] {average.getLongTermMsgRateIn(), average.getLongTermMsgRateOut(),
                    average.getLongTermMsgThroughputIn(), average.getLongTermMsgThroughputOut()});
    }

    static Object resourceUsage(JsonNode config, JsonNode input) {
        List<Object> percents = new ArrayList<>();
        for (String resource : RESOURCES) {
            percents.add((double) Given.usage(input.get(resource)).percentUsage());
        }
        LocalBrokerData report = Given.report(input);
        JsonNode weights = config.get("weights");
        return Map.of("percent_usage", percents, "max_resource_usage", report.getMaxResourceUsage(),
                "max_resource_usage_with_weight", report.getMaxResourceUsageWithWeight(
                        Given.number(weights.get("cpu")), Given.number(weights.get("directMemory")),
                        Given.number(weights.get("bandwidthIn")), Given.number(weights.get("bandwidthOut"))));
    }

    static Object localData(JsonNode config, JsonNode input) {
        LocalBrokerData data = new LocalBrokerData();
        List<Object> rounds = new ArrayList<>();
        for (JsonNode given : input.get("rounds")) {
            if (given.get("clean_deltas_first").asBoolean()) {
                data.cleanDeltas();
            }
            Map<String, NamespaceBundleStats> stats = new HashMap<>();
            Given.entries(given.get("stats")).forEach(one -> stats.put(one.getKey(), Given.stats(one.getValue())));
            ResourceUsage[] usages = new ResourceUsage[RESOURCES.length];
            for (int i = 0; i < usages.length; i++) {
                usages[i] = Given.usage(given.get("usage").get(i));
            }
            SystemResourceUsage usage = new SystemResourceUsage();
            usage.setCpu(usages[0]);
            usage.setMemory(usages[1]);
            usage.setDirectMemory(usages[2]);
            usage.setBandwidthIn(usages[3]);
            usage.setBandwidthOut(usages[4]);
            data.update(usage, stats);
            Map<String, Object> round = new TreeMap<>();
            round.put("load", new double[] {data.getMsgRateIn(), data.getMsgRateOut(), data.getMsgThroughputIn(),
                data.getMsgThroughputOut()});
            round.put("num_topics", data.getNumTopics());
            round.put("num_bundles", data.getNumBundles());
            round.put("num_consumers", data.getNumConsumers());
            round.put("num_producers", data.getNumProducers());
            round.put("bundles", new TreeSet<>(data.getBundles()));
            round.put("gains", new TreeSet<>(data.getLastBundleGains()));
            round.put("losses", new TreeSet<>(data.getLastBundleLosses()));
            round.put("max_resource_usage", data.getMaxResourceUsage());
            rounds.add(Copies.of(round));
        }
        return Map.of("rounds", rounds);
    }

    static Object needsUpdate(JsonNode config, JsonNode input) throws Exception {
        ModularLoadManagerImpl manager = new ModularLoadManagerImpl();
        Reflected.set(manager, "conf", Given.conf(config));
        LocalBrokerData last = Given.report(input.get("last"));
        last.setNumBundles(input.get("last").get("num_bundles").asInt());
        LocalBrokerData local = Given.report(input.get("local"));
        local.setNumBundles(input.get("local").get("num_bundles").asInt());
        Reflected.set(manager, "lastData", last);
        Reflected.set(manager, "localData", local);
        local.setLastUpdate(System.currentTimeMillis() - input.get("ms_since_last_update").asLong());
        return Map.of("needs_update", Reflected.call(manager, "needBrokerDataUpdate"));
    }

    static Object bundleData(JsonNode config, JsonNode input) throws Exception {
        Cluster cluster = Given.cluster(JsonNodeFactory.instance.objectNode());
        ModularLoadManagerImpl manager = new ModularLoadManagerImpl();
        Reflected.set(manager, "pulsar", cluster.pulsar);
        Reflected.set(manager, "pulsarResources", cluster.pulsar.getPulsarResources());
        Reflected.set(manager, "conf", cluster.conf);
        Given.defaults(Reflected.get(manager, "defaultStats"));
        LoadData data = Reflected.get(manager, "loadData");
        List<Object> rounds = new ArrayList<>();
        for (JsonNode given : input.get("rounds")) {
            data.getBrokerData().clear();
            TreeSet<String> bundles = new TreeSet<>();
            for (Map.Entry<String, JsonNode> one : Given.entries(given)) {
                LocalBrokerData report = new LocalBrokerData();
                for (Map.Entry<String, JsonNode> bundle : Given.entries(one.getValue())) {
                    report.getLastStats().put(bundle.getKey(), Given.stats(bundle.getValue()));
                    bundles.add(bundle.getKey());
                }
                report.setBundles(new TreeSet<>(report.getLastStats().keySet()));
                data.getBrokerData().put(one.getKey(), new BrokerData(report));
            }
            cluster.setBundles(bundles);
            Reflected.call(manager, "updateBundleData");
            Map<String, Object> averages = new TreeMap<>();
            data.getBundleData().forEach((name, bundle) -> averages.put(name, Map.of("topics", bundle.getTopics(),
                    "st", state(bundle.getShortTermData()), "lt", state(bundle.getLongTermData()))));
            Map<String, Object> brokers = new TreeMap<>();
            data.getBrokerData().forEach((name, broker) -> brokers.put(name, sums(broker.getTimeAverageData())));
            rounds.add(Map.of("bundle_data", averages, "broker_time_average", brokers));
        }
        return Map.of("rounds", rounds);
    }

    static Object order(JsonNode config, JsonNode input) {
        NamespaceBundleStats a = Given.stats(input.get("a"));
        NamespaceBundleStats b = Given.stats(input.get("b"));
        TimeAverageMessageData averageA = Given.bundle(Given.numbers(input.get("a")), null).getShortTermData();
        TimeAverageMessageData averageB = Given.bundle(Given.numbers(input.get("b")), null).getShortTermData();
        return Map.of("bundle_stats_compare", Integer.signum(a.compareTo(b)),
                "time_average_compare", Integer.signum(averageA.compareTo(averageB)),
                "by_msg_rate", Integer.signum(a.compareByMsgRate(b)),
                "by_topic_connections", Integer.signum(a.compareByTopicConnections(b)));
    }

    static Object brokerLoad(JsonNode config, JsonNode input) throws Exception {
        ServiceConfiguration conf = Given.conf(config);
        BrokerLoadData data = new BrokerLoadData();
        Map<String, Object> initial = features(data);
        List<Object> after = new ArrayList<>();
        for (JsonNode given : input.get("updates")) {
            if (given.get("clear_first").asBoolean()) {
                data.clear();
            }
            double[] load = Given.numbers(given.get("load"));
            data.update(Given.usages(given), load[2], load[3], load[0], load[1], 1, 1, conf);
            after.add(features(data));
        }
        return Map.of("initial", initial, "after", after);
    }

    private static Map<String, Object> features(BrokerLoadData data) {
        return Map.of("max_resource_usage", data.getMaxResourceUsage(), "weighted_max_ema", data.getWeightedMaxEMA(),
                "msg_throughput_ema", data.getMsgThroughputEMA());
    }

    static Object topBundles(JsonNode config, JsonNode input) throws Exception {
        TopKBundles top = new TopKBundles(Given.cluster(JsonNodeFactory.instance.objectNode()).pulsar);
        Map<String, NamespaceBundleStats> stats = new LinkedHashMap<>();
        Given.entries(input.get("bundle_stats")).forEach(one -> stats.put(one.getKey(), Given.stats(one.getValue())));
        top.update(stats, config.get("k").asInt());
        List<String> names = new ArrayList<>();
        top.getLoadData().getTopBundlesLoadData().forEach(one -> names.add(one.bundleName()));
        return Map.of("top_bundles", names);
    }
}

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.LoadData;
import org.apache.pulsar.broker.loadbalance.ModularLoadManagerStrategy;
import org.apache.pulsar.broker.loadbalance.extensions.LoadManagerContext;
import org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLoadData;
import org.apache.pulsar.broker.loadbalance.extensions.store.LoadDataStore;
import org.apache.pulsar.broker.loadbalance.impl.LeastLongTermMessageRate;
import org.apache.pulsar.broker.loadbalance.impl.LeastResourceUsageWithWeight;
import org.apache.pulsar.broker.loadbalance.impl.RoundRobinBrokerSelector;
import org.apache.pulsar.policies.data.loadbalancer.BrokerData;
import org.apache.pulsar.policies.data.loadbalancer.LocalBrokerData;
import org.apache.pulsar.policies.data.loadbalancer.TimeAverageBrokerData;

/** The placements: all brokers among which each chooses at random. */
final class Placements {
    private Placements() {
    }

    static Object roundRobin(JsonNode config, JsonNode input) throws Exception {
        RoundRobinBrokerSelector selector = new RoundRobinBrokerSelector();
        Reflected.<AtomicInteger>get(selector, "count").set(input.get("start_count").asInt());
        List<String> selected = new ArrayList<>();
        for (JsonNode candidates : input.get("candidate_sequences")) {
            selected.add(selector.selectBroker(Given.set(candidates), null, null, null).orElse(null));
        }
        return Map.of("selected", selected);
    }

    static Object leastLongTermMessageRate(JsonNode config, JsonNode input) throws Exception {
        LoadData data = new LoadData();
        Map<String, LocalBrokerData> reports = new HashMap<>();
        input.get("brokers").forEach(one -> reports.put(one.get("name").asText(), Given.report(one)));
        for (JsonNode one : input.get("broker_rates")) {
            String name = one.get("name").asText();
            BrokerData broker = new BrokerData(reports.get(name));
            broker.setTimeAverageData(longTerm(one.get("long_term_rate")));
            one.get("preallocated").forEach(bundle -> broker.getPreallocatedBundleData().put(bundle.asText(),
                    Given.bundle(null, Given.numbers(input.get("bundle_long_term").get(bundle.asText())))));
            data.getBrokerData().put(name, broker);
        }
        return acceptable(new LeastLongTermMessageRate(), input, data, Given.conf(config));
    }

    static Object leastResourceUsage(JsonNode config, JsonNode input) throws Exception {
        LeastResourceUsageWithWeight placement = new LeastResourceUsageWithWeight();
        ServiceConfiguration conf = Given.conf(config);
        List<Object> rounds = new ArrayList<>();
        for (JsonNode given : input.get("rounds")) {
            if (given.hasNonNull("active_brokers_change")) {
                placement.onActiveBrokersChange(Given.set(given.get("active_brokers_change")));
            }
            LoadData data = new LoadData();
            for (JsonNode one : given.get("brokers")) {
                LocalBrokerData report = Given.report(one);
                double[] rate = Given.numbers(one.get("rate"));
                report.setMsgRateIn(rate[0]);
                report.setMsgRateOut(rate[1]);
                report.setNumBundles(one.get("num_bundles").asInt());
                for (int i = 0; i < report.getNumBundles(); i++) {
                    report.getBundles().add("bundle-" + i);
                }
                data.getBrokerData().put(one.get("name").asText(), new BrokerData(report));
            }
            Map<String, Object> round = new HashMap<>(acceptable(placement, given, data, conf));
            round.put("usage_history", Reflected.get(placement, "brokerAvgResourceUsageWithWeight"));
            rounds.add(Copies.of(round));
        }
        return Map.of("rounds", rounds);
    }

    static Object extLeastResourceUsage(JsonNode config, JsonNode input) throws Exception {
        ServiceConfiguration conf = Given.conf(config);
        Map<String, BrokerLoadData> reports = new HashMap<>();
        for (Map.Entry<String, JsonNode> one : Given.entries(input.get("weighted_max_ema"))) {
            BrokerLoadData report = new BrokerLoadData();
            Reflected.set(report, "weightedMaxEMA", Given.number(one.getValue()));
            reports.put(one.getKey(), report);
        }
        LoadDataStore<?> store = Reflected.proxy(LoadDataStore.class,
                (method, given) -> Optional.ofNullable(reports.get(given[0])));
        LoadManagerContext context = Reflected.proxy(LoadManagerContext.class,
                (method, given) -> method.equals("brokerConfiguration") ? conf : store);
        var placement = new org.apache.pulsar.broker.loadbalance.extensions.strategy.LeastResourceUsageWithWeight();
        placement.select(Given.set(input.get("candidates")), null, context);
        ThreadLocal<Collection<String>> best = Reflected.get(placement, "bestBrokers");
        return Map.of("acceptable_brokers", new TreeSet<>(best.get()));
    }

    static TimeAverageBrokerData longTerm(JsonNode rate) {
        TimeAverageBrokerData average = new TimeAverageBrokerData();
        average.setLongTermMsgRateIn(Given.number(rate.get(0)));
        average.setLongTermMsgRateOut(Given.number(rate.get(1)));
        return average;
    }

    private static Map<String, Object> acceptable(ModularLoadManagerStrategy placement, JsonNode given, LoadData data,
            ServiceConfiguration conf) {
        placement.selectBroker(Given.set(given.get("candidates")), Given.bundle(null, null), data, conf);
        Collection<String> best = Reflected.get(placement, "bestBrokers");
        return Map.of("acceptable_brokers", new TreeSet<>(best));
    }
}

import com.fasterxml.jackson.databind.JsonNode;
import com.google.common.collect.Multimap;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.LoadData;
import org.apache.pulsar.broker.loadbalance.LoadSheddingStrategy;
import org.apache.pulsar.broker.loadbalance.impl.AvgShedder;
import org.apache.pulsar.broker.loadbalance.impl.OverloadShedder;
import org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder;
import org.apache.pulsar.broker.loadbalance.impl.UniformLoadShedder;
import org.apache.pulsar.policies.data.loadbalancer.BundleData;

/** findBundlesForUnloading of the modular load manager's shedders. */
final class Shedders {
    private Shedders() {
    }

    static Object overload(JsonNode config, JsonNode input) throws Exception {
        return Map.of("unload", unload(new OverloadShedder(), Given.loadData(input), Given.conf(config)));
    }

    static Object threshold(JsonNode config, JsonNode input) throws Exception {
        ThresholdShedder shedder = new ThresholdShedder();
        return rounds(shedder, Given.conf(config), input, (data, unload) -> Map.of("unload", unload,
                "usage_history", Reflected.<Map<String, Double>>get(shedder, "brokerAvgResourceUsage")));
    }

    static Object uniform(JsonNode config, JsonNode input) throws Exception {
        return rounds(new UniformLoadShedder(), Given.conf(config), input, (data, unload) -> Map.of("unload", unload));
    }

    static Object avg(JsonNode config, JsonNode input) throws Exception {
        ServiceConfiguration conf = Given.conf(config);
        Offered shedder = new Offered();
        return rounds(shedder, conf, input, (data, unload) -> {
            Map<String, Object> round = new TreeMap<>();
            round.put("unload", unload);
            round.put("scores", new TreeMap<>(Reflected.<Map<String, Double>>get(shedder, "brokerScoreMap")));
            round.put("hit_high", counts(shedder, "brokerHitCountForHigh"));
            round.put("hit_low", counts(shedder, "brokerHitCountForLow"));
            Map<String, String> placement = new TreeMap<>();
            Map<String, Set<String>> alternatives = new TreeMap<>();
            for (List<String> bundles : unload.values()) {
                for (String bundle : bundles) {
                    shedder.offered = null;
                    String selected = shedder.placed(bundle, data, conf);
                    String plan = shedder.plan(bundle);
                    placement.put(bundle, plan == null ? selected : plan);
                    if (plan != null && shedder.offered != null) {
                        alternatives.put(bundle, shedder.offered);
                    }
                }
            }
            round.put("placement", placement);
            if (!alternatives.isEmpty()) {
                round.put("alternatives", alternatives);
            }
            shedder.attemptCompleted();
            return round;
        });
    }

    private static Map<String, Integer> counts(Object shedder, String field) {
        Map<String, Integer> found = new TreeMap<>();
        Reflected.<Map<String, Number>>get(shedder, field).forEach((name, hits) -> found.put(name, hits.intValue()));
        return found;
    }

    private interface Answer {
        Object of(LoadData data, Map<String, List<String>> unload) throws Exception;
    }

    private static Object rounds(LoadSheddingStrategy shedder, ServiceConfiguration conf, JsonNode input, Answer answer)
            throws Exception {
        List<Object> rounds = new ArrayList<>();
        for (JsonNode given : input.get("rounds")) {
            if (given.hasNonNull("active_brokers_change")) {
                shedder.onActiveBrokersChange(Given.set(given.get("active_brokers_change")));
            }
            LoadData data = Given.loadData(given);
            Object round = answer.of(data, unload(shedder, data, conf));
            rounds.add(Copies.of(round));
        }
        return Map.of("rounds", rounds);
    }

    private static Map<String, List<String>> unload(LoadSheddingStrategy by, LoadData data, ServiceConfiguration conf) {
        Multimap<String, String> found = by.findBundlesForUnloading(data, conf);
        Map<String, List<String>> unload = new TreeMap<>();
        found.asMap().forEach((broker, bundles) -> unload.put(broker, new ArrayList<>(bundles)));
        return unload;
    }

    /**
     * AvgShedder, where it tells among which brokers it picks at random. From 5.0 on it plans by the bundle's name, and
     * passes over a destination that is overloaded.
     */
    private static final class Offered extends AvgShedder {
        private Set<String> offered;

        private String placed(String bundle, LoadData data, ServiceConfiguration conf) throws Exception {
            Set<String> brokers = data.getBrokerData().keySet();
            BundleData given = data.getBundleData().get(bundle);
            java.lang.reflect.Method byName = Reflected.method(AvgShedder.class, "selectBrokerForBundle");
            return byName == null ? super.selectBroker(brokers, given, data, conf).get()
                    : ((Optional<?>) byName.invoke(this, brokers, bundle, given, data, conf)).get().toString();
        }

        /** The destination that was planned; null where plans are not by name. */
        private String plan(String bundle) {
            if (Reflected.field(AvgShedder.class, "pendingBundleToUnload") == null) {
                return null;
            }
            Object plan = Reflected.<Map<String, Object>>get(this, "pendingBundleToUnload").get(bundle);
            return Reflected.get(plan, "destinationBroker");
        }

        private void attemptCompleted() throws Exception {
            java.lang.reflect.Method completed = Reflected.method(AvgShedder.class, "onUnloadAttemptCompleted");
            if (completed != null) {
                completed.invoke(this);
            }
        }

        @Override
        public Optional<String> selectBroker(Set<String> candidates, BundleData bundle, LoadData data,
                ServiceConfiguration conf) {
            offered = new TreeSet<>(candidates);
            return super.selectBroker(candidates, bundle, data, conf);
        }
    }
}

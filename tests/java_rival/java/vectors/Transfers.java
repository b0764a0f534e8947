import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import org.apache.pulsar.broker.loadbalance.extensions.BrokerRegistry;
import org.apache.pulsar.broker.loadbalance.extensions.LoadManagerContext;
import org.apache.pulsar.broker.loadbalance.extensions.channel.ServiceUnitStateChannel;
import org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLoadData;
import org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLookupData;
import org.apache.pulsar.broker.loadbalance.extensions.data.TopBundlesLoadData;
import org.apache.pulsar.broker.loadbalance.extensions.filter.BrokerFilter;
import org.apache.pulsar.broker.loadbalance.extensions.models.UnloadCounter;
import org.apache.pulsar.broker.loadbalance.extensions.models.UnloadDecision;
import org.apache.pulsar.broker.loadbalance.extensions.policies.AntiAffinityGroupPolicyHelper;
import org.apache.pulsar.broker.loadbalance.extensions.policies.IsolationPoliciesHelper;
import org.apache.pulsar.broker.loadbalance.extensions.scheduler.TransferShedder;
import org.apache.pulsar.broker.loadbalance.extensions.store.LoadDataStore;
import org.apache.pulsar.common.naming.NamespaceName;
import org.apache.pulsar.policies.data.loadbalancer.NamespaceBundleStats;

/** TransferShedder.findBundlesForUnloading, with stand-ins of the filters and policies. */
final class Transfers {
    private final Cluster cluster;
    private final UnloadCounter counter = new UnloadCounter();
    private final TransferShedder shedder = new TransferShedder(counter);
    private final Map<String, BrokerLoadData> reports = new LinkedHashMap<>();
    private final Map<String, TopBundlesLoadData> tops = new LinkedHashMap<>();
    private final Map<String, BrokerLookupData> available = new HashMap<>();
    private final LoadManagerContext context;
    private JsonNode policies;

    private Transfers(JsonNode config, boolean withPolicies) throws Exception {
        cluster = Given.cluster(config);
        BrokerRegistry registry = Reflected.proxy(BrokerRegistry.class,
                (method, given) -> CompletableFuture.completedFuture(available));
        LoadDataStore<BrokerLoadData> reportStore = store(reports);
        LoadDataStore<TopBundlesLoadData> topStore = store(tops);
        context = Reflected.proxy(LoadManagerContext.class, (method, given) -> switch (method) {
            case "brokerConfiguration" -> cluster.conf;
            case "brokerLoadDataStore" -> reportStore;
            case "topBundleLoadDataStore" -> topStore;
            default -> registry;
        });
        if (withPolicies) {
            Reflected.set(shedder, "pulsar", cluster.pulsar);
            Reflected.set(shedder, "channel", Reflected.proxy(ServiceUnitStateChannel.class,
                    (method, given) -> !names("not_owned_bundles").contains(given[0])));
            Reflected.set(shedder, "brokerFilterPipeline",
                    List.of(Reflected.<BrokerFilter>proxy(BrokerFilter.class, this::filtered)));
            Reflected.set(shedder, "isolationPoliciesHelper", new IsolationPoliciesHelper(null) {
                @Override
                public boolean hasIsolationPolicy(NamespaceName namespace) {
                    return names("isolation_namespaces").contains(namespace.toString());
                }
            });
            Reflected.set(shedder, "antiAffinityGroupPolicyHelper", new AntiAffinityGroupPolicyHelper(null, null) {
                @Override
                public boolean hasAntiAffinityGroupPolicy(String bundle) {
                    return names("anti_affinity_bundles").contains(bundle);
                }
            });
        }
    }

    static Object rounds(JsonNode config, JsonNode input) throws Exception {
        Transfers transfers = new Transfers(config, input.get("with_policies").asBoolean());
        List<Object> rounds = new ArrayList<>();
        for (JsonNode given : input.get("rounds")) {
            rounds.add(transfers.round(given));
        }
        return Map.of("rounds", rounds);
    }

    private Object round(JsonNode given) {
        policies = given.path("policies");
        long now = System.currentTimeMillis();
        available.clear();
        given.get("available_brokers").forEach(name -> available.put(name.asText(), null));
        reports.clear();
        tops.clear();
        for (JsonNode one : given.get("brokers")) {
            report(one, now);
        }
        Map<String, Long> bundles = new HashMap<>();
        given.get("recently_unloaded_bundles").forEach(one -> bundles.put(one.asText(), now));
        Map<String, Long> brokers = new HashMap<>();
        Given.entries(given.get("recently_unloaded_brokers_age_ms")).forEach(
                one -> brokers.put(one.getKey(), now - one.getValue().asLong()));
        Map<String, Object> decisions = new TreeMap<>();
        for (UnloadDecision one : shedder.findBundlesForUnloading(context, bundles, brokers)) {
            List<String> decision = new ArrayList<>();
            decision.add(one.getUnload().sourceBroker());
            decision.add(one.getUnload().destBroker().orElse(null));
            decision.add(one.getLabel() + "/" + one.getReason());
            decisions.put(one.getUnload().serviceUnit(), decision);
        }
        Map<String, Object> round = new TreeMap<>();
        round.put("decisions", decisions);
        round.put("condition_hit_count", Reflected.get(shedder, "unloadConditionHitCount"));
        round.put("load_avg", Reflected.get(counter, "loadAvg"));
        round.put("load_std", Reflected.get(counter, "loadStd"));
        round.put("counters_total", ExtensibleCycle.counted(counter));
        round.put("recently_unloaded_brokers_after", new TreeSet<>(brokers.keySet()));
        return Copies.of(round);
    }

    private void report(JsonNode given, long now) {
        String name = given.get("name").asText();
        BrokerLoadData report = new BrokerLoadData();
        Reflected.set(report, "weightedMaxEMA", Given.number(given.get("weighted_max_ema")));
        Reflected.set(report, "msgThroughputEMA", Given.number(given.get("msg_throughput_ema")));
        Reflected.set(report, "msgThroughputIn", Given.number(given.get("msg_throughput_in")));
        Reflected.set(report, "msgThroughputOut", Given.number(given.get("msg_throughput_out")));
        Reflected.set(report, "updatedAt", now - given.get("age_ms").asLong());
        reports.put(name, report);
        if (given.hasNonNull("top_bundles")) {
            TopBundlesLoadData top = new TopBundlesLoadData();
            for (JsonNode bundle : given.get("top_bundles")) {
                NamespaceBundleStats stats = new NamespaceBundleStats();
                stats.msgThroughputIn = Given.number(bundle.get(1));
                stats.msgThroughputOut = Given.number(bundle.get(2));
                top.getTopBundlesLoadData().add(new TopBundlesLoadData.BundleLoadData(bundle.get(0).asText(), stats));
            }
            tops.put(name, top);
        }
    }

    /** A filter that leaves the brokers recorded for a bundle. */
    @SuppressWarnings("unchecked")
    private Object filtered(String method, Object[] given) {
        Map<String, BrokerLookupData> candidates = (Map<String, BrokerLookupData>) given[0];
        JsonNode allowed = policies.path("bundle_allowed_brokers").path(given[1].toString());
        if (allowed.isArray()) {
            candidates.keySet().retainAll(Given.texts(allowed));
        }
        return CompletableFuture.completedFuture(candidates);
    }

    private Set<String> names(String policy) {
        return new HashSet<>(Given.texts(policies.path(policy)));
    }

    private static <T> LoadDataStore<T> store(Map<String, T> data) {
        return Reflected.proxy(LoadDataStore.class, (method, given) -> switch (method) {
            case "get" -> Optional.ofNullable(data.get(given[0]));
            case "entrySet" -> data.entrySet();
            case "size" -> data.size();
            default -> throw new UnsupportedOperationException(method);
        });
    }
}

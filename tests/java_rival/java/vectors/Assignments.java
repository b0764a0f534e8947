import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.LoadData;
import org.apache.pulsar.broker.loadbalance.ModularLoadManagerStrategy;
import org.apache.pulsar.broker.loadbalance.impl.BundleRangeCache;
import org.apache.pulsar.broker.loadbalance.impl.LeastLongTermMessageRate;
import org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl;
import org.apache.pulsar.broker.loadbalance.impl.SimpleResourceAllocationPolicies;
import org.apache.pulsar.common.naming.NamespaceBundle;
import org.apache.pulsar.metadata.api.coordination.LockManager;
import org.apache.pulsar.policies.data.loadbalancer.BrokerData;
import org.apache.pulsar.policies.data.loadbalancer.BundleData;
import org.apache.pulsar.policies.data.loadbalancer.LocalBrokerData;

/** ModularLoadManagerImpl.selectBrokerForAssignment, one bundle after the other, with LeastLongTermMessageRate. */
final class Assignments {
    private final JsonNode input;
    private final Cluster cluster;
    private final ModularLoadManagerImpl manager = new ModularLoadManagerImpl();
    private final LeastLongTermMessageRate placement = new LeastLongTermMessageRate();
    /** The candidates of the last placement. */
    private Set<String> candidates;

    Assignments(JsonNode config, JsonNode input) throws Exception {
        this.input = input;
        cluster = Given.cluster(config, input.get("policies"), input.get("namespace_groups"));
        input.get("broker_domains").fields().forEachRemaining(
                one -> cluster.domains.put(one.getKey(), one.getValue().asText()));
        Set<String> names = new HashSet<>();
        input.get("brokers").forEach(one -> names.add(one.get("name").asText()));
        Reflected.set(manager, "pulsar", cluster.pulsar);
        Reflected.set(manager, "pulsarResources", cluster.pulsar.getPulsarResources());
        Reflected.set(manager, "conf", cluster.conf);
        Reflected.set(manager, "brokersData", Reflected.proxy(LockManager.class,
                (method, given) -> CompletableFuture.completedFuture(new ArrayList<>(names))));
        Reflected.set(manager, "policies", new SimpleResourceAllocationPolicies(cluster.pulsar));
        Reflected.set(manager, "brokerToFailureDomainMap", cluster.domains);
        Reflected.set(manager, "placementStrategy", new First());
        Given.defaults(Reflected.get(manager, "defaultStats"));
        load();
    }

    Object all() {
        List<Object> assignments = new ArrayList<>();
        for (JsonNode one : input.get("assignments")) {
            String bundle = one.get("bundle").asText();
            boolean already = Reflected.<Map<String, String>>get(manager, "preallocatedBundleToBroker").containsKey(bundle);
            int at = bundle.lastIndexOf('/');
            NamespaceBundle unit = cluster.pulsar.getNamespaceService().getNamespaceBundleFactory()
                    .getBundle(bundle.substring(0, at), bundle.substring(at + 1));
            unit.setHasNonPersistentTopic(one.get("has_non_persistent_topic").asBoolean());
            candidates = null;
            Optional<String> selected = manager.selectBrokerForAssignment(unit);
            Collection<String> best = already ? List.of(selected.get())
                    : selected.isEmpty() ? List.of() : Reflected.get(placement, "bestBrokers");
            Map<String, Object> answer = new TreeMap<>();
            answer.put("acceptable_brokers", new TreeSet<>(best));
            answer.put("already_preallocated", already);
            answer.put("final_candidates", candidates);
            assignments.add(answer);
        }
        return Map.of("assignments", assignments);
    }

    private void load() {
        LoadData data = Reflected.get(manager, "loadData");
        BundleRangeCache ranges = Reflected.get(manager, "brokerToNamespaceToBundleRange");
        for (JsonNode one : input.get("brokers")) {
            LocalBrokerData report = Given.report(one);
            report.setNumTopics(one.get("num_topics").asInt());
            report.setPersistentTopicsEnabled(one.get("persistent").asBoolean());
            report.setNonPersistentTopicsEnabled(one.get("non_persistent").asBoolean());
            report.getBundles().addAll(Given.texts(one.get("bundles")));
            BrokerData broker = new BrokerData(report);
            broker.setTimeAverageData(Placements.longTerm(one.get("long_term_rate")));
            String name = one.get("name").asText();
            data.getBrokerData().put(name, broker);
            ranges.reloadFromBundles(name, Given.texts(one.get("bundles")).stream());
        }
        for (Map.Entry<String, JsonNode> one : Given.entries(input.get("bundle_data"))) {
            BundleData bundle = Given.bundle(null, Given.numbers(one.getValue().get("lt")));
            bundle.setTopics(one.getValue().get("topics").asInt());
            data.getBundleData().put(one.getKey(), bundle);
        }
    }

    /** LeastLongTermMessageRate, which takes the first by name instead of one at random. */
    private final class First implements ModularLoadManagerStrategy {
        @Override
        public Optional<String> selectBroker(Set<String> among, BundleData bundle, LoadData data,
                ServiceConfiguration conf) {
            candidates = new TreeSet<>(among);
            Optional<String> any = placement.selectBroker(among, bundle, data, conf);
            return any.map(one -> new TreeSet<>(Reflected.<Collection<String>>get(placement, "bestBrokers")).first());
        }
    }
}

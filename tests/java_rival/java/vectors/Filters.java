import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.pulsar.broker.loadbalance.LoadData;
import org.apache.pulsar.broker.loadbalance.impl.BundleRangeCache;
import org.apache.pulsar.broker.loadbalance.impl.LoadManagerShared;
import org.apache.pulsar.broker.loadbalance.impl.SimpleResourceAllocationPolicies;
import org.apache.pulsar.common.naming.NamespaceBundle;
import org.apache.pulsar.common.naming.NamespaceName;
import org.apache.pulsar.common.naming.ServiceUnitId;
import org.apache.pulsar.common.policies.data.BrokerStatus;
import org.apache.pulsar.common.policies.impl.NamespaceIsolationPolicyImpl;
import org.apache.pulsar.policies.data.loadbalancer.BrokerData;
import org.apache.pulsar.policies.data.loadbalancer.BundleData;
import org.apache.pulsar.policies.data.loadbalancer.LocalBrokerData;

/** What decides on which brokers a bundle may be. */
final class Filters {
    /** A namespace's policies are asked with so many brokers that are its own, less one. */
    private static final int PRIMARIES = 7;

    private Filters() {
    }

    static Object antiAffinity(JsonNode config, JsonNode input) throws Exception {
        Cluster cluster = Given.cluster(config, null, input.get("namespace_groups"));
        BundleRangeCache owned = new BundleRangeCache();
        for (Map.Entry<String, JsonNode> one : Given.entries(input.get("owned_bundles"))) {
            owned.reloadFromBundles(one.getKey(), Given.texts(one.getValue()).stream());
        }
        Map<String, String> domains = new HashMap<>();
        input.get("broker_domains").fields().forEachRemaining(one -> domains.put(one.getKey(), one.getValue().asText()));
        String bundle = input.get("bundle").asText();
        String namespace = NamespaceBundle.getBundleNamespace(bundle);
        Set<String> candidates = new HashSet<>(Given.texts(input.get("candidates")));

        Map<String, Object> answer = new TreeMap<>();
        Map<String, Integer> counts =
                LoadManagerShared.getAntiAffinityNamespaceOwnedBrokers(cluster.pulsar, namespace, owned).get();
        answer.put("owned_counts", counts);
        Set<String> left = new HashSet<>(candidates);
        LoadManagerShared.filterAntiAffinityGroupOwnedBrokers(cluster.pulsar, bundle, left, owned, domains);
        answer.put("candidates_after_anti_affinity", new TreeSet<>(left));
        Map<String, Boolean> may = new TreeMap<>();
        for (Map.Entry<String, JsonNode> one : Given.entries(input.get("owned_bundles"))) {
            may.put(one.getKey(), LoadManagerShared.shouldAntiAffinityNamespaceUnload(namespace, one.getKey(),
                    cluster.pulsar, owned, candidates));
        }
        answer.put("should_unload_by_current_broker", may);
        left = new HashSet<>(candidates);
        LoadManagerShared.removeMostServicingBrokersForNamespace(bundle, left, owned);
        answer.put("candidates_after_remove_most_servicing", new TreeSet<>(left));
        return answer;
    }

    static Object namespacePolicies(JsonNode config, JsonNode input) throws Exception {
        Cluster cluster = Given.cluster(config, input.get("policies"), null);
        if (input.get("policies_lookup_fails").asBoolean()) {
            cluster.failPolicies();
        }
        SimpleResourceAllocationPolicies policies = new SimpleResourceAllocationPolicies(cluster.pulsar);
        NamespaceName namespace = NamespaceName.get(input.get("namespace").asText());
        ServiceUnitId unit = namespace;
        if (input.get("service_unit_is_bundle").asBoolean()) {
            NamespaceBundle bundle = cluster.pulsar.getNamespaceService().getNamespaceBundleFactory()
                    .getBundle(namespace.toString(), "0x00000000_0xffffffff");
            bundle.setHasNonPersistentTopic(input.get("has_non_persistent_topic").asBoolean());
            unit = bundle;
        }
        Set<String> candidates = new HashSet<>();
        JsonNode modes = input.get("topic_modes");
        Set<String> available = Given.set(input.get("available_brokers"));
        LoadManagerShared.applyNamespacePolicies(unit, policies, candidates, available,
                new LoadManagerShared.BrokerTopicLoadingPredicate() {
                    @Override
                    public boolean isEnablePersistentTopics(String broker) {
                        return modes.path(broker).path(0).asBoolean(true);
                    }

                    @Override
                    public boolean isEnableNonPersistentTopics(String broker) {
                        return modes.path(broker).path(1).asBoolean(true);
                    }
                });
        Map<String, Object> brokers = new TreeMap<>();
        for (String broker : available) {
            int port = broker.lastIndexOf(':');
            String host = port < 0 ? broker : broker.substring(0, port);
            brokers.put(broker, Map.of("primary", policies.isPrimaryBroker(namespace, host),
                    "secondary", policies.isSecondaryBroker(namespace, host), "shared", policies.isSharedBroker(host)));
        }
        List<Boolean> failover = new ArrayList<>();
        for (int count = 0; count < PRIMARIES; count++) {
            failover.add(policies.shouldFailoverToSecondaries(namespace, count));
        }
        return Map.of("candidates", new TreeSet<>(candidates), "brokers", brokers,
                "policies_present", policies.areIsolationPoliciesPresent(namespace),
                "should_failover_by_primary_count", failover);
    }

    static Object isolationPolicy(JsonNode config, JsonNode input) throws Exception {
        ObjectNode given = JsonNodeFactory.instance.objectNode();
        given.putArray("namespaces").add(".*");
        input.fields().forEachRemaining(one -> given.set(one.getKey(), one.getValue()));
        NamespaceIsolationPolicyImpl policy = new NamespaceIsolationPolicyImpl(Cluster.policy(given));
        SortedSet<BrokerStatus> statuses = new TreeSet<>();
        Map<String, Object> brokers = new LinkedHashMap<>();
        for (JsonNode one : input.get("brokers")) {
            BrokerStatus status = BrokerStatus.builder().brokerAddress(one.get("host").asText())
                    .active(one.get("active").asBoolean()).loadFactor(one.get("load_factor").asInt()).build();
            statuses.add(status);
            String host = status.getBrokerAddress();
            brokers.put(host, Map.of("primary", policy.isPrimaryBroker(host), "secondary", policy.isSecondaryBroker(host),
                    "primary_available", policy.isPrimaryBrokerAvailable(status)));
        }
        return Map.of("brokers", brokers, "sorted_statuses", addresses(statuses),
                "available_primaries", addresses(policy.getAvailablePrimaryBrokers(statuses)),
                "should_failover", policy.shouldFailover(statuses));
    }

    private static List<String> addresses(SortedSet<BrokerStatus> statuses) {
        return statuses.stream().map(BrokerStatus::getBrokerAddress).toList();
    }

    static Object largeTopicCount(JsonNode config, JsonNode input) throws Exception {
        LoadData data = new LoadData();
        for (Map.Entry<String, JsonNode> one : Given.entries(input.get("brokers"))) {
            LocalBrokerData report = new LocalBrokerData();
            report.setNumTopics(one.getValue().get("num_topics").asInt());
            BrokerData broker = new BrokerData(report);
            for (JsonNode topics : one.getValue().get("preallocated_topics")) {
                BundleData bundle = new BundleData();
                bundle.setTopics(topics.asInt());
                broker.getPreallocatedBundleData().put("bundle-" + broker.getPreallocatedBundleData().size(), bundle);
            }
            data.getBrokerData().put(one.getKey(), broker);
        }
        Set<String> candidates = Given.set(input.get("candidates"));
        LoadManagerShared.filterBrokersWithLargeTopicCount(candidates, data,
                Given.conf(config).getLoadBalancerBrokerMaxTopics());
        return Map.of("candidates", new TreeSet<>(candidates));
    }
}

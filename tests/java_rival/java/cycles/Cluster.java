import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.pulsar.broker.PulsarService;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.LeaderElectionService;
import org.apache.pulsar.broker.loadbalance.LoadManager;
import org.apache.pulsar.broker.namespace.NamespaceService;
import org.apache.pulsar.broker.resources.LoadBalanceResources;
import org.apache.pulsar.broker.resources.LocalPoliciesResources;
import org.apache.pulsar.broker.resources.NamespaceResources;
import org.apache.pulsar.broker.resources.PulsarResources;
import org.apache.pulsar.broker.service.BrokerService;
import org.apache.pulsar.client.admin.Namespaces;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.common.naming.NamespaceBundle;
import org.apache.pulsar.common.naming.NamespaceBundleFactory;
import org.apache.pulsar.common.naming.NamespaceBundles;
import org.apache.pulsar.common.naming.NamespaceName;
import org.apache.pulsar.common.policies.data.AutoFailoverPolicyDataImpl;
import org.apache.pulsar.common.policies.data.AutoFailoverPolicyType;
import org.apache.pulsar.common.policies.data.LocalPolicies;
import org.apache.pulsar.common.policies.data.NamespaceIsolationDataImpl;
import org.apache.pulsar.common.policies.data.ResourceQuota;
import org.apache.pulsar.common.policies.impl.NamespaceIsolationPolicies;
import org.apache.pulsar.policies.data.loadbalancer.BundleData;

/** What stands for the rest of a broker: configuration, policies, namespaces and the admin API. */
final class Cluster {
    /** Where the bundles of every namespace begin and end. */
    private static final List<Long> ENDS = List.of(0L, 0xffffffffL);

    final ServiceConfiguration conf = new ServiceConfiguration();
    final Map<String, String> domains = new HashMap<>();
    final Map<String, String> versions = new HashMap<>();
    final StubPulsar pulsar = Reflected.unconstructed(StubPulsar.class);
    /** Namespace, and how many bundles it has; null where that cannot be looked up. */
    final Map<String, Integer> bundleCounts = new HashMap<>();
    /** Namespace, and where its bundles begin and end. */
    private final Map<String, TreeSet<Long>> boundaries = new HashMap<>();
    /** What the admin API was asked for: bundle and destination; bundle and whether the parts are unloaded. */
    final List<List<String>> unloads = new ArrayList<>();
    final List<List<String>> splits = new ArrayList<>();

    Cluster(JsonNode config, JsonNode input) throws Exception {
        config.fields().forEachRemaining(option -> configure(option.getKey(), option.getValue()));
        conf.setClusterName("test");
        conf.setLoadBalancerEnabled(true);
        conf.setLoadBalancerSheddingEnabled(true);
        input.path("domains").fields().forEachRemaining(one -> domains.put(one.getKey(), one.getValue().asText()));
        input.path("versions").fields().forEachRemaining(one -> versions.put(one.getKey(), one.getValue().asText()));
        pulsar.conf = conf;
        pulsar.resources = resources(input);
        StubNamespaces service = Reflected.unconstructed(StubNamespaces.class);
        service.counts = bundleCounts;
        StubBundles factory = Reflected.unconstructed(StubBundles.class);
        factory.boundaries = boundaries;
        service.factory = factory;
        pulsar.namespaces = service;
        pulsar.leader = Reflected.unconstructed(Leader.class);
        Namespaces namespaces = Reflected.proxy(Namespaces.class, this::asked);
        pulsar.admin = Reflected.proxy(PulsarAdmin.class, (method, given) -> namespaces);
    }

    /** From now on isolation policies cannot be looked up. */
    void failPolicies() {
        pulsar.resources.namespaces.isolation.policies = null;
    }

    /** The bundles that there are now, those of brokers without load data not among them. */
    void setBundles(Collection<String> bundles) {
        bundleCounts.clear();
        boundaries.clear();
        for (String bundle : bundles) {
            String namespace = NamespaceBundle.getBundleNamespace(bundle);
            bundleCounts.merge(namespace, 1, Integer::sum);
            for (String end : NamespaceBundle.getBundleRange(bundle).split("_")) {
                boundaries.computeIfAbsent(namespace, any -> new TreeSet<>(ENDS)).add(Long.decode(end));
            }
        }
    }

    /** The recorded admin API: the names of a bundle, its parts, and what is to be done. */
    private Object asked(String method, Object[] given) {
        String bundle = given[0] + "/" + given[1];
        switch (method) {
            case "unloadNamespaceBundle": unloads.add(List.of(bundle, (String) given[2])); return null;
            case "splitNamespaceBundle": splits.add(List.of(bundle, String.valueOf(given[2]))); return null;
            default: throw new UnsupportedOperationException(method);
        }
    }

    private void configure(String name, JsonNode value) {
        Field field = Reflected.field(ServiceConfiguration.class, name);
        if (field == null) {
            throw new IllegalArgumentException("no option " + name);
        }
        Class<?> type = field.getType();
        Object converted = type == int.class ? (Object) value.asInt()
                : type == long.class ? (Object) value.asLong()
                : type == double.class ? (Object) Double.parseDouble(value.asText()) // a number, or the word NaN
                : type == boolean.class ? (Object) value.asBoolean()
                : type == Set.class ? (Object) Set.of(value.asText().split(",")) : value.asText();
        Reflected.set(conf, name, converted);
    }

    private static StubResources resources(JsonNode input) {
        Map<String, NamespaceIsolationDataImpl> isolation = new LinkedHashMap<>();
        input.path("isolation").fields().forEachRemaining(one -> isolation.put(one.getKey(), policy(one.getValue())));
        StubResources resources = Reflected.unconstructed(StubResources.class);
        resources.namespaces = Reflected.unconstructed(StubNamespaceResources.class);
        resources.namespaces.isolation = Reflected.unconstructed(StubIsolation.class);
        resources.namespaces.isolation.policies = new NamespaceIsolationPolicies(isolation);
        resources.local = Reflected.unconstructed(StubLocalPolicies.class);
        resources.local.groups = new HashMap<>();
        input.path("anti_affinity").fields().forEachRemaining(
                one -> resources.local.groups.put(one.getKey(), one.getValue().textValue()));
        resources.balance = Reflected.unconstructed(StubLoadBalance.class);
        return resources;
    }

    /** An isolation policy with the automatic failover min_available. */
    static NamespaceIsolationDataImpl policy(JsonNode given) {
        Map<String, String> failover = new HashMap<>();
        failover.put("min_limit", given.get("min_limit").asText());
        failover.put("usage_threshold", given.get("usage_threshold").asText());
        return new NamespaceIsolationDataImpl(texts(given.get("namespaces")), texts(given.get("primary")),
                texts(given.get("secondary")),
                new AutoFailoverPolicyDataImpl(AutoFailoverPolicyType.min_available, failover), null);
    }

    private static List<String> texts(JsonNode list) {
        List<String> found = new ArrayList<>();
        list.forEach(one -> found.add(one.asText()));
        return found;
    }

    static final class StubPulsar extends PulsarService {
        private ServiceConfiguration conf;
        private NamespaceService namespaces;
        private StubResources resources;
        private LeaderElectionService leader;
        private PulsarAdmin admin;
        private AtomicReference<LoadManager> loadManager;
        private BrokerService broker;

        private StubPulsar() {
            super(null);
        }

        void use(NamespaceService service, BrokerService ofTheBroker, LoadManager manager) {
            namespaces = service;
            broker = ofTheBroker;
            loadManager = new AtomicReference<>(manager);
        }

        @Override
        public AtomicReference<LoadManager> getLoadManager() {
            return loadManager;
        }

        @Override
        public BrokerService getBrokerService() {
            return broker;
        }

        @Override
        public ServiceConfiguration getConfiguration() {
            return conf;
        }

        @Override
        public NamespaceService getNamespaceService() {
            return namespaces;
        }

        @Override
        public PulsarResources getPulsarResources() {
            return resources;
        }

        @Override
        public LeaderElectionService getLeaderElectionService() {
            return leader;
        }

        @Override
        public PulsarAdmin getAdminClient() {
            return admin;
        }

        @Override
        public String getAdvertisedAddress() {
            return "localhost";
        }
    }

    private static final class Leader extends LeaderElectionService {
        private Leader() {
            super(null, null, null, null);
        }

        @Override
        public boolean isLeader() {
            return true;
        }
    }

    private static final class StubNamespaces extends NamespaceService {
        private Map<String, Integer> counts;
        private NamespaceBundleFactory factory;

        private StubNamespaces() {
            super(null);
        }

        @Override
        public int getBundleCount(NamespaceName namespace) {
            Integer count = counts.getOrDefault(namespace.toString(), 0);
            if (count == null) {
                throw new IllegalStateException("how many bundles " + namespace + " has cannot be looked up");
            }
            return count;
        }

        @Override
        public Set<NamespaceBundle> getOwnedServiceUnits() {
            return Set.of();
        }

        @Override
        public NamespaceBundleFactory getNamespaceBundleFactory() {
            return factory;
        }
    }

    /** Bundles are what the round says: none is looked up. */
    private static final class StubBundles extends NamespaceBundleFactory {
        private Map<String, TreeSet<Long>> boundaries;

        private StubBundles() {
            super(null, null);
        }

        @Override
        public void invalidateBundleCache(NamespaceName namespace) {
        }

        @Override
        public NamespaceBundles getBundles(NamespaceName namespace) {
            long[] of = boundaries.get(namespace.toString()).stream().mapToLong(Long::longValue).toArray();
            for (Constructor<?> one : NamespaceBundles.class.getDeclaredConstructors()) {
                if (one.getParameterTypes()[one.getParameterCount() - 1] == long[].class) {
                    return (NamespaceBundles) Reflected.made(one, namespace, this, Optional.empty(), of);
                }
            }
            throw new IllegalStateException("NamespaceBundles has no constructor with boundaries");
        }
    }

    private static final class StubResources extends PulsarResources {
        private StubNamespaceResources namespaces;
        private StubLocalPolicies local;
        private LoadBalanceResources balance;

        private StubResources() {
            super(null, null);
        }

        @Override
        public NamespaceResources getNamespaceResources() {
            return namespaces;
        }

        @Override
        public LocalPoliciesResources getLocalPolicies() {
            return local;
        }

        @Override
        public LoadBalanceResources getLoadBalanceResources() {
            return balance;
        }
    }

    private static final class StubNamespaceResources extends NamespaceResources {
        private StubIsolation isolation;

        private StubNamespaceResources() {
            super(null, 0);
        }

        @Override
        public IsolationPolicyResources getIsolationPolicies() {
            return isolation;
        }
    }

    private static final class StubIsolation extends NamespaceResources.IsolationPolicyResources {
        private NamespaceIsolationPolicies policies;

        private StubIsolation() {
            super(null, 0);
        }

        @Override
        public Optional<NamespaceIsolationPolicies> getIsolationDataPolicies(String cluster) {
            if (policies == null) {
                throw new IllegalStateException("isolation policies cannot be looked up");
            }
            return Optional.of(policies);
        }

        @Override
        public CompletableFuture<Optional<NamespaceIsolationPolicies>> getIsolationDataPoliciesAsync(String cluster) {
            return CompletableFuture.completedFuture(Optional.of(policies));
        }
    }

    private static final class StubLocalPolicies extends LocalPoliciesResources {
        private Map<String, String> groups;

        private StubLocalPolicies() {
            super(null, 0);
        }

        @Override
        public Optional<LocalPolicies> getLocalPolicies(NamespaceName namespace) {
            String name = namespace.toString();
            return groups.containsKey(name) ? Optional.of(new LocalPolicies(null, null, groups.get(name)))
                    : Optional.empty();
        }

        @Override
        public CompletableFuture<Optional<LocalPolicies>> getLocalPoliciesAsync(NamespaceName namespace) {
            return CompletableFuture.completedFuture(getLocalPolicies(namespace));
        }
    }

    /** The metadata store has no data of bundles, and forgets what it is given. */
    private static final class StubLoadBalance extends LoadBalanceResources {
        private StubLoadBalance() {
            super(null, 0);
        }

        @Override
        public BundleDataResources getBundleDataResources() {
            return Reflected.unconstructed(StubBundleData.class);
        }

        @Override
        public BrokerTimeAverageDataResources getBrokerTimeAverageDataResources() {
            return Reflected.unconstructed(StubTimeAverages.class);
        }

        @Override
        public QuotaResources getQuotaResources() {
            return Reflected.unconstructed(StubQuotas.class);
        }
    }

    private static final class StubBundleData extends LoadBalanceResources.BundleDataResources {
        private StubBundleData() {
            super(null, 0);
        }

        @Override
        public CompletableFuture<Optional<BundleData>> getBundleData(String bundle) {
            return CompletableFuture.completedFuture(Optional.empty());
        }

        @Override
        public CompletableFuture<Void> deleteBundleData(String bundle) {
            return CompletableFuture.completedFuture(null);
        }
    }

    private static final class StubTimeAverages extends LoadBalanceResources.BrokerTimeAverageDataResources {
        private StubTimeAverages() {
            super(null, 0);
        }

        @Override
        public CompletableFuture<Void> deleteTimeAverageBrokerData(String broker) {
            return CompletableFuture.completedFuture(null);
        }
    }

    private static final class StubQuotas extends LoadBalanceResources.QuotaResources {
        private StubQuotas() {
            super(null, 0);
        }

        @Override
        public CompletableFuture<Optional<ResourceQuota>> getQuota(String bundle) {
            return CompletableFuture.completedFuture(Optional.empty());
        }
    }
}

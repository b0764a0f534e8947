import java.lang.reflect.Constructor;
import java.lang.reflect.RecordComponent;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.pulsar.broker.loadbalance.extensions.BrokerRegistry;
import org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl;
import org.apache.pulsar.broker.loadbalance.extensions.LoadManagerContext;
import org.apache.pulsar.broker.loadbalance.extensions.channel.ServiceUnitState;
import org.apache.pulsar.broker.loadbalance.extensions.channel.ServiceUnitStateChannel;
import org.apache.pulsar.broker.loadbalance.extensions.channel.ServiceUnitStateData;
import org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLoadData;
import org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLookupData;
import org.apache.pulsar.broker.loadbalance.extensions.data.TopBundlesLoadData;
import org.apache.pulsar.broker.loadbalance.extensions.filter.AntiAffinityGroupPolicyFilter;
import org.apache.pulsar.broker.loadbalance.extensions.filter.BrokerFilter;
import org.apache.pulsar.broker.loadbalance.extensions.filter.BrokerIsolationPoliciesFilter;
import org.apache.pulsar.broker.loadbalance.extensions.filter.BrokerLoadManagerClassFilter;
import org.apache.pulsar.broker.loadbalance.extensions.filter.BrokerMaxTopicCountFilter;
import org.apache.pulsar.broker.loadbalance.extensions.filter.BrokerVersionFilter;
import org.apache.pulsar.broker.loadbalance.extensions.manager.UnloadManager;
import org.apache.pulsar.broker.loadbalance.extensions.models.TopKBundles;
import org.apache.pulsar.broker.loadbalance.extensions.models.Unload;
import org.apache.pulsar.broker.loadbalance.extensions.models.UnloadCounter;
import org.apache.pulsar.broker.loadbalance.extensions.models.UnloadDecision;
import org.apache.pulsar.broker.loadbalance.extensions.policies.AntiAffinityGroupPolicyHelper;
import org.apache.pulsar.broker.loadbalance.extensions.policies.IsolationPoliciesHelper;
import org.apache.pulsar.broker.loadbalance.extensions.reporter.BrokerLoadDataReporter;
import org.apache.pulsar.broker.loadbalance.extensions.scheduler.TransferShedder;
import org.apache.pulsar.broker.loadbalance.extensions.scheduler.UnloadScheduler;
import org.apache.pulsar.broker.loadbalance.extensions.store.LoadDataStore;
import org.apache.pulsar.broker.loadbalance.extensions.strategy.BrokerSelectionStrategy;
import org.apache.pulsar.broker.loadbalance.extensions.strategy.LeastResourceUsageWithWeight;
import org.apache.pulsar.broker.loadbalance.impl.LoadManagerShared;
import org.apache.pulsar.broker.loadbalance.impl.SimpleResourceAllocationPolicies;
import org.apache.pulsar.broker.namespace.LookupOptions;
import org.apache.pulsar.common.naming.ServiceUnitId;
import org.apache.pulsar.policies.data.loadbalancer.NamespaceBundleStats;
import org.apache.pulsar.policies.data.loadbalancer.SystemResourceUsage;

/**
 * The real UnloadScheduler with TransferShedder, between the real reports of brokers and a stand-in of the channel.
 *
 * <p>A bundle that is unloaded without a destination is assigned at once, as by a client's look-up:
 * ExtensibleLoadManagerImpl.selectAsync, one bundle after the other.
 */
final class ExtensibleCycle implements Cycles.Manager {
    /** An unload is carried out so many milliseconds after its round. */
    private static final long CARRIED_OUT = 1_000;

    private final Cluster cluster;
    private final Map<String, BrokerLoadDataReporter> reporters = new TreeMap<>();
    private final Map<String, BrokerLoadData> reports = new TreeMap<>();
    private final Map<String, TopBundlesLoadData> tops = new TreeMap<>();
    private final Map<String, BrokerLookupData> available = new HashMap<>();
    private final LoadDataStore<BrokerLoadData> reportStore = store(reports);
    private final LoadManagerContext context;
    private final UnloadCounter counter = new UnloadCounter();
    private final TransferShedder shedder = new TransferShedder(counter);
    private final BrokerSelectionStrategy selection = new LeastResourceUsageWithWeight();
    private final ExtensibleLoadManagerImpl manager = Reflected.unconstructed(ExtensibleLoadManagerImpl.class);
    private final UnloadScheduler scheduler;
    private final Picks picks = new Picks();
    /** Bundle and owner, as the channel has them. */
    private final Map<String, String> owners = new TreeMap<>();
    /** Bundle and owner, as the round before had them. */
    private final Map<String, String> before = new HashMap<>();
    /** The broker that the bundle leaves which is being assigned; another thread selects. */
    private volatile String leaving = "";
    private final Map<String, Long> reportedAt = new HashMap<>();
    private final Map<String, Long> bundleUnloadedAt = new HashMap<>();
    private final Map<String, Long> brokerUnloadedAt = new HashMap<>();
    private final List<List<String>> unloads = new ArrayList<>();

    ExtensibleCycle(Cluster cluster) throws Exception {
        this.cluster = cluster;
        LoadDataStore<TopBundlesLoadData> topStore = store(tops);
        BrokerRegistry registry = Reflected.proxy(BrokerRegistry.class, this::registered);
        context = Reflected.proxy(LoadManagerContext.class, (method, given) -> switch (method) {
            case "brokerConfiguration" -> cluster.conf;
            case "brokerLoadDataStore" -> reportStore;
            case "topBundleLoadDataStore" -> topStore;
            default -> registry;
        });
        ServiceUnitStateChannel channel = Reflected.proxy(ServiceUnitStateChannel.class, this::published);
        AntiAffinityGroupPolicyHelper antiAffinity = new AntiAffinityGroupPolicyHelper(cluster.pulsar, channel);
        Reflected.<Map<String, String>>get(antiAffinity, "brokerToFailureDomainMap").putAll(cluster.domains);
        IsolationPoliciesHelper isolation =
                new IsolationPoliciesHelper(new SimpleResourceAllocationPolicies(cluster.pulsar));
        List<BrokerFilter> filters = List.of(new BrokerLoadManagerClassFilter(), new BrokerMaxTopicCountFilter(),
                new BrokerVersionFilter(), new AntiAffinityGroupPolicyFilter(antiAffinity),
                new BrokerIsolationPoliciesFilter(isolation));
        Reflected.set(shedder, "pulsar", cluster.pulsar);
        Reflected.set(shedder, "channel", channel);
        Reflected.set(shedder, "brokerFilterPipeline", filters);
        Reflected.set(shedder, "isolationPoliciesHelper", isolation);
        Reflected.set(shedder, "antiAffinityGroupPolicyHelper", antiAffinity);
        // In the order of its choice, not of a hash set.
        Reflected.set(shedder, "decisionCache", new LinkedHashSet<UnloadDecision>());
        Reflected.set(manager, "conf", cluster.conf);
        Reflected.set(manager, "brokerRegistry", registry);
        Reflected.set(manager, "context", context);
        Reflected.set(manager, "brokerFilterPipeline", filters);
        Reflected.set(manager, "brokerSelectionStrategy",
                Reflected.proxy(BrokerSelectionStrategy.class, this::selected));
        scheduler = scheduler(channel);
    }

    @Override
    public Map<String, Object> round(Round round) throws Exception {
        picks.begin(round.time);
        unloads.clear();
        available.clear();
        round.alive().forEach(name -> available.put(name, lookupData(name)));
        cluster.setBundles(round.bundles.keySet());
        changeOwners(round);
        reporters.keySet().retainAll(round.alive());
        reports.keySet().retainAll(round.alive());
        tops.keySet().retainAll(round.alive());
        Map<String, Double> averages = new TreeMap<>();
        for (Map.Entry<String, Round.Broker> each : round.brokers.entrySet()) {
            String name = each.getKey();
            averages.put(name, report(name, each.getValue()).getWeightedMaxEMA());
            reportedAt.put(name, round.time);
        }
        Set<String> recent = passTime(round.time);
        scheduler.execute();
        for (List<String> one : unloads) {
            bundleUnloadedAt.put(one.get(0), round.time);
            brokerUnloadedAt.put(one.get(1), round.time);
        }
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("unloads", new ArrayList<>(unloads));
        answer.put("splits", List.of());
        answer.put("acceptable", picks.among);
        answer.put("recently_unloaded", recent);
        answer.put("usage_history", averages);
        answer.put("hit_count", Reflected.get(shedder, "unloadConditionHitCount"));
        answer.put("counters", counted(counter));
        return answer;
    }

    /** The registry of brokers. */
    private Object registered(String method, Object[] given) {
        switch (method) {
            case "getAvailableBrokersAsync":
                return CompletableFuture.completedFuture(new ArrayList<>(available.keySet()));
            case "getAvailableBrokerLookupDataAsync":
                return CompletableFuture.completedFuture(new HashMap<>(available));
            default: throw new UnsupportedOperationException(method);
        }
    }

    /** The channel: who owns a bundle, and what is unloaded. */
    private Object published(String method, Object[] given) throws Exception {
        switch (method) {
            case "isChannelOwnerAsync": return CompletableFuture.completedFuture(true);
            case "isOwner": return given[1].equals(owners.get(given[0]));
            case "getOwnershipEntrySet":
                Map<String, ServiceUnitStateData> entries = new LinkedHashMap<>();
                owners.forEach((bundle, owner) ->
                        entries.put(bundle, new ServiceUnitStateData(ServiceUnitState.Owned, owner, 1)));
                return entries.entrySet();
            case "publishUnloadEventAsync":
                unload((Unload) given[0]);
                return CompletableFuture.completedFuture(null);
            default: throw new UnsupportedOperationException(method);
        }
    }

    private void unload(Unload unload) throws Exception {
        String bundle = unload.serviceUnit();
        String destination = unload.destBroker().orElse(null);
        if (destination == null) {
            owners.remove(bundle);
            String namespace = LoadManagerShared.getNamespaceNameFromBundleName(bundle);
            String range = LoadManagerShared.getBundleRangeFromBundleName(bundle);
            leaving = unload.sourceBroker();
            destination = manager.selectAsync(
                    cluster.pulsar.getNamespaceService().getNamespaceBundleFactory().getBundle(namespace, range),
                    Set.of(), LookupOptions.builder().build()).get(10, TimeUnit.SECONDS).orElse("");
        }
        if (!destination.isEmpty()) {
            owners.put(bundle, destination);
        }
        unloads.add(List.of(bundle, unload.sourceBroker(), destination));
    }

    /** The real selection among candidates, with its random pick replaced. */
    @SuppressWarnings("unchecked")
    private Object selected(String method, Object[] given) {
        Optional<String> found = selection.select((Set<String>) given[0],
                (ServiceUnitId) given[1], (LoadManagerContext) given[2]);
        ThreadLocal<ArrayList<String>> best = Reflected.get(selection, "bestBrokers");
        return found.map(any -> picks.of(given[1].toString(), leaving, best.get()));
    }

    /** Tells the reporters whose bundles moved, were split or are new since the round before. */
    private void changeOwners(Round round) {
        Map<String, String> now = round.owners();
        boolean isFirst = reporters.isEmpty();
        for (String bundle : new TreeSet<>(owners.keySet())) {
            String source = owners.get(bundle);
            String destination = now.get(bundle);
            if (destination == null && !round.missing.contains(source)) {
                tell(bundle, ServiceUnitState.Splitting, null, source);
                owners.remove(bundle);
            }
        }
        for (Map.Entry<String, String> each : now.entrySet()) {
            String source = before.get(each.getKey());
            if (!isFirst && !each.getValue().equals(source)) {
                if (source != null) {
                    tell(each.getKey(), ServiceUnitState.Releasing, each.getValue(), source);
                }
                tell(each.getKey(), ServiceUnitState.Owned, each.getValue(), source);
            }
        }
        owners.putAll(now);
        before.keySet().retainAll(owners.keySet());
        before.putAll(now);
    }

    private void tell(String bundle, ServiceUnitState state, String destination, String source) {
        ServiceUnitStateData data = new ServiceUnitStateData(state, destination, source, 1);
        reporters.values().forEach(reporter -> reporter.handleEvent(bundle, data, null));
    }

    private BrokerLoadData report(String name, Round.Broker broker) {
        BrokerLoadData report = reporters.computeIfAbsent(name, this::reporter).getLocalData();
        SystemResourceUsage usage = new SystemResourceUsage();
        usage.setCpu(broker.cpu);
        usage.setMemory(broker.memory);
        usage.setDirectMemory(broker.directMemory);
        usage.setBandwidthIn(broker.bandwidthIn);
        usage.setBandwidthOut(broker.bandwidthOut);
        report.update(usage, broker.load[2], broker.load[3], broker.load[0], broker.load[1], broker.bundles.size(),
                broker.topics, cluster.conf);
        reports.put(name, report);
        Map<String, NamespaceBundleStats> stats = new TreeMap<>();
        broker.bundles.forEach((bundle, load) -> stats.put(bundle, load.stats()));
        TopKBundles top = new TopKBundles(cluster.pulsar);
        top.update(stats, cluster.conf.getLoadBalancerMaxNumberOfBundlesInBundleLoadReport());
        tops.put(name, top.getLoadData());
        return report;
    }

    /** Its constructor would measure this machine. */
    private BrokerLoadDataReporter reporter(String broker) {
        BrokerLoadDataReporter made = Reflected.unconstructed(BrokerLoadDataReporter.class);
        Reflected.set(made, "conf", cluster.conf);
        Reflected.set(made, "brokerLoadDataStore", reportStore);
        Reflected.set(made, "brokerId", broker);
        Reflected.set(made, "localData", new BrokerLoadData());
        return made;
    }

    /** Sets when brokers and bundles were unloaded as if the rounds took their time; returns the recent bundles. */
    private Set<String> passTime(long time) {
        long now = System.currentTimeMillis();
        // A broker without new data still has its last ones.
        reports.forEach((name, report) -> Reflected.set(report, "updatedAt", now - (time - reportedAt.get(name))));
        long grace = TimeUnit.MINUTES.toMillis(cluster.conf.getLoadBalancerSheddingGracePeriodMinutes());
        Set<String> recent = new TreeSet<>();
        Reflected.<Map<String, Long>>get(scheduler, "recentlyUnloadedBundles").replaceAll((bundle, stamp) -> {
            long age = time - bundleUnloadedAt.get(bundle) - CARRIED_OUT;
            if (age <= grace) {
                recent.add(bundle);
            }
            return now - age;
        });
        Reflected.<Map<String, Long>>get(scheduler, "recentlyUnloadedBrokers").replaceAll(
                (broker, stamp) -> now - (time - brokerUnloadedAt.get(broker) - CARRIED_OUT));
        return recent;
    }

    private UnloadScheduler scheduler(ServiceUnitStateChannel channel) {
        for (Constructor<?> one : UnloadScheduler.class.getDeclaredConstructors()) {
            if (one.getParameterCount() == 8) { // the one that is given a shedder
                return (UnloadScheduler) Reflected.made(one, cluster.pulsar, null, unloadManager(), context, channel,
                        shedder, counter, new AtomicReference<>());
            }
        }
        throw new IllegalStateException("UnloadScheduler has no constructor with a shedder");
    }

    /** What the shedder did so far, and why it did nothing: label/reason and how often. */
    static Map<String, Long> counted(UnloadCounter counter) {
        Map<String, Long> found = new TreeMap<>();
        Map<?, Map<?, AtomicLong>> counts = Reflected.get(counter, "breakdownCounters");
        counts.forEach((label, reasons) -> reasons.forEach((reason, count) -> {
            if (count.get() > 0) {
                found.put(label + "/" + reason, count.get());
            }
        }));
        return found;
    }

    private UnloadManager unloadManager() {
        AtOnce made = Reflected.unconstructed(AtOnce.class);
        made.counts = counter;
        return made;
    }

    /** The record has other components in other releases. */
    private BrokerLookupData lookupData(String broker) {
        RecordComponent[] components = BrokerLookupData.class.getRecordComponents();
        Object[] values = new Object[components.length];
        Class<?>[] types = new Class<?>[components.length];
        for (int i = 0; i < components.length; i++) {
            types[i] = components[i].getType();
            values[i] = switch (components[i].getName()) {
                case "persistentTopicsEnabled", "nonPersistentTopicsEnabled" -> true;
                case "loadManagerClassName" -> cluster.conf.getLoadManagerClassName();
                case "startTimestamp" -> 0L;
                case "brokerVersion" -> cluster.versions.get(broker);
                case "brokerId" -> broker;
                default -> types[i] == Map.class ? Map.of() : null;
            };
        }
        try {
            return (BrokerLookupData) Reflected.made(BrokerLookupData.class.getDeclaredConstructor(types), values);
        } catch (NoSuchMethodException error) {
            throw new IllegalStateException(error);
        }
    }

    private static <T> LoadDataStore<T> store(Map<String, T> held) {
        return Reflected.proxy(LoadDataStore.class, (method, given) -> {
            switch (method) {
                case "get": return Optional.ofNullable(held.get(given[0]));
                case "entrySet": return held.entrySet();
                case "size": return held.size();
                case "removeAsync": held.remove(given[0]); return CompletableFuture.completedFuture(null);
                default: throw new UnsupportedOperationException(method);
            }
        });
    }

    /** Unloads are done as soon as they are asked for. */
    private static final class AtOnce extends UnloadManager {
        private UnloadCounter counts;

        private AtOnce() {
            super(null, null);
        }

        @Override
        public CompletableFuture<Void> waitAsync(CompletableFuture<Void> published, String bundle,
                UnloadDecision decision, long timeout, TimeUnit unit) {
            counts.update(decision);
            return published;
        }
    }
}

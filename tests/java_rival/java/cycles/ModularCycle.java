import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.Collection;
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
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.BrokerFilter;
import org.apache.pulsar.broker.loadbalance.LoadData;
import org.apache.pulsar.broker.loadbalance.LoadSheddingStrategy;
import org.apache.pulsar.broker.loadbalance.ModularLoadManagerStrategy;
import org.apache.pulsar.broker.loadbalance.impl.AvgShedder;
import org.apache.pulsar.broker.loadbalance.impl.BrokerLoadManagerClassFilter;
import org.apache.pulsar.broker.loadbalance.impl.BrokerVersionFilter;
import org.apache.pulsar.broker.loadbalance.impl.BundleRangeCache;
import org.apache.pulsar.broker.loadbalance.impl.BundleSplitterTask;
import org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl;
import org.apache.pulsar.broker.loadbalance.impl.RoundRobinBrokerSelector;
import org.apache.pulsar.broker.loadbalance.impl.SimpleResourceAllocationPolicies;
import org.apache.pulsar.metadata.api.coordination.LockManager;
import org.apache.pulsar.policies.data.loadbalancer.BrokerData;
import org.apache.pulsar.policies.data.loadbalancer.BundleData;
import org.apache.pulsar.policies.data.loadbalancer.LocalBrokerData;
import org.apache.pulsar.policies.data.loadbalancer.NamespaceBundleStats;
import org.apache.pulsar.policies.data.loadbalancer.TimeAverageBrokerData;
import org.apache.pulsar.policies.data.loadbalancer.TimeAverageMessageData;

/**
 * The real ModularLoadManagerImpl of a leader: it reads the brokers' reports from a stand-in of the metadata store, splits
 * bundles, then sheds load. Averages of bundles are those of the round: the class does not compute them here.
 */
final class ModularCycle implements Cycles.Manager {
    private static final int SHORT_SAMPLES = 10;
    private static final int LONG_SAMPLES = 50;
    /** An unload is carried out so many milliseconds after its round. */
    private static final long CARRIED_OUT = 1_000;

    private final Cluster cluster;
    private final ModularLoadManagerImpl manager = new ModularLoadManagerImpl();
    private final LoadData data = Reflected.get(manager, "loadData");
    private final NamespaceBundleStats defaults = Reflected.get(manager, "defaultStats");
    private final ModularLoadManagerStrategy placement;
    private final LoadSheddingStrategy shedder;
    private final Picks picks = new Picks();
    private final Map<String, LocalBrokerData> reports = new HashMap<>();
    private final List<String> alive = new ArrayList<>();
    /** Bundle, and the time of the round that unloaded it. */
    private final Map<String, Long> unloadedAt = new HashMap<>();
    private Map<String, String> owners = Map.of();
    /** The bundle whose placement is asked again, since all of the best brokers are overloaded. */
    private String askedAgain = "";

    ModularCycle(Cluster cluster) throws Exception {
        this.cluster = cluster;
        Given.defaults(defaults);
        Reflected.set(manager, "pulsar", cluster.pulsar);
        Reflected.set(manager, "pulsarResources", cluster.pulsar.getPulsarResources());
        Reflected.set(manager, "conf", cluster.conf);
        Reflected.set(manager, "brokersData", Reflected.proxy(LockManager.class, this::stored));
        Reflected.set(manager, "policies", new SimpleResourceAllocationPolicies(cluster.pulsar));
        Reflected.set(manager, "bundleSplitStrategy", new BundleSplitterTask());
        Reflected.set(manager, "localData", new LocalBrokerData());
        Reflected.set(manager, "brokerToFailureDomainMap", cluster.domains);
        String excluded = "sheddingExcludedNamespaceSelectionStrategy"; // since 4.2
        if (Reflected.field(ModularLoadManagerImpl.class, excluded) != null) {
            Reflected.set(manager, excluded, new RoundRobinBrokerSelector());
        }
        List<BrokerFilter> filters = Reflected.get(manager, "filterPipeline");
        filters.add(new BrokerLoadManagerClassFilter());
        filters.add(new BrokerVersionFilter());
        placement = placement();
        shedder = placement instanceof LoadSheddingStrategy ? (LoadSheddingStrategy) placement
                : (LoadSheddingStrategy) Class.forName(cluster.conf.getLoadBalancerLoadSheddingStrategy())
                        .getDeclaredConstructor().newInstance();
        Reflected.set(manager, "placementStrategy", placement instanceof AvgShedder ? placement
                : Reflected.proxy(ModularLoadManagerStrategy.class, this::placed));
        Reflected.set(manager, "loadSheddingStrategy", shedder);
    }

    @Override
    public Map<String, Object> round(Round round) throws Exception {
        picks.begin(round.time);
        cluster.unloads.clear();
        cluster.splits.clear();
        owners = round.owners();
        report(round);
        Set<String> recent = recentlyUnloaded(round.time);
        Reflected.call(manager, "cleanupDeadBrokersData");
        Reflected.call(manager, "updateAllBrokerData");
        update(round);
        manager.checkNamespaceBundleSplit();
        manager.doLoadShedding();
        List<List<String>> unloads = new ArrayList<>();
        for (List<String> one : cluster.unloads) {
            unloads.add(List.of(one.get(0), owners.get(one.get(0)), one.get(1)));
            unloadedAt.put(one.get(0), round.time);
        }
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("unloads", unloads);
        answer.put("splits", new ArrayList<>(cluster.splits));
        answer.put("acceptable", picks.among);
        answer.put("recently_unloaded", recent);
        answer.put("usage_history", history(shedder, "brokerAvgResourceUsage"));
        answer.put("placement_history", history(placement, "brokerAvgResourceUsageWithWeight"));
        answer.put("hit_high", history(shedder, "brokerHitCountForHigh"));
        answer.put("hit_low", history(shedder, "brokerHitCountForLow"));
        if (placement instanceof RoundRobinBrokerSelector) {
            answer.put("placements", Reflected.<Number>get(placement, "count").intValue());
        }
        return answer;
    }

    /** The metadata store: which brokers are alive, and the report of one. */
    private Object stored(String method, Object[] given) {
        switch (method) {
            case "listLocks": return CompletableFuture.completedFuture(new ArrayList<>(alive));
            case "readLock":
                String path = (String) given[0];
                String broker = path.substring(path.lastIndexOf('/') + 1);
                return CompletableFuture.completedFuture(Optional.ofNullable(reports.get(broker)));
            default: throw new UnsupportedOperationException(method);
        }
    }

    private void report(Round round) {
        alive.clear();
        alive.addAll(round.alive());
        reports.clear();
        round.brokers.forEach((name, broker) -> {
            LocalBrokerData report = new LocalBrokerData();
            report.setCpu(broker.cpu);
            report.setMemory(broker.memory);
            report.setDirectMemory(broker.directMemory);
            report.setBandwidthIn(broker.bandwidthIn);
            report.setBandwidthOut(broker.bandwidthOut);
            report.setMsgRateIn(broker.load[0]);
            report.setMsgRateOut(broker.load[1]);
            report.setMsgThroughputIn(broker.load[2]);
            report.setMsgThroughputOut(broker.load[3]);
            report.setNumTopics(broker.topics);
            report.setNumBundles(broker.bundles.size());
            report.setBundles(new HashSet<>(broker.bundles.keySet()));
            report.setPersistentTopicsEnabled(true);
            report.setNonPersistentTopicsEnabled(true);
            report.setBrokerVersionString(cluster.versions.get(name));
            report.setLoadManagerClassName(cluster.conf.getLoadManagerClassName());
            broker.bundles.forEach((bundle, load) -> report.getLastStats().put(bundle, load.stats()));
            reports.put(name, report);
        });
    }

    /** Sets when bundles were unloaded as if the rounds took their time; returns those within the grace period. */
    private Set<String> recentlyUnloaded(long time) {
        long now = System.currentTimeMillis();
        long grace = TimeUnit.MINUTES.toMillis(cluster.conf.getLoadBalancerSheddingGracePeriodMinutes());
        Set<String> recent = new TreeSet<>();
        data.getRecentlyUnloadedBundles().replaceAll((bundle, stamp) -> {
            long age = time - unloadedAt.get(bundle) - CARRIED_OUT;
            if (age <= grace) {
                recent.add(bundle);
            }
            return now - age;
        });
        return recent;
    }

    /** As the class itself updates the data of bundles, but with given averages. */
    private void update(Round round) {
        Map<String, BundleData> bundles = data.getBundleData();
        bundles.keySet().retainAll(round.bundles.keySet());
        cluster.setBundles(round.bundles.keySet());
        round.bundles.forEach((name, bundle) -> {
            BundleData averages = bundles.computeIfAbsent(name, any -> new BundleData(SHORT_SAMPLES, LONG_SAMPLES));
            average(averages.getShortTermData(), bundle.shortTerm, SHORT_SAMPLES);
            average(averages.getLongTermData(), bundle.longTerm, LONG_SAMPLES);
            averages.setTopics(bundle.topics);
        });
        BundleRangeCache cache = Reflected.get(manager, "brokerToNamespaceToBundleRange");
        for (Map.Entry<String, BrokerData> each : data.getBrokerData().entrySet()) {
            Set<String> owned = each.getValue().getLocalData().getLastStats().keySet();
            TimeAverageBrokerData longTerm = new TimeAverageBrokerData();
            longTerm.reset(owned, bundles, defaults);
            each.getValue().setTimeAverageData(longTerm);
            cache.reloadFromBundles(each.getKey(), owned.stream());
        }
    }

    private static void average(TimeAverageMessageData data, double[] load, int samples) {
        data.setMsgRateIn(load[0]);
        data.setMsgRateOut(load[1]);
        data.setMsgThroughputIn(load[2]);
        data.setMsgThroughputOut(load[3]);
        data.setNumSamples(samples);
    }

    private ModularLoadManagerStrategy placement() {
        ModularLoadManagerStrategy made = ModularLoadManagerStrategy.create(cluster.conf);
        return made instanceof AvgShedder ? new SteeredAvgShedder() : made;
    }

    /** AvgShedder, with its random pick replaced. */
    private final class SteeredAvgShedder extends AvgShedder {
        @Override
        public Optional<String> selectBroker(Set<String> candidates, BundleData bundle, LoadData all,
                ServiceConfiguration conf) {
            String plansByData = "bundleBrokerMap"; // until 4.2
            Map<BundleData, String> plans = Reflected.field(AvgShedder.class, plansByData) == null
                    ? new HashMap<>() : Reflected.get(this, plansByData);
            if (candidates.isEmpty() || candidates.contains(plans.get(bundle))) {
                return super.selectBroker(candidates, bundle, all, conf);
            }
            Set<String> free = free(candidates);
            String name = nameOf(bundle);
            String picked = picks.of(name, owners.get(name), free.isEmpty() ? candidates : free);
            plans.put(bundle, picked);
            return Optional.of(picked);
        }
    }

    /** Any other placement, with its random pick replaced. */
    private Object placed(String method, Object[] given) throws Throwable {
        Object answer;
        try {
            answer = ModularLoadManagerStrategy.class.getMethod(method, types(method)).invoke(placement, given);
        } catch (InvocationTargetException error) {
            throw error.getCause();
        }
        boolean isRandom = method.startsWith("selectBroker") && ((Optional<?>) answer).isPresent()
                && !(placement instanceof RoundRobinBrokerSelector);
        if (!isRandom) {
            return answer;
        }
        BundleData bundle = null;
        for (Object one : given) {
            bundle = one instanceof BundleData ? (BundleData) one : bundle;
        }
        return Optional.of(pick(nameOf(bundle), Reflected.get(placement, "bestBrokers")));
    }

    private String pick(String bundle, Collection<String> best) {
        if (bundle.equals(askedAgain)) {
            askedAgain = "";
            return picks.of(bundle, owners.get(bundle), best);
        }
        Set<String> free = free(best);
        if (free.isEmpty()) {
            askedAgain = bundle;
            return best.iterator().next();
        }
        return picks.of(bundle, owners.get(bundle), free);
    }

    private Set<String> free(Collection<String> brokers) {
        Set<String> free = new TreeSet<>(brokers);
        free.removeIf(this::isOverloaded);
        return free;
    }

    private boolean isOverloaded(String broker) {
        double usage = data.getBrokerData().get(broker).getLocalData().getMaxResourceUsageWithWeight(
                cluster.conf.getLoadBalancerCPUResourceWeight(),
                cluster.conf.getLoadBalancerDirectMemoryResourceWeight(),
                cluster.conf.getLoadBalancerBandwidthInResourceWeight(),
                cluster.conf.getLoadBalancerBandwidthOutResourceWeight());
        return usage > cluster.conf.getLoadBalancerBrokerOverloadedThresholdPercentage() / 100.0;
    }

    /** The name of the bundle that has these very data. */
    private String nameOf(BundleData bundle) {
        for (Map.Entry<String, BundleData> each : data.getBundleData().entrySet()) {
            if (each.getValue() == bundle) {
                return each.getKey();
            }
        }
        throw new IllegalStateException("a broker is selected for a bundle without data");
    }

    private static Class<?>[] types(String method) {
        for (java.lang.reflect.Method one : ModularLoadManagerStrategy.class.getMethods()) {
            if (one.getName().equals(method)) {
                return one.getParameterTypes();
            }
        }
        throw new IllegalStateException(method);
    }

    /** A map of a strategy, from broker to number; empty where the strategy has none of this name. */
    private static Map<String, Number> history(Object strategy, String name) {
        Map<String, Number> found = new TreeMap<>();
        if (Reflected.field(strategy.getClass(), name) != null) {
            Map<String, ? extends Number> held = Reflected.get(strategy, name);
            held.forEach((broker, number) -> found.put(broker,
                    number instanceof Double ? (Number) number.doubleValue() : (Number) number.intValue()));
        }
        return found;
    }
}

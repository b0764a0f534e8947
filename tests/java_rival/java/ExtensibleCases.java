import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import org.apache.pulsar.broker.PulsarService;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.extensions.BrokerRegistry;
import org.apache.pulsar.broker.loadbalance.extensions.LoadManagerContext;
import org.apache.pulsar.broker.loadbalance.extensions.channel.ServiceUnitState;
import org.apache.pulsar.broker.loadbalance.extensions.channel.ServiceUnitStateData;
import org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLoadData;
import org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLookupData;
import org.apache.pulsar.broker.loadbalance.extensions.data.TopBundlesLoadData;
import org.apache.pulsar.broker.loadbalance.extensions.models.TopKBundles;
import org.apache.pulsar.broker.loadbalance.extensions.models.UnloadCounter;
import org.apache.pulsar.broker.loadbalance.extensions.reporter.BrokerLoadDataReporter;
import org.apache.pulsar.broker.loadbalance.extensions.scheduler.TransferShedder;
import org.apache.pulsar.broker.loadbalance.extensions.store.LoadDataStore;
import org.apache.pulsar.policies.data.loadbalancer.NamespaceBundleStats;
import org.apache.pulsar.policies.data.loadbalancer.ResourceUsage;
import org.apache.pulsar.policies.data.loadbalancer.SystemResourceUsage;

/** Plays brokers of the extensible load manager with Pulsar's real classes, a line a question; see extensible.py. */
public final class ExtensibleCases {
    private final ServiceConfiguration conf = new ServiceConfiguration();
    private final TransferShedder shedder = new TransferShedder(new UnloadCounter());
    private final Map<String, BrokerLoadDataReporter> reporters = new TreeMap<>();
    private final Map<String, BrokerLoadData> reports = new TreeMap<>();
    private final Map<String, TopBundlesLoadData> tops = new TreeMap<>();
    private final LoadDataStore<BrokerLoadData> reportStore = store(reports);
    private final LoadDataStore<TopBundlesLoadData> topStore = store(tops);
    private Iterator<String> words;

    public static void main(String[] arguments) throws Exception {
        ExtensibleCases cases = null;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Iterator<String> words = Arrays.asList(line.split(" ")).iterator();
            String question = words.next();
            cases = question.equals("new") ? new ExtensibleCases() : cases;
            cases.words = words;
            System.out.println(String.join(" ", cases.answer(question)));
        }
    }

    private List<String> answer(String question) throws Exception {
        switch (question) {
            case "new": return begin();
            case "state": return state();
            case "round": return round();
            default: throw new IllegalArgumentException(question);
        }
    }

    /** Options with their values. */
    private List<String> begin() throws Exception {
        while (words.hasNext()) {
            Field field = ServiceConfiguration.class.getDeclaredField(words.next());
            field.setAccessible(true);
            String value = words.next();
            if (field.getType() == int.class) {
                field.setInt(conf, Integer.parseInt(value));
            } else if (field.getType() == double.class) {
                field.setDouble(conf, Double.parseDouble(value));
            } else {
                field.setBoolean(conf, Boolean.parseBoolean(value));
            }
        }
        return List.of("new");
    }

    /** A bundle, its new state, and the two brokers that it is about: every broker is told. */
    private List<String> state() {
        String bundle = words.next();
        ServiceUnitState state = ServiceUnitState.valueOf(words.next());
        ServiceUnitStateData data = new ServiceUnitStateData(state, broker(), broker(), null, 1);
        reporters.values().forEach(reporter -> reporter.handleEvent(bundle, data, null));
        return List.of("state");
    }

    private String broker() {
        String name = words.next();
        return name.equals("-") ? null : name;
    }

    /** Brokers with usages, throughputs and bundles: the averages of each after its report, and what is unloaded. */
    private List<String> round() throws Exception {
        tops.clear();
        while (words.hasNext()) {
            report(words.next());
        }
        List<String> said = new ArrayList<>(List.of("averages"));
        reports.forEach((name, data) -> {
            said.add(name);
            said.add(String.valueOf(data.getWeightedMaxEMA()));
            said.add(String.valueOf(data.getMsgThroughputEMA()));
        });
        said.add("unloads");
        shedder.findBundlesForUnloading(context(), new HashMap<>(), new HashMap<>()).stream()
                .map(found -> String.join(" ", found.getUnload().serviceUnit(), found.getUnload().sourceBroker(),
                        found.getUnload().destBroker().orElse("-"), found.getReason().toString()))
                .sorted().forEach(said::add);
        return said;
    }

    private void report(String broker) throws Exception {
        if (!reporters.containsKey(broker)) {
            reporters.put(broker, reporter(broker));
        }
        SystemResourceUsage usage = new SystemResourceUsage();
        usage.setCpu(new ResourceUsage(number(), 100));
        usage.setBandwidthIn(new ResourceUsage(number(), 100));
        usage.setBandwidthOut(new ResourceUsage(number(), 100));
        double in = 0;
        double out = 0;
        Map<String, NamespaceBundleStats> bundles = new HashMap<>();
        for (int left = (int) number(); left > 0; left--) {
            NamespaceBundleStats one = new NamespaceBundleStats();
            bundles.put(words.next(), one);
            one.msgThroughputIn = number();
            one.msgThroughputOut = number();
            in += one.msgThroughputIn;
            out += one.msgThroughputOut;
        }
        BrokerLoadData data = reporters.get(broker).getLocalData();
        data.update(usage, in, out, 0, 0, bundles.size(), 0, conf);
        reports.put(broker, data);
        TopKBundles top = new TopKBundles(pulsar());
        top.update(bundles, conf.getLoadBalancerMaxNumberOfBundlesInBundleLoadReport());
        tops.put(broker, top.getLoadData());
    }

    private double number() {
        return Double.parseDouble(words.next());
    }

    /** Its constructor would measure this machine. */
    private BrokerLoadDataReporter reporter(String broker) throws Exception {
        BrokerLoadDataReporter made = unconstructed(BrokerLoadDataReporter.class);
        Map<String, Object> fields = Map.of("conf", conf, "brokerLoadDataStore", reportStore, "brokerId", broker,
                "localData", new BrokerLoadData());
        for (Map.Entry<String, Object> each : fields.entrySet()) {
            Field field = BrokerLoadDataReporter.class.getDeclaredField(each.getKey());
            field.setAccessible(true);
            field.set(made, each.getValue());
        }
        return made;
    }

    private PulsarService pulsar() throws Exception {
        StubPulsar made = unconstructed(StubPulsar.class);
        made.conf = conf;
        return made;
    }

    private LoadManagerContext context() {
        // TransferShedder asks which brokers there are, and nothing about them.
        BrokerLookupData alive = null;
        Map<String, BrokerLookupData> available = new HashMap<>();
        reporters.keySet().forEach(name -> available.put(name, alive));
        BrokerRegistry registry = proxy(BrokerRegistry.class,
                (method, given) -> CompletableFuture.completedFuture(available));
        return proxy(LoadManagerContext.class, (method, given) -> switch (method) {
            case "brokerConfiguration" -> conf;
            case "brokerLoadDataStore" -> reportStore;
            case "topBundleLoadDataStore" -> topStore;
            default -> registry;
        });
    }

    private static <T> LoadDataStore<T> store(Map<String, T> held) {
        return proxy(LoadDataStore.class, (method, given) -> {
            switch (method) {
                case "get": return Optional.ofNullable(held.get(given[0]));
                case "entrySet": return held.entrySet();
                case "removeAsync": held.remove(given[0]); return CompletableFuture.completedFuture(null);
                default: throw new UnsupportedOperationException(method);
            }
        });
    }

    private interface Answers {
        Object to(String method, Object[] given);
    }

    private static <T> T proxy(Class<?> type, Answers answers) {
        return (T) Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type},
                (self, method, given) -> answers.to(method.getName(), given));
    }

    private static <T> T unconstructed(Class<T> type) throws Exception {
        Field field = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        return type.cast(((sun.misc.Unsafe) field.get(null)).allocateInstance(type));
    }

    private static final class StubPulsar extends PulsarService {
        private ServiceConfiguration conf;

        private StubPulsar() {
            super(null);
        }

        @Override
        public ServiceConfiguration getConfiguration() {
            return conf;
        }
    }
}

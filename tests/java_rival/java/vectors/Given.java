import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.LoadData;
import org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl;
import org.apache.pulsar.common.naming.NamespaceName;
import org.apache.pulsar.policies.data.loadbalancer.BrokerData;
import org.apache.pulsar.policies.data.loadbalancer.BundleData;
import org.apache.pulsar.policies.data.loadbalancer.LocalBrokerData;
import org.apache.pulsar.policies.data.loadbalancer.NamespaceBundleStats;
import org.apache.pulsar.policies.data.loadbalancer.ResourceUsage;
import org.apache.pulsar.policies.data.loadbalancer.SystemResourceUsage;
import org.apache.pulsar.policies.data.loadbalancer.TimeAverageMessageData;

/** Reads what cases hold into Pulsar's data classes. */
final class Given {
    static final NamespaceName NAMESPACE = NamespaceName.get("public/default");

    private Given() {
    }

    /** A cluster without policies. */
    static Cluster cluster(JsonNode config) throws Exception {
        return new Cluster(config, JsonNodeFactory.instance.objectNode());
    }

    /** A cluster with isolation policies and anti-affinity groups; either may be null. */
    static Cluster cluster(JsonNode config, JsonNode isolation, JsonNode antiAffinity) throws Exception {
        ObjectNode input = JsonNodeFactory.instance.objectNode();
        input.set("isolation", isolation);
        input.set("anti_affinity", antiAffinity);
        return new Cluster(config, input);
    }

    static ServiceConfiguration conf(JsonNode config) throws Exception {
        return cluster(config).conf;
    }

    /** A number, which may be spelt "NaN", "Infinity" or "-Infinity". */
    static double number(JsonNode node) {
        return node.isTextual() ? Double.parseDouble(node.asText()) : node.asDouble();
    }

    static double[] numbers(JsonNode list) {
        double[] found = new double[list.size()];
        for (int i = 0; i < found.length; i++) {
            found[i] = number(list.get(i));
        }
        return found;
    }

    static List<String> texts(JsonNode list) {
        List<String> found = new ArrayList<>();
        list.forEach(one -> found.add(one.asText()));
        return found;
    }

    /** In the order given. */
    static Set<String> set(JsonNode list) {
        return new LinkedHashSet<>(texts(list));
    }

    static Iterable<Map.Entry<String, JsonNode>> entries(JsonNode object) {
        return object::fields;
    }

    /** Usage and limit; a resource that is not there has neither. */
    static ResourceUsage usage(JsonNode pair) {
        return pair == null || pair.isMissingNode() ? new ResourceUsage()
                : new ResourceUsage(number(pair.get(0)), number(pair.get(1)));
    }

    /** Usages by their names. */
    static SystemResourceUsage usages(JsonNode node) {
        SystemResourceUsage usage = new SystemResourceUsage();
        usage.setCpu(usage(node.path("cpu")));
        usage.setMemory(usage(node.path("memory")));
        usage.setDirectMemory(usage(node.path("directMemory")));
        usage.setBandwidthIn(usage(node.path("bandwidthIn")));
        usage.setBandwidthOut(usage(node.path("bandwidthOut")));
        return usage;
    }

    /** A broker's usages, and its load where it has one. */
    static LocalBrokerData report(JsonNode node) {
        SystemResourceUsage usage = usages(node);
        LocalBrokerData report = new LocalBrokerData();
        report.setCpu(usage.cpu);
        report.setMemory(usage.memory);
        report.setDirectMemory(usage.directMemory);
        report.setBandwidthIn(usage.bandwidthIn);
        report.setBandwidthOut(usage.bandwidthOut);
        if (node.has("load")) {
            double[] load = numbers(node.get("load"));
            report.setMsgRateIn(load[0]);
            report.setMsgRateOut(load[1]);
            report.setMsgThroughputIn(load[2]);
            report.setMsgThroughputOut(load[3]);
        }
        return report;
    }

    /** Load, then topics, producers and consumers where they are given, then the size of the cache. */
    static NamespaceBundleStats stats(JsonNode list) {
        double[] numbers = numbers(list);
        NamespaceBundleStats stats = new NamespaceBundleStats();
        stats.msgRateIn = numbers[0];
        stats.msgRateOut = numbers[1];
        stats.msgThroughputIn = numbers[2];
        stats.msgThroughputOut = numbers[3];
        if (numbers.length > 4) {
            stats.topics = (long) numbers[4];
            stats.producerCount = (int) numbers[5];
            stats.consumerCount = (int) numbers[6];
        }
        if (numbers.length > 7) {
            stats.cacheSize = (long) numbers[7];
        }
        return stats;
    }

    /** What a bundle counts for that nothing is known of, as ModularLoadManagerImpl.initialize sets it. */
    static NamespaceBundleStats defaults(NamespaceBundleStats stats) {
        stats.msgRateIn = ModularLoadManagerImpl.DEFAULT_MESSAGE_RATE;
        stats.msgRateOut = ModularLoadManagerImpl.DEFAULT_MESSAGE_RATE;
        stats.msgThroughputIn = ModularLoadManagerImpl.DEFAULT_MESSAGE_THROUGHPUT;
        stats.msgThroughputOut = ModularLoadManagerImpl.DEFAULT_MESSAGE_THROUGHPUT;
        return stats;
    }

    static void average(TimeAverageMessageData data, double[] load) {
        data.setMsgRateIn(load[0]);
        data.setMsgRateOut(load[1]);
        data.setMsgThroughputIn(load[2]);
        data.setMsgThroughputOut(load[3]);
    }

    /** A bundle with these averages; either may be null. */
    static BundleData bundle(double[] shortTerm, double[] longTerm) {
        BundleData bundle = new BundleData(10, 1000);
        if (shortTerm != null) {
            average(bundle.getShortTermData(), shortTerm);
        }
        if (longTerm != null) {
            average(bundle.getLongTermData(), longTerm);
        }
        return bundle;
    }

    /** What a shedder is given: brokers, bundles by short-term averages with an owner's index, and recent unloads. */
    static LoadData loadData(JsonNode input) {
        LoadData data = new LoadData();
        List<LocalBrokerData> reports = new ArrayList<>();
        for (JsonNode one : input.get("brokers")) {
            LocalBrokerData report = report(one);
            reports.add(report);
            data.getBrokerData().put(one.get("name").asText(), new BrokerData(report));
        }
        for (Map.Entry<String, JsonNode> one : entries(input.get("bundles"))) {
            double[] numbers = numbers(one.getValue());
            data.getBundleData().put(one.getKey(), bundle(numbers, null));
            if (numbers[4] >= 0) {
                reports.get((int) numbers[4]).getBundles().add(one.getKey());
            }
        }
        long now = System.currentTimeMillis();
        input.get("recently_unloaded").forEach(one -> data.getRecentlyUnloadedBundles().put(one.asText(), now));
        return data;
    }
}

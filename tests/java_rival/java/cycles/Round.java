import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.pulsar.policies.data.loadbalancer.NamespaceBundleStats;
import org.apache.pulsar.policies.data.loadbalancer.ResourceUsage;

/** The brokers and bundles of one round. */
final class Round {
    /** Milliseconds. */
    final long time;
    /** Brokers with load data, by name. */
    final Map<String, Broker> brokers = new TreeMap<>();
    /** Brokers without load data. */
    final List<String> missing = new ArrayList<>();
    /** The bundles of brokers with load data, by name. */
    final Map<String, Bundle> bundles = new TreeMap<>();

    static final class Broker {
        ResourceUsage cpu;
        ResourceUsage memory;
        ResourceUsage directMemory;
        ResourceUsage bandwidthIn;
        ResourceUsage bandwidthOut;
        /** Messages a second in and out, bytes a second in and out. */
        double[] load;
        int topics;
        final Map<String, Bundle> bundles = new TreeMap<>();
    }

    static final class Bundle {
        String owner;
        double[] shortTerm;
        double[] longTerm;
        int topics;
        int producers;
        int consumers;

        NamespaceBundleStats stats() {
            NamespaceBundleStats stats = new NamespaceBundleStats();
            stats.msgRateIn = shortTerm[0];
            stats.msgRateOut = shortTerm[1];
            stats.msgThroughputIn = shortTerm[2];
            stats.msgThroughputOut = shortTerm[3];
            stats.topics = topics;
            stats.producerCount = producers;
            stats.consumerCount = consumers;
            return stats;
        }
    }

    Round(JsonNode given) {
        time = given.get("t").asLong();
        given.path("missing").forEach(name -> missing.add(name.asText()));
        for (JsonNode one : given.get("brokers")) {
            Broker broker = new Broker();
            broker.cpu = usage(one.get("cpu"));
            broker.memory = usage(one.get("memory"));
            broker.directMemory = usage(one.get("directMemory"));
            broker.bandwidthIn = usage(one.get("bandwidthIn"));
            broker.bandwidthOut = usage(one.get("bandwidthOut"));
            broker.load = numbers(one.get("load"));
            broker.topics = one.get("topics").asInt();
            brokers.put(one.get("name").asText(), broker);
        }
        given.get("bundles").fields().forEachRemaining(entry -> {
            JsonNode one = entry.getValue();
            Bundle bundle = new Bundle();
            bundle.owner = one.get("owner").asText();
            bundle.shortTerm = numbers(one.get("st"));
            bundle.longTerm = numbers(one.get("lt"));
            bundle.topics = one.get("topics").asInt();
            bundle.producers = one.get("producers").asInt();
            bundle.consumers = one.get("consumers").asInt();
            bundles.put(entry.getKey(), bundle);
            brokers.get(bundle.owner).bundles.put(entry.getKey(), bundle);
        });
    }

    /** All brokers that are alive, with and without load data. */
    List<String> alive() {
        TreeSet<String> names = new TreeSet<>(brokers.keySet());
        names.addAll(missing);
        return new ArrayList<>(names);
    }

    /** The owner of each bundle, by the bundle's name. */
    Map<String, String> owners() {
        Map<String, String> owners = new LinkedHashMap<>();
        bundles.forEach((name, bundle) -> owners.put(name, bundle.owner));
        return owners;
    }

    private static ResourceUsage usage(JsonNode pair) {
        return new ResourceUsage(pair.get(0).asDouble(), pair.get(1).asDouble());
    }

    private static double[] numbers(JsonNode list) {
        double[] found = new double[list.size()];
        for (int i = 0; i < found.length; i++) {
            found[i] = list.get(i).asDouble();
        }
        return found;
    }
}

import com.fasterxml.jackson.databind.JsonNode;
import com.google.common.hash.HashFunction;
import com.google.common.hash.Hashing;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.pulsar.common.naming.ConsistentHashingTopicBundleAssigner;
import org.apache.pulsar.common.naming.NamespaceBundle;
import org.apache.pulsar.common.naming.NamespaceBundleFactory;
import org.apache.pulsar.common.naming.NamespaceBundles;
import org.apache.pulsar.common.naming.TopicName;
import org.apache.pulsar.common.policies.data.PoliciesUtil;

/** Names of topics, their hashes, and the bundles that hold them. */
final class Topics {
    private static final int SOME_PARTITION = 5;

    private Topics() {
    }

    @SuppressWarnings("deprecation")
    static Object hashes(JsonNode config, JsonNode input) {
        int count = config.get("num_bundles").asInt();
        NamespaceBundleFactory factory = Splits.factory(Splits.edges(count));
        Reflected.set(factory, "topicBundleAssignmentStrategy", new ConsistentHashingTopicBundleAssigner());
        Map<String, HashFunction> functions = Map.of("crc32", Hashing.crc32(), "crc32c", Hashing.crc32c(),
                "murmur3_32", Hashing.murmur3_32(), "murmur3_32_fixed", Hashing.murmur3_32_fixed(),
                "adler32", Hashing.adler32(), "sha256", Hashing.sha256());
        List<Object> topics = new ArrayList<>();
        for (JsonNode one : input.get("topics")) {
            Map<String, Object> topic = new TreeMap<>();
            functions.forEach((name, function) -> {
                Reflected.set(factory, "hashFunc", function);
                topic.put(name, factory.getLongHashCode(one.asText()));
            });
            // Anew for each topic: a bundle remembers that it holds a non-persistent one.
            NamespaceBundle bundle =
                    Splits.bundles(factory, Splits.edges(count)).findBundle(TopicName.get(one.asText()));
            topic.put("bundle", bundle.getBundleRange());
            topic.put("bundle_name", bundle.toString());
            topic.put("has_non_persistent_flag", bundle.hasNonPersistentTopic());
            topics.add(topic);
        }
        return Map.of("boundaries", PoliciesUtil.getBundles(count).getBoundaries(), "topics", topics);
    }

    static Object lookups(JsonNode config, JsonNode input) throws Exception {
        long[] edges = Given.texts(input.get("boundaries")).stream().mapToLong(Long::decode).toArray();
        NamespaceBundleFactory factory = Splits.factory(edges);
        NamespaceBundles bundles = Splits.bundles(factory, edges);
        Method getBundle = NamespaceBundles.class.getDeclaredMethod("getBundle", long.class);
        getBundle.setAccessible(true);
        List<String> found = new ArrayList<>();
        for (JsonNode hash : input.get("hashes")) {
            try {
                found.add(((NamespaceBundle) getBundle.invoke(bundles, hash.asLong())).getBundleRange());
            } catch (InvocationTargetException error) {
                found.add("error:" + error.getCause().getClass().getSimpleName());
            }
        }
        List<String> names = new ArrayList<>();
        List<Boolean> canSplit = new ArrayList<>();
        for (NamespaceBundle one : bundles.getBundles()) {
            names.add(one.toString());
            canSplit.add(factory.canSplitBundle(one));
        }
        return Map.of("bundles", found, "bundle_names", names, "can_split", canSplit);
    }

    static Object names(JsonNode config, JsonNode input) throws Exception {
        TopicName name;
        try {
            name = TopicName.get(input.get("topic").asText());
        } catch (RuntimeException error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            return Map.of("error", cause.getClass().getSimpleName());
        }
        Map<String, Object> parts = new HashMap<>();
        parts.put("name", name.toString());
        parts.put("domain", name.getDomain().toString());
        parts.put("tenant", name.getTenant());
        parts.put("namespace", name.getNamespace());
        parts.put("cluster", until5(name, "getCluster", null));
        parts.put("local_name", name.getLocalName());
        parts.put("partition_index", name.getPartitionIndex());
        parts.put("is_partitioned", name.isPartitioned());
        parts.put("partitioned_topic_name", name.getPartitionedTopicName());
        parts.put("partition_5", name.getPartition(SOME_PARTITION).toString());
        parts.put("is_v2", until5(name, "isV2", true));
        parts.put("crc32", Hashing.crc32().hashString(name.toString(), StandardCharsets.UTF_8).padToLong());
        return parts;
    }

    /** What a method of TopicName answers that 5.0 no longer has: there every name is of the second form. */
    private static Object until5(TopicName name, String method, Object since5) throws Exception {
        Method found = Reflected.method(TopicName.class, method);
        return found == null ? since5 : found.invoke(name);
    }
}

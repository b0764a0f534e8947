import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.Map;

/** One of Pulsar's classes, which is asked about the input of a case of tests/vectors. */
interface Component {
    /** What the class answers, in the form of "expected". */
    Object answer(JsonNode config, JsonNode input) throws Exception;

    /** The components by the names of their files in tests/vectors. */
    static Map<String, Component> all() {
        Map<String, Component> all = new HashMap<>();
        all.put("overload_shedder", Shedders::overload);
        all.put("threshold_shedder", Shedders::threshold);
        all.put("uniform_load_shedder", Shedders::uniform);
        all.put("avg_shedder", Shedders::avg);
        all.put("ext_transfer_shedder", Transfers::rounds);
        all.put("round_robin_selector", Placements::roundRobin);
        all.put("least_long_term_message_rate", Placements::leastLongTermMessageRate);
        all.put("least_resource_usage_with_weight", Placements::leastResourceUsage);
        all.put("ext_least_resource_usage_with_weight", Placements::extLeastResourceUsage);
        all.put("modular_select_broker", (config, input) -> new Assignments(config, input).all());
        all.put("anti_affinity_filter", Filters::antiAffinity);
        all.put("apply_namespace_policies", Filters::namespacePolicies);
        all.put("namespace_isolation_policy", Filters::isolationPolicy);
        all.put("filter_large_topic_count", Filters::largeTopicCount);
        all.put("time_average", Loads::timeAverage);
        all.put("time_average_broker_reset", Loads::brokerAverage);
        all.put("resource_usage", Loads::resourceUsage);
        all.put("local_broker_data_update", Loads::localData);
        all.put("report_needs_update", Loads::needsUpdate);
        all.put("modular_update_bundle_data", Loads::bundleData);
        all.put("bundle_stats_compare", Loads::order);
        all.put("ext_broker_load_data", Loads::brokerLoad);
        all.put("ext_top_k_bundles", Loads::topBundles);
        all.put("bundle_splitter_task", Splits::splitterTask);
        all.put("ext_bundle_split_strategy", Splits::strategy);
        all.put("bundle_split_algorithms", Splits::algorithms);
        all.put("bundle_split_numbers", Splits::equalParts);
        all.put("topic_hash", Topics::hashes);
        all.put("bundle_lookup", Topics::lookups);
        all.put("topic_names", Topics::names);
        return all;
    }
}

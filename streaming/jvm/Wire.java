package trimtab;

/** What records have in common with controller.wire; python -m streaming.jvm.wire_java writes this file. */
final class Wire {
    static final int TICK = 0;
    static final int SWEEP = 1;
    static final int BUNDLE = 2;
    static final int TOPIC = 3;
    static final int REPORT = 4;
    static final int REPORT_BUNDLE = 5;
    static final int FACT = 6;
    static final int REFUSED = 7;
    static final int RESULTS = 1;
    static final int LOAD = 8;
    static final int TOPICS = 6;
    static final int KINDS = 7;
    static final int PERSISTENT = 1;
    static final int NON_PERSISTENT = 2;
    static final int UNLISTED = 4;
    static final int SEGMENTS = 8;
    static final int MAX_PARTITIONS = 10000;
    static final int MAX_BROKERS = 10000;
    static final int LONGEST_NAME = 1024;
    static final int MOST_DIGITS = 1000;
    static final long MAX_COUNT = 1000000000000L;
    static final double MAX_RATE = 1000000000000.0;
    static final double MAX_QUANTITY = 1000000000000000.0;
    static final String ADDRESS = "\\A[A-Za-z][A-Za-z0-9+.-]*://([^/?#]+)";
    static final String[] RATES = {"msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut"};
    static final String[] COUNTS = {"producerCount", "consumerCount"};
    static final String[] RESOURCES = {"cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut"};
    static final String[] PLAIN = {
        "broker", "bundle", "chunk", "chunks", "cluster", "consumerCount", "interval", "lastUpdate", "limit",
        "metrics", "msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut", "nonPersistentTopicsEnabled",
        "numBundles", "numConsumers", "numProducers", "numTopics", "persistentTopicsEnabled", "producerCount",
        "results", "sweepId", "topic", "type", "usage", "v", "version", "webServiceUrl", "webServiceUrlTls"
    };
    static final String[] OBJECTS = {
        "bandwidthIn", "bandwidthOut", "cpu", "directMemory", "memory", "partitions", "report"
    };

    private Wire() {
    }
}

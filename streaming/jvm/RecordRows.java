package trimtab;

import java.io.Serializable;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.unsafe.Platform;

/**
 * The rows of a record of the metrics or the result topic: see streaming.schemas.ROW.
 *
 * A row is for one shard and may hold many bundles: their names, one on each line (a name has no line breaks, see
 * Names), and their numbers packed one bundle after another, little-endian.  A record is checked as in controller.wire,
 * which reads facts and ticks itself.  A record that raises anything is refused: no record ends the query.
 */
public final class RecordRows implements Serializable {
    private static final long serialVersionUID = 1L;
    /** The seed of Spark's own xxhash64. */
    private static final long SEED = 42;
    private static final String[] NUMBERS = {"numTopics", "numBundles", "numProducers", "numConsumers"};
    private static final Set<String> STATES = Set.of("namespace_state", "broker_state", "bundle_data");
    /** Types that pass as text. */
    private static final Set<String> READ_LATER =
        Set.of("tick", "result", "namespace_state", "broker_state", "bundle_data");
    private static final Pattern ADDRESS = Pattern.compile(Wire.ADDRESS);

    final int shards;
    private final String cluster;
    private final long period;
    private final int maxBytes;
    private final double[] limits;
    /** What names of bundles are hashed with, which deals them to shards. */
    private final long seed;

    /** The last four: from where on a bundle's topics are kept one by one, see Bundle.isNear. */
    public RecordRows(
        String cluster, long period, int shards, int maxBytes,
        double topics, double sessions, double msgRate, double throughput
    ) {
        this.cluster = cluster;
        this.period = period;
        this.shards = shards;
        this.maxBytes = maxBytes;
        this.limits = new double[] {topics, sessions, msgRate, throughput};
        this.seed = hash(cluster.getBytes(StandardCharsets.UTF_8), SEED);
    }

    /** What a record holds. */
    static final class Found {
        /** Whether controller.wire reads it: a refused record, a fact or a tick. */
        final boolean isSuspect;
        final boolean isRefused;
        final List<Row> rows;
        /** The topic of a topic_stats record, which has no row of its own; null for other records. */
        final TopicRows.Topic topic;

        private Found(boolean isSuspect, boolean isRefused, List<Row> rows, TopicRows.Topic topic) {
            this.isSuspect = isSuspect;
            this.isRefused = isRefused;
            this.rows = rows;
            this.topic = topic;
        }
    }

    /** Reads a record.  *appended*: when the log got it, epoch ms. */
    Found read(byte[] value, int source, long appended) {
        try {
            return this.tryToRead(value, source == Wire.RESULTS, appended);
        } catch (Fields.Refused | RuntimeException | OutOfMemoryError | StackOverflowError flawed) {
            return refused(); // whatever a record leads a library to
        }
    }

    private Found tryToRead(byte[] value, boolean isResults, long appended) throws Fields.Refused {
        if (value.length > this.maxBytes) {
            throw new Fields.Refused();
        }
        boolean isArrow = !isResults && ArrowSweep.begins(value);
        ArrowSweep arrow = isArrow ? new ArrowSweep(value, this.cluster, this.limits) : null;
        Fields record = arrow == null ? Fields.of(value, this.limits) : arrow.header;
        // A LocalBrokerData as brokers write it has no type.
        boolean bare = arrow == null && !record.has("type") && record.has("lastStats");
        String type = bare ? "broker_load" : record.textOrNull("type");
        String named = record.textOrNull("cluster");
        if (!bare && named != null && !named.equals(this.cluster)) {
            return new Found(false, false, List.of(), null);
        }
        if (!bare && (named == null || record.count("v") != 1)) {
            throw new Fields.Refused();
        }
        long latest = appended > Long.MAX_VALUE - this.period ? Long.MAX_VALUE : appended + this.period;
        Rows rows = new Rows(latest);
        rows.add(record, arrow, type, bare, isResults);
        return new Found(READ_LATER.contains(type), false, rows.found, rows.topic);
    }

    private static long hash(byte[] value, long seed) {
        return XXH64.hashUnsafeBytes(value, Platform.BYTE_ARRAY_OFFSET, value.length, seed);
    }

    /** One row, which says so and no more: where the record lies stands beside it. */
    private static Found refused() {
        Row row = row(0, Wire.REFUSED, -1, "", "", 0, 0, 0, "", null, null, null, null, null, null, null);
        return new Found(true, true, List.of(row), null);
    }

    /** The row of *topics*. */
    static Row row(TopicRows.Topics topics) {
        return row(
            topics.shard, Wire.TOPIC, -1, topics.brokers(), "", 0, 0, 0,
            topics.bundles(), topics.stats(), topics.topics(), null, null, null, null, null
        );
    }

    private static Row row(
        int shard, int kind, long interval, String broker, String sweep, long chunk, long chunks, long lastUpdate,
        String bundles, byte[] stats, byte[] topics, byte[] own,
        byte[] sizes, byte[] positions, byte[] rates, byte[] segments
    ) {
        return RowFactory.create(
            shard, kind, interval, broker, sweep, chunk, chunks, lastUpdate,
            bundles, stats, topics, own, sizes, positions, rates, segments
        );
    }

    /** The rows of one record, and what they have in common. */
    private final class Rows {
        final List<Row> found = new ArrayList<>();
        TopicRows.Topic topic;
        /** The latest time that a record may name: its append time and one period. */
        private final long latest;
        private long interval = -1, chunk, chunks, lastUpdate;
        private String broker = "", sweep = "";

        Rows(long latest) {
            this.latest = latest;
        }

        void add(Fields record, ArrowSweep arrow, String type, boolean bare, boolean isResults) throws Fields.Refused {
            if (type == null || arrow != null && !type.equals("broker_sweep")) {
                throw new Fields.Refused();
            } else if (type.equals("tick")) {
                this.addTick(record);
            } else if (isResults) {
                if (!type.equals("result")) {
                    throw new Fields.Refused();
                }
                this.add(0, Wire.FACT);
            } else if (type.equals("broker_sweep")) {
                this.interval = this.interval(record);
                this.addSweep(record, arrow == null ? record.bundles("bundleStats") : arrow.bundles());
            } else if (type.equals("broker_load")) {
                this.addReport(record, bare);
            } else if (type.equals("topic_stats")) {
                this.addTopic(record);
            } else if (STATES.contains(type)) {
                if (!type.equals("bundle_data")) {
                    record.count("version", 0, this.latest);
                }
                String bundle = type.equals("bundle_data") ? record.textOrNull("bundle") : null;
                this.add(bundle == null ? 0 : this.shardOf(bundle), Wire.FACT);
            } else {
                throw new Fields.Refused();
            }
        }

        private void addTick(Fields record) throws Fields.Refused {
            this.interval = this.interval(record);
            Fields partitions = record.object("partitions");
            partitions.count("metrics", 1, Wire.MAX_PARTITIONS);
            partitions.count("results", 0, Wire.MAX_PARTITIONS);
            if (record.has("roster")) {
                record.count("roster", 0, Wire.MAX_BROKERS); // how many it lists
            }
            this.addToAll(Wire.TICK, null);
        }

        private void addSweep(Fields record, List<? extends Bundle> bundles) throws Fields.Refused {
            this.broker = record.name("broker");
            this.sweep = record.name("sweepId");
            this.chunk = record.count("chunk");
            this.chunks = record.count("chunks");
            Set<String> names = new HashSet<>();
            for (Bundle bundle : bundles) {
                names.add(bundle.name);
            }
            if (this.chunk >= this.chunks || names.size() != bundles.size()) {
                throw new Fields.Refused();
            }
            byte[] own = this.own(record, false);
            this.add(0, Wire.SWEEP, own);
            this.addBundles(Wire.BUNDLE, bundles);
        }

        private void addReport(Fields record, boolean bare) throws Fields.Refused {
            Fields report = bare ? record : record.object("report");
            String address = report.textOrNull("webServiceUrl");
            String secure = report.textOrNull("webServiceUrlTls");
            Matcher host = ADDRESS.matcher(address == null || address.isEmpty() ? secure == null ? "" : secure : address);
            if (!host.find() || !Names.isName(host.group(1))) {
                throw new Fields.Refused();
            }
            this.broker = !bare && record.has("broker") ? record.name("broker") : host.group(1);
            byte[] own = this.own(report, true);
            List<? extends Bundle> bundles = report.bundles("lastStats");
            this.addToAll(Wire.REPORT, own);
            this.addBundles(Wire.REPORT_BUNDLE, bundles);
        }

        private void addTopic(Fields record) throws Fields.Refused {
            this.broker = record.name("broker");
            String bundle = record.text("bundle");
            String name = record.text("topic");
            byte[] topic = name.getBytes(StandardCharsets.UTF_8);
            if (!Bundle.isBundle(bundle)) {
                throw new Fields.Refused();
            }
            long[] load = new long[Wire.LOAD];
            for (int i = 0; i < Wire.RATES.length; i++) {
                load[i] = Bundle.thousandths(record.number(Wire.RATES[i], 0, Wire.MAX_RATE));
            }
            load[Wire.RATES.length] = record.count(Wire.COUNTS[0], 0, Wire.MAX_COUNT);
            load[Wire.RATES.length + 1] = record.count(Wire.COUNTS[1], 0, Wire.MAX_COUNT);
            load[Wire.TOPICS] = 1;
            load[Wire.KINDS] = Bundle.kind(topic, 0, topic.length);
            long position = Bundle.position(topic, 0, topic.length);
            this.topic = new TopicRows.Topic(
                this.shardOf(bundle), this.broker, bundle, load, hash(topic, SEED), position, Bundle.segment(name)
            );
        }

        /** One row for each shard that has any of *bundles*. */
        private void addBundles(int kind, List<? extends Bundle> bundles) {
            Map<Integer, List<Bundle>> parts = new TreeMap<>();
            for (Bundle bundle : bundles) {
                parts.computeIfAbsent(this.shardOf(bundle.name), shard -> new ArrayList<>()).add(bundle);
            }
            parts.forEach((shard, part) -> this.addPart(shard, kind, part));
        }

        private void addPart(int shard, int kind, List<Bundle> bundles) {
            int size = bundles.size(), kept = 0;
            StringBuilder names = new StringBuilder();
            ByteBuffer stats = packed(size * Wire.LOAD), sizes = packed(size);
            for (Bundle bundle : bundles) {
                names.append(names.length() == 0 ? "" : "\n").append(bundle.name);
                bundle.putLoad(stats);
                sizes.putLong(bundle.kept());
                kept += bundle.kept();
            }
            if (kept == 0) {
                this.add(shard, kind, names.toString(), stats.array(), null, null, null, null, null);
                return;
            }
            ByteBuffer positions = packed(kept), rates = packed(kept * Wire.RATES.length), segments = packed(kept);
            for (Bundle bundle : bundles) {
                bundle.putTopics(positions, rates, segments);
            }
            this.add(
                shard, kind, names.toString(), stats.array(),
                null, sizes.array(), positions.array(), rates.array(), segments.array()
            );
        }

        private void addToAll(int kind, byte[] own) {
            for (int shard = 0; shard < RecordRows.this.shards; shard++) {
                this.add(shard, kind, own);
            }
        }

        private void add(int shard, int kind) {
            this.add(shard, kind, null);
        }

        private void add(int shard, int kind, byte[] own) {
            this.add(shard, kind, "", null, own, null, null, null, null);
        }

        private void add(
            int shard, int kind, String bundles, byte[] stats,
            byte[] own, byte[] sizes, byte[] positions, byte[] rates, byte[] segments
        ) {
            this.found.add(
                row(
                    shard, kind, this.interval, this.broker, this.sweep, this.chunk, this.chunks, this.lastUpdate,
                    bundles, stats, null, own, sizes, positions, rates, segments
                )
            );
        }

        /** What a broker says of itself, in the order of controller.aggregate.columns.rows.NUMBERS. */
        private byte[] own(Fields said, boolean isReport) throws Fields.Refused {
            ByteBuffer own = packed(2 * Wire.RESOURCES.length + Wire.RATES.length + 3);
            for (int i = 0; i < Wire.RESOURCES.length; i++) {
                Fields resource = said.object(Wire.RESOURCES[i]);
                double limit = resource.number("limit", isReport ? -Wire.MAX_QUANTITY : 0, Wire.MAX_QUANTITY);
                own.putDouble(isReport ? reportedUsage(resource, limit) : resource.number("usage", 0, Wire.MAX_QUANTITY));
                own.putDouble(limit);
            }
            for (int i = 0; i < Wire.RATES.length; i++) {
                own.putDouble(said.number(Wire.RATES[i], 0, Wire.MAX_RATE));
            }
            for (int i = 0; i < NUMBERS.length; i++) {
                long count = said.count(NUMBERS[i], 0, Wire.MAX_COUNT);
                if (i < 2) {
                    own.putDouble(count);
                }
            }
            int persistentOff = isReport && said.isFalse("persistentTopicsEnabled") ? Wire.PERSISTENT : 0;
            int otherOff = isReport && said.isFalse("nonPersistentTopicsEnabled") ? Wire.NON_PERSISTENT : 0;
            own.putDouble(persistentOff | otherOff);
            // A time in the future is not believed: such a claim wins against no other.
            this.lastUpdate = said.count("lastUpdate");
            this.lastUpdate = this.lastUpdate > this.latest ? 0 : this.lastUpdate;
            return own.array();
        }

        /** A usage as a broker writes it: see controller.wire.sweep.ReportedUsage. */
        private static double reportedUsage(Fields resource, double limit) throws Fields.Refused {
            if (limit <= 0 && resource.isNaN("usage")) {
                return 0;
            }
            double usage = resource.number("usage", -Wire.MAX_QUANTITY, Wire.MAX_QUANTITY);
            return usage > 0 ? usage : 0;
        }

        private int shardOf(String bundle) {
            byte[] name = bundle.getBytes(StandardCharsets.UTF_8);
            return Math.floorMod(hash(name, RecordRows.this.seed), RecordRows.this.shards);
        }

        private long interval(Fields record) throws Fields.Refused {
            long interval = record.count("interval", 0, this.latest);
            if (interval % RecordRows.this.period != 0) {
                throw new Fields.Refused();
            }
            return interval;
        }

        private static ByteBuffer packed(int numbers) {
            return ByteBuffer.allocate(8 * numbers).order(ByteOrder.LITTLE_ENDIAN);
        }
    }
}

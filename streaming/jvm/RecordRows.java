package trimtab;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.api.java.UDF10;
import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.unsafe.Platform;

/**
 * The rows of a record of the metrics or the result topic: see streaming.schemas.RECORD_ROWS.
 *
 * A row is for one shard and may hold many bundles: their names, one on each line (a name has no line breaks, see
 * Names), and their numbers packed one bundle after another, little-endian.  A record is checked as in controller.wire,
 * which reads facts and ticks itself.  A record that raises anything is refused: no record ends the query.
 */
public final class RecordRows implements UDF10 {
    /** As controller.aggregate.rows has them. */
    private static final int TICK = 0, SWEEP = 1, BUNDLE = 2, TOPIC = 3, REPORT = 4, REPORT_BUNDLE = 5, FACT = 6, REFUSED = 7;
    private static final int RESULTS = 1;
    private static final double MAX_QUANTITY = 1e15;
    /** As controller.wire.metrics has them. */
    private static final long MAX_PARTITIONS = 10000, MAX_BROKERS = 10000;
    /** The seed of Spark's own xxhash64. */
    private static final long SEED = 42;
    private static final String[] RESOURCES = {"cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut"};
    private static final String[] NUMBERS = {"numTopics", "numBundles", "numProducers", "numConsumers"};
    private static final Set STATES = new HashSet(
        Arrays.asList(new Object[] {"namespace_state", "broker_state", "bundle_data"})
    );
    /** Types that pass as text. */
    private static final Set READ_LATER = new HashSet(Arrays.asList(new Object[] {"tick", "result"}));
    private static final Pattern ADDRESS = Pattern.compile("\\A[A-Za-z][A-Za-z0-9+.-]*://([^/?#]+)");
    private static final Object[] NO_ROWS = {};

    static {
        READ_LATER.addAll(STATES);
    }

    /** {suspect, refused, rows}. */
    public Object call(
        Object value, Object source, Object appended, Object cluster, Object period, Object shards,
        Object topics, Object sessions, Object msgRate, Object throughput
    ) {
        double[] limits = {number(topics), number(sessions), number(msgRate), number(throughput)};
        try {
            if (value == null) {
                throw new Fields.Refused();
            }
            byte[] bytes = (byte[]) value;
            boolean isResults = ((Number) source).intValue() == RESULTS;
            boolean isArrow = !isResults && ArrowSweep.begins(bytes);
            ArrowSweep arrow = isArrow ? new ArrowSweep(bytes, (String) cluster, limits) : null;
            Fields record = arrow == null ? Fields.of(bytes, limits) : arrow.header;
            // A LocalBrokerData as brokers write it has no type.
            boolean bare = arrow == null && !record.has("type") && record.has("lastStats");
            String type = bare ? "broker_load" : record.textOrNull("type");
            String named = record.textOrNull("cluster");
            if (!bare && named != null && !named.equals(cluster)) {
                return RowFactory.create(new Object[] {Boolean.FALSE, Boolean.FALSE, NO_ROWS});
            }
            if (!bare && (named == null || record.count("v") != 1)) {
                throw new Fields.Refused();
            }
            long millis = ((Number) period).longValue(), time = ((Number) appended).longValue();
            long latest = time > Long.MAX_VALUE - millis ? Long.MAX_VALUE : time + millis;
            Rows rows = new Rows((String) cluster, ((Number) shards).intValue(), millis, latest);
            rows.add(record, arrow, type, bare, isResults);
            Boolean suspect = Boolean.valueOf(READ_LATER.contains(type));
            return RowFactory.create(new Object[] {suspect, Boolean.FALSE, rows.found.toArray()});
        } catch (Fields.Refused refused) {
            return refused();
        } catch (RuntimeException spoilt) { // whatever a record leads a library to
            return refused();
        } catch (OutOfMemoryError tooMuch) {
            return refused();
        } catch (StackOverflowError tooDeep) {
            return refused();
        }
    }

    /** A row that says so and no more: where the record lies stands beside it. */
    private static Object refused() {
        Rows rows = new Rows("", 1, 1, 0);
        rows.add(0, REFUSED);
        return RowFactory.create(new Object[] {Boolean.TRUE, Boolean.TRUE, rows.found.toArray()});
    }

    private static double number(Object value) {
        return ((Number) value).doubleValue();
    }

    /** The rows of one record, and what they have in common. */
    private static final class Rows {
        final List found = new ArrayList();
        private final byte[] cluster;
        private final int shards;
        private final long period;
        /** The latest time that a record may name: its append time and one period. */
        private final long latest;
        private long interval = -1, chunk, chunks, lastUpdate;
        private String broker = "", sweep = "";

        Rows(String cluster, int shards, long period, long latest) {
            this.cluster = cluster.getBytes(StandardCharsets.UTF_8);
            this.shards = shards;
            this.period = period;
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
                this.add(0, FACT);
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
                this.add(bundle == null ? 0 : this.shardOf(bundle), FACT);
            } else {
                throw new Fields.Refused();
            }
        }

        private void addTick(Fields record) throws Fields.Refused {
            this.interval = this.interval(record);
            Fields partitions = record.object("partitions");
            partitions.count("metrics", 1, MAX_PARTITIONS);
            partitions.count("results", 0, MAX_PARTITIONS);
            if (record.has("roster")) {
                record.count("roster", 0, MAX_BROKERS); // how many it lists
            }
            this.addToAll(TICK, null);
        }

        private void addSweep(Fields record, List bundles) throws Fields.Refused {
            this.broker = record.name("broker");
            this.sweep = record.name("sweepId");
            this.chunk = record.count("chunk");
            this.chunks = record.count("chunks");
            Set names = new HashSet();
            for (int i = 0; i < bundles.size(); i++) {
                names.add(((Bundle) bundles.get(i)).name);
            }
            if (this.chunk >= this.chunks || names.size() != bundles.size()) {
                throw new Fields.Refused();
            }
            byte[] own = this.own(record, 0.0);
            this.add(0, SWEEP, own);
            this.addBundles(BUNDLE, bundles);
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
            byte[] own = this.own(report, -MAX_QUANTITY);
            List bundles = report.bundles("lastStats");
            this.addToAll(REPORT, own);
            this.addBundles(REPORT_BUNDLE, bundles);
        }

        private void addTopic(Fields record) throws Fields.Refused {
            this.broker = record.name("broker");
            String bundle = record.text("bundle");
            byte[] topic = record.text("topic").getBytes(StandardCharsets.UTF_8);
            if (!Bundle.isBundle(bundle)) {
                throw new Fields.Refused();
            }
            ByteBuffer stats = packed(Bundle.LOAD);
            for (int i = 0; i < Bundle.RATES.length; i++) {
                stats.putLong(Bundle.thousandths(record.number(Bundle.RATES[i], 0, Bundle.MAX_RATE)));
            }
            stats.putLong(record.count(Bundle.COUNTS[0], 0, Bundle.MAX_COUNT));
            stats.putLong(record.count(Bundle.COUNTS[1], 0, Bundle.MAX_COUNT)).putLong(1);
            record.count(Bundle.COUNTS[2]);
            record.count(Bundle.COUNTS[3]);
            this.add(
                this.shardOf(bundle), TOPIC, bundle, stats.array(),
                hash(topic, SEED), Bundle.position(topic, 0, topic.length), null, null, null, null
            );
        }

        /** One row for each shard that has any of *bundles*. */
        private void addBundles(int kind, List bundles) {
            List[] parts = new List[this.shards];
            for (int i = 0; i < bundles.size(); i++) {
                int shard = this.shardOf(((Bundle) bundles.get(i)).name);
                if (parts[shard] == null) {
                    parts[shard] = new ArrayList();
                }
                parts[shard].add(bundles.get(i));
            }
            for (int shard = 0; shard < parts.length; shard++) {
                if (parts[shard] != null) {
                    this.addPart(shard, kind, parts[shard]);
                }
            }
        }

        private void addPart(int shard, int kind, List bundles) {
            int size = bundles.size(), kept = 0;
            StringBuilder names = new StringBuilder();
            ByteBuffer stats = packed(size * Bundle.LOAD), sizes = packed(size);
            for (int i = 0; i < size; i++) {
                Bundle bundle = (Bundle) bundles.get(i);
                names.append(i == 0 ? "" : "\n").append(bundle.name);
                bundle.putLoad(stats);
                sizes.putLong(bundle.kept());
                kept += bundle.kept();
            }
            if (kept == 0) {
                this.add(shard, kind, names.toString(), stats.array(), 0, 0, null, null, null, null);
                return;
            }
            ByteBuffer positions = packed(kept), rates = packed(kept * Bundle.RATES.length);
            for (int i = 0; i < size; i++) {
                ((Bundle) bundles.get(i)).putTopics(positions, rates);
            }
            this.add(
                shard, kind, names.toString(), stats.array(), 0, 0,
                null, sizes.array(), positions.array(), rates.array()
            );
        }

        private void addToAll(int kind, byte[] own) {
            for (int shard = 0; shard < this.shards; shard++) {
                this.add(shard, kind, own);
            }
        }

        private void add(int shard, int kind) {
            this.add(shard, kind, null);
        }

        private void add(int shard, int kind, byte[] own) {
            this.add(shard, kind, "", null, 0, 0, own, null, null, null);
        }

        private void add(
            int shard, int kind, String bundles, byte[] stats, long topic, long position,
            byte[] own, byte[] sizes, byte[] positions, byte[] rates
        ) {
            this.found.add(
                RowFactory.create(
                    new Object[] {
                        Integer.valueOf(shard), Integer.valueOf(kind), Long.valueOf(this.interval), this.broker,
                        this.sweep, Long.valueOf(this.chunk), Long.valueOf(this.chunks), Long.valueOf(this.lastUpdate),
                        bundles, stats, Long.valueOf(topic), Long.valueOf(position), own, sizes, positions, rates
                    }
                )
            );
        }

        /** What a broker says of itself, in the order of controller.aggregate.rows.NUMBERS. */
        private byte[] own(Fields said, double leastLimit) throws Fields.Refused {
            ByteBuffer own = packed(2 * RESOURCES.length + Bundle.RATES.length + 2);
            for (int i = 0; i < RESOURCES.length; i++) {
                Fields resource = said.object(RESOURCES[i]);
                own.putDouble(resource.number("usage", 0, MAX_QUANTITY));
                own.putDouble(resource.number("limit", leastLimit, MAX_QUANTITY));
            }
            for (int i = 0; i < Bundle.RATES.length; i++) {
                own.putDouble(said.number(Bundle.RATES[i], 0, Bundle.MAX_RATE));
            }
            for (int i = 0; i < NUMBERS.length; i++) {
                long count = said.count(NUMBERS[i], 0, Bundle.MAX_COUNT);
                if (i < 2) {
                    own.putDouble(count);
                }
            }
            // A time in the future is not believed: such a claim wins against no other.
            this.lastUpdate = said.count("lastUpdate");
            this.lastUpdate = this.lastUpdate > this.latest ? 0 : this.lastUpdate;
            return own.array();
        }

        private int shardOf(String bundle) {
            byte[] name = bundle.getBytes(StandardCharsets.UTF_8);
            return (int) Math.floorMod(hash(name, hash(this.cluster, SEED)), (long) this.shards);
        }

        private long interval(Fields record) throws Fields.Refused {
            long interval = record.count("interval", 0, this.latest);
            if (interval % this.period != 0) {
                throw new Fields.Refused();
            }
            return interval;
        }

        private static long hash(byte[] value, long seed) {
            return XXH64.hashUnsafeBytes(value, (long) Platform.BYTE_ARRAY_OFFSET, value.length, seed);
        }

        private static ByteBuffer packed(int numbers) {
            return ByteBuffer.allocate(8 * numbers).order(ByteOrder.LITTLE_ENDIAN);
        }
    }
}

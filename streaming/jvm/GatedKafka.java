package trimtab;

import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Spark's own Kafka source with a Gate before it, and readers that bound what is unpacked.  All that happens in the driver
 * is Spark's, offsets in checkpoints included; only the question for the end of the log is answered with the offsets that
 * were read last while the gate is closed, and never goes back (KafkaEnds).  What is planned is read by KafkaPartitionReader.
 */
public final class GatedKafka implements TableProvider {
    /** The option that says to how many bytes a batch of records may unpack. */
    private static final String MOST = "maxBatchBytes";
    private static final int DEFAULT_MOST = 16 << 20;
    /** The option that says for how many milliseconds a leader may know less than was read, or planned. */
    private static final String PATIENCE = "patienceMs";
    private static final long DEFAULT_PATIENCE = 60_000;
    private static final String KAFKA = "org.apache.spark.sql.kafka010.KafkaSourceProvider";
    private final TableProvider kafka;

    public GatedKafka() throws Exception {
        // By name: this file is compiled without the connector's jar.
        ClassLoader loader = Thread.currentThread().getContextClassLoader();
        this.kafka = (TableProvider) Class.forName(KAFKA, true, loader).getDeclaredConstructor().newInstance();
    }

    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return this.kafka.inferSchema(options);
    }

    public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
        return new GatedTable((SupportsRead) this.kafka.getTable(schema, partitioning, properties));
    }

    private static final class GatedTable implements SupportsRead {
        private final SupportsRead table;

        GatedTable(SupportsRead table) {
            this.table = table;
        }

        public String name() {
            return this.table.name();
        }

        public StructType schema() {
            return this.table.schema();
        }

        public Column[] columns() {
            return this.table.columns();
        }

        public Set<TableCapability> capabilities() {
            return this.table.capabilities();
        }

        public ScanBuilder newScanBuilder(final CaseInsensitiveStringMap options) {
            final ScanBuilder builder = this.table.newScanBuilder(options);
            return new ScanBuilder() {
                public Scan build() {
                    Duration patience = Duration.ofMillis(options.getLong(PATIENCE, DEFAULT_PATIENCE));
                    return new GatedScan(
                        builder.build(), new KafkaPartitionReader.Factory(options.getInt(MOST, DEFAULT_MOST), patience));
                }
            };
        }
    }

    private static final class GatedScan implements Scan {
        private final Scan scan;
        private final KafkaPartitionReader.Factory readers;

        GatedScan(Scan scan, KafkaPartitionReader.Factory readers) {
            this.scan = scan;
            this.readers = readers;
        }

        public StructType readSchema() {
            return this.scan.readSchema();
        }

        public String description() {
            return this.scan.description();
        }

        public CustomMetric[] supportedCustomMetrics() {
            return this.scan.supportedCustomMetrics();
        }

        public Batch toBatch() {
            Batch batch = this.scan.toBatch();
            final KafkaPartitionReader.Factory readers = this.readers;
            return new Batch() {
                public InputPartition[] planInputPartitions() {
                    return batch.planInputPartitions();
                }

                public PartitionReaderFactory createReaderFactory() {
                    return readers;
                }
            };
        }

        public MicroBatchStream toMicroBatchStream(String checkpoint) {
            return new GatedStream(this.scan.toMicroBatchStream(checkpoint), this.readers);
        }
    }

    private static final class GatedStream
        implements MicroBatchStream, SupportsTriggerAvailableNow, ReportsSourceMetrics {

        private final MicroBatchStream stream;
        private final KafkaPartitionReader.Factory readers;
        private final KafkaEnds places;
        private final SupportsTriggerAvailableNow ends;
        private final ReportsSourceMetrics metrics;
        /** A query that reads what there is and ends waits for nothing. */
        private boolean isGated = true;
        /** Before it is asked for its end, Spark's source has none to report, and fails. */
        private boolean hasEnd;

        GatedStream(MicroBatchStream stream, KafkaPartitionReader.Factory readers) {
            this.stream = stream;
            this.readers = readers;
            this.places = new KafkaEnds(readers.patience());
            this.ends = (SupportsTriggerAvailableNow) stream;
            this.metrics = (ReportsSourceMetrics) stream;
        }

        public Offset latestOffset(Offset start, ReadLimit limit) {
            long opened = Gate.opened();
            if (this.isGated && opened == 0) {
                return start;
            }
            Offset end = this.places.notBefore(start, this.ends.latestOffset(start, limit));
            this.hasEnd = true;
            // What a leader does not know yet was not read.
            boolean isAll = !this.places.areShorter();
            if (this.isGated && isAll && (end.equals(start) || end.equals(this.ends.reportLatestOffset()))) {
                Gate.close(opened);
            }
            return end;
        }

        public void prepareForTriggerAvailableNow() {
            this.isGated = false;
            this.hasEnd = true;
            this.ends.prepareForTriggerAvailableNow();
        }

        public ReadLimit getDefaultReadLimit() {
            return this.ends.getDefaultReadLimit();
        }

        public Offset reportLatestOffset() {
            return this.hasEnd ? this.ends.reportLatestOffset() : null;
        }

        public Map<String, String> metrics(Optional<Offset> latestConsumed) {
            return this.hasEnd ? this.metrics.metrics(latestConsumed) : Map.of();
        }

        public Offset latestOffset() {
            return this.stream.latestOffset();
        }

        public Offset initialOffset() {
            return this.stream.initialOffset();
        }

        public Offset deserializeOffset(String json) {
            return this.stream.deserializeOffset(json);
        }

        public InputPartition[] planInputPartitions(Offset start, Offset end) {
            return this.stream.planInputPartitions(start, end);
        }

        public PartitionReaderFactory createReaderFactory() {
            return this.readers;
        }

        public void commit(Offset end) {
            this.stream.commit(end);
        }

        public void stop() {
            this.stream.stop();
        }

        public String toString() {
            return this.stream.toString();
        }
    }
}

package trimtab;

import java.io.Serializable;
import java.time.Duration;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.TopicPartition;
import org.apache.spark.kafka010.KafkaConfigUpdater;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.kafka010.KafkaBatchInputPartition;
import org.apache.spark.sql.kafka010.KafkaOffsetRange;
import org.apache.spark.unsafe.types.UTF8String;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Reads a range of offsets that Spark's Kafka source has planned, with a consumer whose memory is bounded.
 *
 * The columns are those of Spark's source, but for the key, which trimtab does not use: it is null, or says why a batch of
 * records was refused, at whose first offset the row is.
 */
final class KafkaPartitionReader implements PartitionReader<InternalRow> {
    private static final Logger LOG = LoggerFactory.getLogger(KafkaPartitionReader.class);
    private static final Duration POLL = Duration.ofMillis(500);
    private static final long MICROS = 1_000;
    /** Consumers that nobody uses now, one a partition: a new one would have to connect, and ask for the leader. */
    private static final Map<Key, Source> IDLE = new ConcurrentHashMap<>();

    private final Key key;
    private final KafkaBatchInputPartition planned;
    private final TopicPartition partition;
    private final UTF8String topic;
    private final Source source;
    private final long until;
    private Iterator<ConsumerRecord<byte[], byte[]>> fetched = Collections.emptyIterator();
    private InternalRow row;
    private boolean isInOrder;

    KafkaPartitionReader(KafkaBatchInputPartition planned, int most) throws ReflectiveOperationException {
        KafkaOffsetRange range = planned.offsetRange();
        this.planned = planned;
        this.partition = range.topicPartition();
        this.topic = UTF8String.fromString(this.partition.topic());
        this.key = new Key(this.partition, parameters(planned), most);
        Source idle = IDLE.remove(this.key);
        this.source = idle == null ? new Source(this.key) : idle;
        KafkaConsumer<byte[], byte[]> consumer = this.source.consumer;
        // Of a range whose ends are not looked up yet they are negative.
        if (range.fromOffset() < 0) {
            consumer.seekToBeginning(List.of(this.partition));
        } else {
            consumer.seek(this.partition, range.fromOffset());
        }
        this.until = range.untilOffset() < 0
            ? consumer.endOffsets(List.of(this.partition)).get(this.partition) : range.untilOffset();
    }

    @Override
    public boolean next() {
        KafkaConsumer<byte[], byte[]> consumer = this.source.consumer;
        this.isInOrder = false;
        long patience = System.nanoTime() + Duration.ofMillis(this.planned.pollTimeoutMs()).toNanos();
        while (!this.fetched.hasNext()) {
            long position = consumer.position(this.partition);
            if (position >= this.until) {
                this.isInOrder = true;
                return false;
            }
            this.fetched = this.poll(position);
            if (consumer.position(this.partition) > position) {
                patience = System.nanoTime() + Duration.ofMillis(this.planned.pollTimeoutMs()).toNanos();
            } else if (System.nanoTime() > patience) {
                throw sneaky(new TimeoutException(
                    "Kafka gave nothing at offset " + position + " of " + this.partition + " within "
                        + this.planned.pollTimeoutMs() + " ms"));
            }
        }
        ConsumerRecord<byte[], byte[]> record = this.fetched.next();
        this.isInOrder = true;
        if (record.offset() >= this.until) {
            this.fetched = Collections.emptyIterator();
            return false;
        }
        String refusal = this.source.bounds.refusal(record.offset());
        this.row = new GenericInternalRow(new Object[] {
            refusal == null ? null : UTF8String.fromString(refusal).getBytes(), record.value(), this.topic,
            record.partition(), record.offset(), record.timestamp() * MICROS, record.timestampType().id});
        return true;
    }

    private Iterator<ConsumerRecord<byte[], byte[]>> poll(long position) {
        KafkaConsumer<byte[], byte[]> consumer = this.source.consumer;
        try {
            return consumer.poll(POLL).records(this.partition).iterator();
        } catch (OffsetOutOfRangeException error) {
            if (this.planned.failOnDataLoss()) {
                throw error;
            }
            long first = consumer.beginningOffsets(List.of(this.partition)).get(this.partition);
            // Where the log ends before the position, a topic was deleted and created again.
            long next = first > position ? Math.min(first, this.until) : this.until;
            LOG.warn("{}: the records from offset {} to {} are gone", this.partition, position, next);
            consumer.seek(this.partition, next);
            return Collections.emptyIterator();
        }
    }

    @Override
    public InternalRow get() {
        return this.row;
    }

    @Override
    public void close() {
        // One whose call failed, or was interrupted, may be in any state.
        if (!this.isInOrder || IDLE.putIfAbsent(this.key, this.source) != null) {
            this.source.consumer.close(Duration.ZERO);
        }
    }

    private static Map<String, Object> parameters(KafkaBatchInputPartition planned) {
        Map<String, Object> found = new HashMap<>(planned.executorKafkaParams());
        found.remove("group.id"); // nothing is committed, and Spark has another one for each query
        return found;
    }

    @SuppressWarnings("unchecked")
    private static <E extends Throwable> RuntimeException sneaky(Throwable error) throws E {
        throw (E) error;
    }

    private record Key(TopicPartition partition, Map<String, Object> parameters, int most) {}

    /** A consumer of one partition, and what bounds it. */
    private static final class Source {
        final KafkaConsumer<byte[], byte[]> consumer;
        final BoundedFetch bounds;

        Source(Key key) throws ReflectiveOperationException {
            scala.collection.immutable.Map<String, Object> parameters =
                scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(key.parameters()));
            this.consumer = new KafkaConsumer<>(
                new KafkaConfigUpdater("executor", parameters).setAuthenticationConfigIfNeeded().build());
            this.bounds = BoundedFetch.of(this.consumer, key.most());
            this.consumer.assign(List.of(key.partition()));
        }
    }

    /** Makes readers of batches that unpack to at most *most* bytes. */
    record Factory(int most) implements PartitionReaderFactory, Serializable {
        @Override
        public PartitionReader<InternalRow> createReader(InputPartition planned) {
            try {
                return new KafkaPartitionReader((KafkaBatchInputPartition) planned, this.most);
            } catch (ReflectiveOperationException error) {
                throw new IllegalStateException("this release of Kafka's client cannot be bounded", error);
            }
        }
    }
}

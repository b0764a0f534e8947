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
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RetriableException;
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
    private static final Duration POLL = Duration.ofMillis(500), ANSWER = Duration.ofSeconds(1);
    private static final long MICROS = 1_000;
    /** Consumers that nobody uses now, one a partition: a new one would have to connect, and ask for the leader. */
    private static final Map<Key, Source> IDLE = new ConcurrentHashMap<>();

    private final Key key;
    private final KafkaBatchInputPartition planned;
    private final TopicPartition partition;
    private final UTF8String topic;
    private final Source source;
    private final long until, patienceNanos;
    /** All before it has been read. */
    private long place;
    /** Since when each answer of the leader has been that its log ends before *until*; null: the last one was not. */
    private Long shorterSince;
    private Iterator<ConsumerRecord<byte[], byte[]>> fetched = Collections.emptyIterator();
    private InternalRow row;
    private boolean isInOrder;

    KafkaPartitionReader(KafkaBatchInputPartition planned, int most, Duration patience)
        throws ReflectiveOperationException {

        this.patienceNanos = patience.toNanos();
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
        this.place = consumer.position(this.partition);
    }

    @Override
    public boolean next() {
        this.isInOrder = false;
        while (!this.fetched.hasNext()) {
            if (this.place >= this.until) {
                this.isInOrder = true;
                return false;
            }
            this.fetched = this.progress();
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

    /** The records at the place, which is behind them then; none where there are none to be read, or they are gone. */
    private Iterator<ConsumerRecord<byte[], byte[]>> progress() {
        long before = this.place, silentSince = System.nanoTime();
        this.shorterSince = null;
        while (true) {
            Iterator<ConsumerRecord<byte[], byte[]>> found = this.poll();
            if (this.place > before) {
                return found;
            }
            long silent = System.nanoTime() - silentSince;
            if (silent > POLL.toNanos() && this.isShorter()) {
                this.skipTo(this.until);
                return found;
            }
            if (silent > Duration.ofMillis(this.planned.pollTimeoutMs()).toNanos()) {
                throw sneaky(new TimeoutException(
                    "Kafka gave nothing at offset " + this.place + " of " + this.partition + " within "
                        + this.planned.pollTimeoutMs() + " ms"));
            }
        }
    }

    private Iterator<ConsumerRecord<byte[], byte[]>> poll() {
        KafkaConsumer<byte[], byte[]> consumer = this.source.consumer;
        try {
            Iterator<ConsumerRecord<byte[], byte[]>> found = consumer.poll(POLL).records(this.partition).iterator();
            this.place = consumer.position(this.partition);
            return found;
        } catch (OffsetOutOfRangeException error) {
            if (this.planned.failOnDataLoss()) {
                throw error;
            }
            this.findPlace();
        } catch (RetriableException error) {
            LOG.warn("{}: {}", this.partition, error.toString());
            consumer.seek(this.partition, this.place);
        }
        return Collections.emptyIterator();
    }

    /**
     * Go on where the leader has no record at the place: at its first one, if those before it are deleted.  Otherwise stay,
     * as KafkaReader does: a broker that comes back may answer for a moment as the leader that it was, and know less.
     */
    private void findPlace() {
        KafkaConsumer<byte[], byte[]> consumer = this.source.consumer;
        Long first = this.answer(() -> consumer.beginningOffsets(List.of(this.partition), ANSWER));
        if (first != null && first > this.place) {
            this.skipTo(Math.min(first, this.until));
            return;
        }
        consumer.seek(this.partition, this.place);
        try {
            Thread.sleep(POLL.toMillis());
        } catch (InterruptedException error) {
            throw sneaky(error);
        }
    }

    /** Whether the log has ended before what was planned for so long that the topic was deleted and created again. */
    private boolean isShorter() {
        KafkaConsumer<byte[], byte[]> consumer = this.source.consumer;
        Long end = this.answer(() -> consumer.endOffsets(List.of(this.partition), ANSWER));
        if (this.planned.failOnDataLoss() || end == null || end >= this.until) {
            this.shorterSince = null;
            return false;
        }
        long now = System.nanoTime();
        this.shorterSince = this.shorterSince == null ? now : this.shorterSince;
        return now - this.shorterSince > this.patienceNanos;
    }

    /** What a leader says of the partition; null: nothing for now. */
    private Long answer(Supplier<Map<TopicPartition, Long>> asked) {
        try {
            return asked.get().get(this.partition);
        } catch (RetriableException error) {
            LOG.warn("{}: {}", this.partition, error.toString());
            return null;
        }
    }

    private void skipTo(long next) {
        LOG.warn("{}: the records from offset {} to {} are gone", this.partition, this.place, next);
        this.source.consumer.seek(this.partition, next);
        this.place = next;
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

    /** Makes readers of batches that unpack to at most *most* bytes; *patience*: so long a log may end before its plan. */
    record Factory(int most, Duration patience) implements PartitionReaderFactory, Serializable {
        @Override
        public PartitionReader<InternalRow> createReader(InputPartition planned) {
            try {
                return new KafkaPartitionReader((KafkaBatchInputPartition) planned, this.most, this.patience);
            } catch (ReflectiveOperationException error) {
                throw new IllegalStateException("this release of Kafka's client cannot be bounded", error);
            }
        }
    }
}

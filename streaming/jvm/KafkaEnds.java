package trimtab;

import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.kafka010.KafkaSourceOffset;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Ends of micro-batches that never lie before their beginnings.
 *
 * A broker that comes back may answer for a moment as the leader that it was, whose log ends before what was read.  Spark asks
 * three times, a second apart, and then goes back: the records between would be read once more.
 */
final class KafkaEnds {
    private static final Logger LOG = LoggerFactory.getLogger(KafkaEnds.class);
    private final long patienceNanos;
    private final Map<TopicPartition, Shorter> shorter = new HashMap<>();

    /** *patience*: a log that is shorter than what was read for so long was deleted and created again. */
    KafkaEnds(Duration patience) {
        this.patienceNanos = patience.toNanos();
    }

    /** Whether a log was shorter than what was read when its leader was asked last. */
    boolean areShorter() {
        return !this.shorter.isEmpty();
    }

    /** *end* where it is not before *start*; elsewhere *start*, and after the patience where a shorter log first ended. */
    Offset notBefore(Offset start, Offset end) {
        Map<TopicPartition, Object> ends = new HashMap<>(places(end));
        for (Map.Entry<TopicPartition, Object> each : places(start).entrySet()) {
            ends.compute(each.getKey(), (partition, place) -> this.end(partition, (Long) each.getValue(), (Long) place));
        }
        return new KafkaSourceOffset(scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(ends)));
    }

    /** Where *partition* is read to, which has been read up to *start*.  Without an *end* Kafka did not mention it. */
    private Long end(TopicPartition partition, Long start, Long end) {
        if (end == null || end >= start) {
            this.shorter.remove(partition);
            return end == null ? start : end;
        }
        long now = System.nanoTime();
        Shorter first = this.shorter.computeIfAbsent(partition, unused -> {
            LOG.warn("{}: its leader ends at {}, but {} was read: waiting", partition, end, start);
            return new Shorter(now, end);
        });
        if (now - first.since <= this.patienceNanos) {
            return start;
        }
        LOG.error("{}: shorter than what was read, {}: it was deleted and created again", partition, start);
        this.shorter.remove(partition);
        return Math.min(first.end, end);
    }

    private static Map<TopicPartition, Object> places(Offset offset) {
        return offset == null ? Map.of() : CollectionConverters.asJava(((KafkaSourceOffset) offset).partitionToOffsets());
    }

    private record Shorter(long since, long end) {}
}

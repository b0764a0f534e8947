package trimtab;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Collects the topics of topic_stats records, so that many of them leave the JVM as one row: see streaming.schemas.ROW.
 *
 * Nothing is added up: the fold gets the same facts as from one row a record, whichever records share a row.
 */
final class TopicRows {
    /** So many topics are in one row at most; about 400 kB. */
    static final int MOST = 4096;
    /** The fewest topics that a row has room for. */
    private static final int FEWEST = 32;

    private final Topics[] open;

    TopicRows(int shards) {
        this.open = new Topics[shards];
    }

    /** Adds a topic; returns the topics of its shard if they fill a row now, else null. */
    Topics add(Topic topic, long offset) {
        if (this.open[topic.shard] == null) {
            this.open[topic.shard] = new Topics(topic.shard);
        }
        Topics found = this.open[topic.shard];
        found.add(topic, offset);
        if (found.size < MOST) {
            return null;
        }
        this.open[topic.shard] = null;
        return found;
    }

    /** What is left, one for each shard that has any; nothing is left then. */
    List<Topics> takeAll() {
        List<Topics> found = new ArrayList<>();
        for (int shard = 0; shard < this.open.length; shard++) {
            if (this.open[shard] != null) {
                found.add(this.open[shard]);
                this.open[shard] = null;
            }
        }
        return found;
    }

    /** One topic, as its record describes it. */
    static final class Topic {
        final int shard;
        final String broker;
        final String bundle;
        /** Its load: see Bundle. */
        final long[] load;
        final long hash;
        final long position;
        /** See Bundle.segment. */
        final long segment;

        Topic(int shard, String broker, String bundle, long[] load, long hash, long position, long segment) {
            this.shard = shard;
            this.broker = broker;
            this.bundle = bundle;
            this.load = load;
            this.hash = hash;
            this.position = position;
            this.segment = segment;
        }
    }

    /** Topics of one shard. */
    static final class Topics {
        /** Numbers of a topic beside its load. */
        private static final int NUMBERS = 6;

        final int shard;
        private final NameList brokers = new NameList();
        private final NameList bundles = new NameList();
        private long[] loads = new long[FEWEST * Wire.LOAD];
        private long[] numbers = new long[FEWEST * NUMBERS];
        private int size;

        private Topics(int shard) {
            this.shard = shard;
        }

        private void add(Topic topic, long offset) {
            if (NUMBERS * this.size == this.numbers.length) {
                this.loads = Arrays.copyOf(this.loads, 2 * this.loads.length);
                this.numbers = Arrays.copyOf(this.numbers, 2 * this.numbers.length);
            }
            System.arraycopy(topic.load, 0, this.loads, Wire.LOAD * this.size, Wire.LOAD);
            int at = NUMBERS * this.size++;
            this.numbers[at] = offset;
            this.numbers[at + 1] = this.brokers.codeOf(topic.broker);
            this.numbers[at + 2] = this.bundles.codeOf(topic.bundle);
            this.numbers[at + 3] = topic.hash;
            this.numbers[at + 4] = topic.position;
            this.numbers[at + 5] = topic.segment;
        }

        /** The brokers' names, one on each line. */
        String brokers() {
            return this.brokers.lines.toString();
        }

        /** The bundles' names, one on each line. */
        String bundles() {
            return this.bundles.lines.toString();
        }

        byte[] stats() {
            return bytes(this.loads, Wire.LOAD * this.size);
        }

        /** Of each topic its record's offset, the lines of its broker and bundle, its hash, its place on the ring, its segment. */
        byte[] topics() {
            return bytes(this.numbers, NUMBERS * this.size);
        }

        private static byte[] bytes(long[] numbers, int size) {
            ByteBuffer out = ByteBuffer.allocate(8 * size).order(ByteOrder.LITTLE_ENDIAN);
            out.asLongBuffer().put(numbers, 0, size);
            return out.array();
        }
    }

    /** Different names, one on each line. */
    private static final class NameList {
        final StringBuilder lines = new StringBuilder();
        private final Map<String, Integer> codes = new HashMap<>();

        /** The line of *name*, from 0; a name that is not in the list yet is added. */
        int codeOf(String name) {
            Integer code = this.codes.get(name);
            if (code == null) {
                code = this.codes.size();
                this.lines.append(code == 0 ? "" : "\n").append(name);
                this.codes.put(name, code);
            }
            return code;
        }
    }
}

package trimtab;

import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import java.util.Objects;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;

/**
 * Makes rows of all records of a Spark partition: see streaming.schemas.PLACED_ROW.
 *
 * A record's rows come one by one, those of topic_stats records packed: see TopicRows.
 */
public final class PartitionRows implements MapPartitionsFunction<Row, Row> {
    private static final long serialVersionUID = 1L;
    /** Columns of a record, as streaming.schemas.RECORD has them. */
    private static final int SOURCE = 0, PARTITION = 1, OFFSET = 2, FILE = 3, APPEND_TIME = 4, VALUE = 5;

    private final RecordRows reader;

    public PartitionRows(RecordRows reader) {
        this.reader = reader;
    }

    @Override
    public Iterator<Row> call(Iterator<Row> records) {
        return new Rows(records);
    }

    /** Reads a record when the rows of those before it have been taken. */
    private final class Rows implements Iterator<Row> {
        private final Iterator<Row> records;
        private final Deque<Row> ready = new ArrayDeque<>();
        private final TopicRows topics = new TopicRows(PartitionRows.this.reader.shards);
        /** The record read last; the topics that wait come from the same partition of the log, and the same file. */
        private Row record;

        Rows(Iterator<Row> records) {
            this.records = records;
        }

        @Override
        public boolean hasNext() {
            while (this.ready.isEmpty() && this.records.hasNext()) {
                this.read(this.records.next());
            }
            if (this.ready.isEmpty() && this.record != null) {
                this.addTopics(this.topics.takeAll());
            }
            return !this.ready.isEmpty();
        }

        @Override
        public Row next() {
            this.hasNext();
            return this.ready.remove();
        }

        private void read(Row record) {
            if (this.record != null && !isBeside(record, this.record)) {
                this.addTopics(this.topics.takeAll());
            }
            this.record = record;
            byte[] value = (byte[]) record.get(VALUE);
            RecordRows.Found found = PartitionRows.this.reader.read(
                value, record.getInt(SOURCE), record.getLong(APPEND_TIME)
            );
            String body = found.isSuspect && !found.isRefused ? new String(value, StandardCharsets.UTF_8) : null;
            for (Row row : found.rows) {
                this.add(body, row);
            }
            if (found.topic != null) {
                TopicRows.Topics full = this.topics.add(found.topic, record.getLong(OFFSET));
                this.addTopics(full == null ? List.of() : List.of(full));
            }
        }

        private void addTopics(List<TopicRows.Topics> taken) {
            for (TopicRows.Topics topics : taken) {
                this.add(null, RecordRows.row(topics));
            }
        }

        /** Adds *row* with the place of the record read last. */
        private void add(String body, Row row) {
            Object[] fields = new Object[FILE + 2 + row.size()];
            for (int i = SOURCE; i <= FILE; i++) {
                fields[i] = this.record.get(i);
            }
            fields[FILE + 1] = body;
            for (int i = 0; i < row.size(); i++) {
                fields[FILE + 2 + i] = row.get(i);
            }
            this.ready.add(RowFactory.create(fields));
        }
    }

    private static boolean isBeside(Row record, Row other) {
        return record.getInt(SOURCE) == other.getInt(SOURCE)
            && record.getInt(PARTITION) == other.getInt(PARTITION)
            && Objects.equals(record.get(FILE), other.get(FILE));
    }
}

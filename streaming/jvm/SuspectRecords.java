package trimtab;

import org.apache.spark.sql.api.java.UDF3;

/** Says of a record (its bytes, its source, its append time) whether controller.wire must read it. */
public final class SuspectRecords implements UDF3<byte[], Integer, Long, Integer> {
    private static final long serialVersionUID = 1L;
    /** As streaming.decode has them. */
    private static final int NOT_SUSPECT = 0, SUSPECT = 1, REFUSED = 2;

    private final RecordRows reader;

    public SuspectRecords(RecordRows reader) {
        this.reader = reader;
    }

    @Override
    public Integer call(byte[] value, Integer source, Long appended) {
        RecordRows.Found found = this.reader.read(value, source, appended);
        return found.isRefused ? REFUSED : found.isSuspect ? SUSPECT : NOT_SUSPECT;
    }
}

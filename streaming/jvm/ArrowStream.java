package trimtab;

import com.github.luben.zstd.Zstd;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HashMap;
import java.util.Map;

/**
 * The columns of a sweep in its Arrow form: an IPC stream of one record batch.
 *
 * It is read here, and not by Arrow's own reader, so that every length is checked against the bytes there are before
 * anything is allocated by it.  Other columns than a sweep's are ignored; nested ones are refused.
 * controller/wire/arrow_stream.py applies the same rules.
 */
final class ArrowStream {
    /** Kinds of messages. */
    private static final int SCHEMA = 1, DICTIONARY = 2, BATCH = 3;
    /** Types of columns: those that a sweep has, and how many buffers a column of each type has; -1: refused. */
    private static final int INT = 2, FLOATING_POINT = 3, TEXT = 5, DOUBLE = 2;
    private static final int[] BUFFERS = {-1, 0, 2, 2, 3, 3, 2, 2, 2, 2, 2, 2, -1, -1, -1, 2, -1, -1, 2, 3, 3};
    /** A compression; the one below it is LZ4. */
    private static final int ZSTD = 1;
    private static final int MOST_COLUMNS = 256, LONGEST_NAME = 1024;
    /** Limits of what compressed columns unpack to: so many times the record's size, and so many bytes. */
    private static final long MOST_TIMES = 64, MOST_UNPACKED = 1L << 26;
    private static final String HEADER = "trimtab";
    private static final String[] COLUMNS = {
        "bundle", "topic", Wire.RATES[0], Wire.RATES[1], Wire.RATES[2], Wire.RATES[3],
        Wire.COUNTS[0], Wire.COUNTS[1]
    };

    /** The broker's own fields, as JSON. */
    final byte[] header;
    int rows = -1;
    ByteBuffer codes;
    ArrowText bundles;
    ArrowText topics;
    final ByteBuffer[] rates = new ByteBuffer[Wire.RATES.length];
    final ByteBuffer[] counts = new ByteBuffer[Wire.COUNTS.length];

    private final byte[] value;
    /** Where the next message begins. */
    private int at;
    /** Of the message just read: its kind, its description, and where its body lies. */
    private int kind;
    private FlatTable said;
    private int body;
    private int bodyLength;
    /** Name of a column -> {its place among the nodes, its first place among the buffers}. */
    private final Map<String, int[]> places = new HashMap<>();
    private final Map<String, FlatTable> fields = new HashMap<>();
    private int nodes;
    private int buffers;
    private long room;

    /** Reads the schema; what follows it is not looked at yet. */
    ArrowStream(byte[] value) throws Fields.Refused, IOException {
        this.value = value;
        this.room = Math.min(MOST_TIMES * value.length, MOST_UNPACKED);
        refuse(!this.next() || this.kind != SCHEMA || this.said.number(0, 2, 0) != 0);
        FlatTable[] listed = this.said.tables(1, MOST_COLUMNS);
        for (int i = 0; i < listed.length; i++) {
            this.addColumn(listed[i]);
        }
        FlatTable[] metadata = this.said.tables(2, MOST_COLUMNS);
        byte[] found = null;
        for (int i = 0; i < metadata.length; i++) {
            if (name(metadata[i]).equals(HEADER)) {
                refuse(found != null);
                found = metadata[i].text(1);
            }
        }
        refuse(found == null);
        this.header = found;
    }

    /** Reads the columns. */
    void read() throws Fields.Refused, IOException {
        long dictionary = this.checkTypes();
        while (this.next()) {
            if (this.kind == DICTIONARY) {
                if (this.said.number(0, 8, 0) == dictionary) {
                    refuse(this.bundles != null || this.said.number(2, 1, 0) != 0);
                    Part part = new Part(this.said.table(1), 1, 3);
                    this.bundles = part.text(new int[] {0, 0});
                }
            } else {
                refuse(this.kind != BATCH || this.rows >= 0);
                this.readBatch(new Part(this.said, this.nodes, this.buffers));
            }
        }
        refuse(this.rows < 0 || this.bundles == null);
        for (int row = 0; row < this.rows; row++) {
            int code = this.codes.getInt(4 * row);
            refuse(code < 0 || code >= this.bundles.size);
        }
    }

    private void readBatch(Part part) throws Fields.Refused, IOException {
        this.rows = part.rows;
        this.codes = part.numbers(this.place("bundle"), 4);
        this.topics = part.text(this.place("topic"));
        for (int i = 0; i < this.rates.length; i++) {
            this.rates[i] = part.numbers(this.place(Wire.RATES[i]), 8);
        }
        for (int i = 0; i < this.counts.length; i++) {
            this.counts[i] = part.numbers(this.place(Wire.COUNTS[i]), 8);
        }
    }

    /** Reads the next message; false at the end of the stream, which must be the end of the record. */
    private boolean next() throws Fields.Refused {
        long left = this.value.length - this.at;
        if (left == 0) {
            return false;
        }
        refuse(left < 8);
        ByteBuffer in = ByteBuffer.wrap(this.value).order(ByteOrder.LITTLE_ENDIAN);
        long length = in.getInt(this.at + 4);
        refuse(in.getInt(this.at) != -1);
        if (length == 0) {
            refuse(left != 8);
            this.at += 8;
            return false;
        }
        refuse(length < 0 || length > left - 8);
        FlatTable message = FlatTable.first(this.value, this.at + 8, (int) length);
        long version = message.number(0, 2, 0), follows = message.number(3, 8, 0);
        refuse(version < 3 || version > 4 || follows < 0 || follows > left - 8 - length);
        this.kind = (int) message.number(1, 1, 0);
        this.said = message.table(2);
        this.body = this.at + 8 + (int) length;
        this.bodyLength = (int) follows;
        this.at = this.body + this.bodyLength;
        return true;
    }

    private void addColumn(FlatTable field) throws Fields.Refused, IOException {
        long type = field.number(2, 1, 0);
        int own = field.tableOrNull(4) != null ? 2 : type < BUFFERS.length ? BUFFERS[(int) type] : -1;
        refuse(own < 0 || field.list(5, 4).limit() > 0);
        String name = name(field);
        refuse(isOfSweep(name) && this.fields.put(name, field) != null);
        this.places.put(name, new int[] {this.nodes, this.buffers});
        this.nodes++;
        this.buffers += own;
    }

    /** Refuses columns of other types than a sweep's; returns the id of the dictionary with the bundles' names. */
    private long checkTypes() throws Fields.Refused {
        for (int i = 0; i < COLUMNS.length; i++) {
            FlatTable field = this.fields.get(COLUMNS[i]);
            refuse(field == null);
            long type = field.number(2, 1, 0);
            if (i < 2) {
                refuse(type != TEXT || i == 1 && field.tableOrNull(4) != null);
            } else if (i < 2 + Wire.RATES.length) {
                refuse(type != FLOATING_POINT || field.table(3).number(0, 2, 0) != DOUBLE);
                refuse(field.tableOrNull(4) != null);
            } else {
                refuse(type != INT || !isSigned(field.table(3), 64) || field.tableOrNull(4) != null);
            }
        }
        FlatTable dictionary = this.fields.get("bundle").table(4);
        FlatTable codes = dictionary.tableOrNull(1);
        refuse(codes != null && !isSigned(codes, 32) || dictionary.number(2, 1, 0) != 0);
        return dictionary.number(0, 8, 0);
    }

    private static boolean isSigned(FlatTable type, int bits) throws Fields.Refused {
        return type.number(0, 4, 0) == bits && type.number(1, 1, 0) != 0;
    }

    private static boolean isOfSweep(String name) {
        for (int i = 0; i < COLUMNS.length; i++) {
            if (COLUMNS[i].equals(name)) {
                return true;
            }
        }
        return false;
    }

    private int[] place(String name) {
        return this.places.get(name);
    }

    /** The name of a field of the schema, or the key of an entry of its metadata. */
    private static String name(FlatTable field) throws Fields.Refused, IOException {
        refuse(field.textLength(0) > LONGEST_NAME);
        byte[] name = field.text(0);
        return ArrowText.decoded(name, 0, name.length);
    }

    static void refuse(boolean flawed) throws Fields.Refused {
        if (flawed) {
            throw new Fields.Refused();
        }
    }

    /** The columns of one message. */
    private final class Part {
        final int rows;
        private final ByteBuffer lengths;
        private final ByteBuffer buffers;
        /** Which compression, or -1. */
        private final int codec;
        private final int body;
        private final int bodyLength;

        Part(FlatTable said, int nodes, int buffers) throws Fields.Refused {
            long rows = said.number(0, 8, 0);
            refuse(rows < 0 || rows > Integer.MAX_VALUE);
            this.rows = (int) rows;
            this.lengths = said.list(1, 16);
            this.buffers = said.list(2, 16);
            refuse(this.lengths.limit() != 16 * nodes || this.buffers.limit() != 16 * buffers);
            FlatTable compression = said.tableOrNull(3);
            this.codec = compression == null ? -1 : (int) compression.number(0, 1, 0);
            refuse(this.codec > ZSTD || compression != null && compression.number(1, 1, 0) != 0);
            this.body = ArrowStream.this.body;
            this.bodyLength = ArrowStream.this.bodyLength;
        }

        /** A column of numbers without nulls, each of *bytes* bytes: at least one for each row. */
        ByteBuffer numbers(int[] place, int bytes) throws Fields.Refused, IOException {
            this.checkNode(place[0]);
            ByteBuffer found = this.buffer(place[1] + 1);
            refuse(found.limit() < (long) bytes * this.rows);
            return found;
        }

        ArrowText text(int[] place) throws Fields.Refused, IOException {
            this.checkNode(place[0]);
            return new ArrowText(this.buffer(place[1] + 1), this.buffer(place[1] + 2), this.rows);
        }

        private void checkNode(int node) throws Fields.Refused {
            refuse(this.lengths.getLong(16 * node) != this.rows || this.lengths.getLong(16 * node + 8) != 0);
        }

        private ByteBuffer buffer(int nth) throws Fields.Refused, IOException {
            long from = this.buffers.getLong(16 * nth), length = this.buffers.getLong(16 * nth + 8);
            refuse(from < 0 || length < 0 || length > this.bodyLength || from > this.bodyLength - length);
            int start = this.body + (int) from;
            if (this.codec < 0 || length == 0) {
                return slice(ArrowStream.this.value, start, (int) length);
            }
            refuse(length < 8);
            long size = slice(ArrowStream.this.value, start, 8).getLong(0);
            if (size == -1) { // not worth it, says who wrote it
                return slice(ArrowStream.this.value, start + 8, (int) length - 8);
            }
            refuse(size < 0 || size > ArrowStream.this.room);
            ArrowStream.this.room -= size;
            return slice(this.unpacked(start + 8, (int) length - 8, (int) size), 0, (int) size);
        }

        private byte[] unpacked(int from, int length, int size) throws Fields.Refused {
            byte[] out = new byte[size];
            if (size > 0 && this.codec == ZSTD) {
                refuse(Zstd.decompressByteArray(out, 0, size, ArrowStream.this.value, from, length) != size);
            } else if (size > 0) {
                Lz4Frame.unpack(slice(ArrowStream.this.value, from, length), out);
            }
            return out;
        }
    }

    /** The *length* bytes of *value* from *from* on, little-endian. */
    static ByteBuffer slice(byte[] value, int from, int length) {
        return ByteBuffer.wrap(value, from, length).slice().order(ByteOrder.LITTLE_ENDIAN);
    }
}

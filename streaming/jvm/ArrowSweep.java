package trimtab;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.arrow.compression.CommonsCompressionFactory;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.Float8Vector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.dictionary.Dictionary;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.arrow.vector.types.pojo.DictionaryEncoding;

/**
 * A sweep in its Arrow form, its topics summed: an IPC stream of one record batch, the broker's own fields as JSON in
 * the schema's metadata, a row a topic, and the bundles' names in the dictionary of column "bundle".
 *
 * The same numbers as those of the sweep's JSON form, bit for bit: a bundle's topics are added in their order.  Topics
 * are kept of bundles at a limit, and of those that this chunk may have only a part of: its first and its last.
 */
final class ArrowSweep {
    /** No JSON text begins like this. */
    private static final int MAGIC = -1;
    private static final String HEADER = "trimtab";
    /** What is summed of a topic: rates, producers, consumers. */
    private static final int SUMS = 6;
    /** Of one sweep, unpacked: a record that asks for more is refused. */
    private static final long MOST_BYTES = 1L << 28;
    private static final BufferAllocator MEMORY = new RootAllocator(Long.MAX_VALUE);

    final Fields header;
    private final List bundles = new ArrayList();
    private double[] sums;
    private int[] codes;
    /** Of each bundle the first place in *order*, which lists the rows bundle by bundle. */
    private int[] starts;
    private int[] order;
    private double[][] rates;
    /** Of topics that are kept. */
    private long[] positions;

    static boolean begins(byte[] value) {
        return value.length >= 4 && ByteBuffer.wrap(value).getInt() == MAGIC;
    }

    /** Of another cluster than *ours* only the header is read. */
    ArrowSweep(byte[] value, String ours, double[] limits) throws Fields.Refused {
        BufferAllocator memory = MEMORY.newChildAllocator("sweep", 0, MOST_BYTES);
        try {
            ArrowStreamReader in =
                new ArrowStreamReader(new ByteArrayInputStream(value), memory, CommonsCompressionFactory.INSTANCE);
            try {
                VectorSchemaRoot batch = in.getVectorSchemaRoot();
                String said = (String) batch.getSchema().getCustomMetadata().get(HEADER);
                if (said == null || !in.loadNextBatch()) {
                    throw new Fields.Refused();
                }
                this.header = Fields.of(said.getBytes(StandardCharsets.UTF_8), limits);
                String cluster = this.header.textOrNull("cluster");
                if (cluster == null || cluster.equals(ours)) {
                    this.read(batch, in, limits);
                }
                if (in.loadNextBatch()) {
                    throw new Fields.Refused();
                }
            } finally {
                in.close();
            }
        } catch (IOException notArrow) {
            throw new Fields.Refused();
        } catch (RuntimeException notArrow) { // whatever a spoilt stream leads the reader to
            throw new Fields.Refused();
        } finally {
            memory.close();
        }
    }

    /** Its bundles, in the order of the dictionary. */
    List bundles() {
        return this.bundles;
    }

    private void read(VectorSchemaRoot batch, ArrowStreamReader in, double[] limits)
        throws IOException, Fields.Refused {
        int rows = batch.getRowCount();
        String[] names = this.readBundles(batch, in, rows);
        VarCharVector topic = (VarCharVector) column(batch, "topic", VarCharVector.class);
        checkText(topic, rows);
        this.sums = new double[SUMS * names.length];
        this.rates = new double[Bundle.RATES.length][];
        for (int i = 0; i < Bundle.RATES.length; i++) {
            this.rates[i] = this.sumRates(((Float8Vector) column(batch, Bundle.RATES[i], Float8Vector.class)), i);
        }
        for (int i = 0; i < Bundle.COUNTS.length; i++) {
            this.sumCounts((BigIntVector) column(batch, Bundle.COUNTS[i], BigIntVector.class), Bundle.RATES.length + i);
        }
        this.sort(names.length);
        long chunk = this.header.count("chunk"), chunks = this.header.count("chunks");
        for (int code = 0; code < names.length; code++) {
            boolean cut = code == 0 && chunk > 0 || code == names.length - 1 && chunk < chunks - 1;
            boolean near = Bundle.isNear(this.topics(code), this.sums, SUMS * code, limits);
            this.bundles.add(new Part(names[code], code, cut || near));
        }
        this.positions = new long[rows];
        for (int row = 0; row < rows; row++) {
            if (((Part) this.bundles.get(this.codes[row])).isKept) {
                this.positions[row] = Bundle.position(topic.get(row));
            }
        }
    }

    private String[] readBundles(VectorSchemaRoot batch, ArrowStreamReader in, int rows)
        throws IOException, Fields.Refused {
        IntVector indices = (IntVector) column(batch, "bundle", IntVector.class);
        DictionaryEncoding encoding = indices.getField().getDictionary();
        if (encoding == null || encoding.isOrdered()) {
            throw new Fields.Refused();
        }
        Dictionary dictionary = (Dictionary) in.getDictionaryVectors().get(Long.valueOf(encoding.getId()));
        if (!(dictionary.getVector() instanceof VarCharVector)) {
            throw new Fields.Refused();
        }
        VarCharVector values = (VarCharVector) dictionary.getVector();
        String[] names = new String[values.getValueCount()];
        for (int i = 0; i < names.length; i++) {
            names[i] = values.isNull(i) ? null : text(values.get(i));
            if (!Bundle.isBundle(names[i])) {
                throw new Fields.Refused();
            }
        }
        this.codes = new int[rows];
        for (int row = 0; row < rows; row++) {
            this.codes[row] = indices.get(row);
            if (this.codes[row] < 0 || this.codes[row] >= names.length) {
                throw new Fields.Refused();
            }
        }
        return names;
    }

    private void sort(int bundles) {
        this.starts = new int[bundles + 1];
        for (int row = 0; row < this.codes.length; row++) {
            this.starts[this.codes[row] + 1]++;
        }
        for (int code = 0; code < bundles; code++) {
            this.starts[code + 1] += this.starts[code];
        }
        int[] next = (int[]) this.starts.clone();
        this.order = new int[this.codes.length];
        for (int row = 0; row < this.codes.length; row++) {
            this.order[next[this.codes[row]]++] = row;
        }
    }

    private int topics(int code) {
        return this.starts[code + 1] - this.starts[code];
    }

    private double[] sumRates(Float8Vector column, int which) throws Fields.Refused {
        double[] values = new double[this.codes.length];
        for (int row = 0; row < values.length; row++) {
            double value = column.get(row);
            if (!(value >= 0 && value <= Bundle.MAX_RATE)) {
                throw new Fields.Refused();
            }
            values[row] = value;
            this.sums[SUMS * this.codes[row] + which] += value;
        }
        return values;
    }

    private void sumCounts(BigIntVector column, int which) throws Fields.Refused {
        for (int row = 0; row < this.codes.length; row++) {
            long value = column.get(row);
            if (value < 0) {
                throw new Fields.Refused();
            }
            if (which < SUMS) {
                this.sums[SUMS * this.codes[row] + which] += value;
            }
        }
    }

    /** The column *name*, of that type, a dictionary's only for "bundle", without nulls. */
    private static FieldVector column(VectorSchemaRoot batch, String name, Class type) throws Fields.Refused {
        FieldVector found = batch.getVector(name);
        boolean isOther = found == null || !type.isInstance(found) || found.getNullCount() > 0;
        if (isOther || !name.equals("bundle") && found.getField().getDictionary() != null) {
            throw new Fields.Refused();
        }
        return found;
    }

    private static void checkText(VarCharVector column, int rows) throws IOException {
        ArrowBuf buffer = column.getDataBuffer();
        byte[] all = new byte[rows == 0 ? 0 : column.getEndOffset(rows - 1)];
        buffer.getBytes(0, all);
        boolean ascii = true;
        for (int i = 0; i < all.length; i++) {
            ascii &= all[i] >= 0;
        }
        for (int row = 0; row < rows && !ascii; row++) {
            text(column.get(row));
        }
    }

    private static String text(byte[] value) throws IOException {
        return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(value)).toString();
    }

    /** One of its bundles. */
    private final class Part extends Bundle {
        private final int code;
        private final boolean isKept;

        Part(String name, int code, boolean isKept) {
            super(name);
            this.code = code;
            this.isKept = isKept;
        }

        int kept() {
            return this.isKept ? ArrowSweep.this.topics(this.code) : 0;
        }

        double load(int which) {
            return which == TOPICS ? ArrowSweep.this.topics(this.code) : ArrowSweep.this.sums[SUMS * this.code + which];
        }

        void putTopics(ByteBuffer positions, ByteBuffer rates) {
            int first = ArrowSweep.this.starts[this.code];
            for (int place = first; place < first + this.kept(); place++) {
                int row = ArrowSweep.this.order[place];
                positions.putLong(ArrowSweep.this.positions[row]);
                for (int i = 0; i < Bundle.RATES.length; i++) {
                    rates.putDouble(ArrowSweep.this.rates[i][row]);
                }
            }
        }
    }
}

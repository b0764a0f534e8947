package trimtab;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * A sweep in its Arrow form, its topics summed: an IPC stream of one record batch, the broker's own fields as JSON in
 * the schema's metadata, a row a topic, and the bundles' names in the dictionary of column "bundle".
 *
 * The same numbers as those of the sweep's JSON form, bit for bit: a bundle's topics are added in their order.  Topics
 * are kept of bundles that reach a limit, and of the first and last bundle: this chunk may have only a part of them.
 * Segments of scalable topics are kept of all bundles.
 */
final class ArrowSweep {
    /** No JSON text begins like this. */
    private static final int MAGIC = -1;
    /** What is summed of a topic: rates, producers, consumers. */
    private static final int SUMS = 6;

    final Fields header;
    private final List<Part> bundles = new ArrayList<>();
    private double[] sums;
    private int[] codes;
    /** Of each bundle the flags of its topics. */
    private int[] kinds;
    /** Of each bundle the first place in *order*, which lists the rows bundle by bundle. */
    private int[] starts;
    private int[] order;
    private double[][] rates;
    /** Of topics that are kept; the code of a segment is 0 of other topics. */
    private long[] positions;
    private long[] segments;
    private boolean[] isSegment;
    /** Of each bundle the number of its segments. */
    private int[] segmentCount;

    static boolean begins(byte[] value) {
        return value.length >= 4 && ByteBuffer.wrap(value).getInt() == MAGIC;
    }

    /** Of a sweep of another cluster than *ours* only the header is read. */
    ArrowSweep(byte[] value, String ours, double[] limits) throws Fields.Refused {
        try {
            ArrowStream in = new ArrowStream(value);
            this.header = Fields.of(in.header, limits);
            String cluster = this.header.textOrNull("cluster");
            if (cluster == null || cluster.equals(ours)) {
                in.read();
                this.read(in, limits);
            }
        } catch (IOException notArrow) {
            throw new Fields.Refused();
        }
    }

    /** Its bundles, in the order of the dictionary. */
    List<? extends Bundle> bundles() {
        return this.bundles;
    }

    private void read(ArrowStream in, double[] limits) throws IOException, Fields.Refused {
        String[] names = new String[in.bundles.size];
        for (int i = 0; i < names.length; i++) {
            names[i] = in.bundles.get(i);
            ArrowStream.refuse(!Bundle.isBundle(names[i]));
        }
        this.codes = new int[in.rows];
        in.codes.asIntBuffer().get(this.codes);
        this.sums = new double[SUMS * names.length];
        this.rates = new double[Wire.RATES.length][];
        for (int i = 0; i < Wire.RATES.length; i++) {
            this.rates[i] = this.sumRates(in.rates[i], i);
        }
        for (int i = 0; i < Wire.COUNTS.length; i++) {
            this.sumCounts(in.counts[i], Wire.RATES.length + i);
        }
        this.sort(names.length);
        long chunk = this.header.count("chunk"), chunks = this.header.count("chunks");
        for (int code = 0; code < names.length; code++) {
            boolean cut = code == 0 && chunk > 0 || code == names.length - 1 && chunk < chunks - 1;
            boolean near = Bundle.isNear(this.topics(code), this.sums, SUMS * code, limits);
            this.bundles.add(new Part(names[code], code, cut || near));
        }
        this.positions = new long[in.rows];
        this.kinds = new int[names.length];
        this.segments = new long[in.rows];
        this.isSegment = new boolean[in.rows];
        this.segmentCount = new int[names.length];
        byte[] text = in.topics.bytes();
        int start = in.topics.start(), from = in.rows == 0 ? start : start + in.topics.from(0);
        for (int row = 0; row < in.rows; row++) {
            int code = this.codes[row], to = start + in.topics.from(row + 1);
            int kind = Bundle.kind(text, from, to - from);
            this.kinds[code] |= kind;
            if (Bundle.isSegment(kind)) {
                this.isSegment[row] = true;
                this.segmentCount[code]++;
                this.segments[row] = Bundle.segment(new String(text, from, to - from, StandardCharsets.UTF_8));
            }
            if (this.bundles.get(code).isKept || this.isSegment[row]) {
                this.positions[row] = Bundle.position(text, from, to - from);
            }
            from = to;
        }
    }

    private void sort(int bundles) {
        this.starts = new int[bundles + 1];
        for (int row = 0; row < this.codes.length; row++) {
            this.starts[this.codes[row] + 1]++;
        }
        for (int code = 0; code < bundles; code++) {
            this.starts[code + 1] += this.starts[code];
        }
        int[] next = this.starts.clone();
        this.order = new int[this.codes.length];
        for (int row = 0; row < this.codes.length; row++) {
            this.order[next[this.codes[row]]++] = row;
        }
    }

    private int topics(int code) {
        return this.starts[code + 1] - this.starts[code];
    }

    private double[] sumRates(ByteBuffer column, int which) throws Fields.Refused {
        double[] values = new double[this.codes.length];
        column.asDoubleBuffer().get(values);
        for (int row = 0; row < values.length; row++) {
            ArrowStream.refuse(!(values[row] >= 0 && values[row] <= Wire.MAX_RATE));
            this.sums[SUMS * this.codes[row] + which] += values[row];
        }
        return values;
    }

    private void sumCounts(ByteBuffer column, int which) throws Fields.Refused {
        for (int row = 0; row < this.codes.length; row++) {
            long value = column.getLong(8 * row);
            ArrowStream.refuse(value < 0 || value > Wire.MAX_COUNT);
            this.sums[SUMS * this.codes[row] + which] += value;
        }
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
            return this.isKept ? ArrowSweep.this.topics(this.code) : ArrowSweep.this.segmentCount[this.code];
        }

        int kinds() {
            return ArrowSweep.this.kinds[this.code];
        }

        double load(int which) {
            return which == Wire.TOPICS ? ArrowSweep.this.topics(this.code) : ArrowSweep.this.sums[SUMS * this.code + which];
        }

        void putTopics(ByteBuffer positions, ByteBuffer rates, ByteBuffer segments) {
            for (int place = ArrowSweep.this.starts[this.code]; place < ArrowSweep.this.starts[this.code + 1]; place++) {
                int row = ArrowSweep.this.order[place];
                if (!this.isKept && !ArrowSweep.this.isSegment[row]) {
                    continue;
                }
                positions.putLong(ArrowSweep.this.positions[row]);
                segments.putLong(ArrowSweep.this.segments[row]);
                for (int i = 0; i < Wire.RATES.length; i++) {
                    rates.putDouble(ArrowSweep.this.rates[i][row]);
                }
            }
        }
    }
}

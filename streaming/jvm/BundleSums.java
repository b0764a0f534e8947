package trimtab;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * One bundle of JSON while it is read; its topics are kept where its totals reach one of the limits, segments always.
 *
 * Where a field is given twice, the last one counts, as in controller.wire.
 */
final class BundleSums extends Bundle {
    private static final int NUMBERS = Wire.RATES.length + Wire.COUNTS.length;
    private static final int TOPIC = NUMBERS;
    private static final int TOTALS = NUMBERS + 1;

    /** The flawed fields, one bit for each; all bits where the element is not a bundle. */
    private int flaws;
    private boolean hasTotals;
    private final double[] totals = new double[Wire.TOPICS + 1];
    private boolean near;
    private int topics;
    /** The flags of the topics that are listed. */
    private int kinds;
    /** Null where no topics had to be kept when they were read; of a topic that had not, null in it. */
    private String[] names;
    /** Whether all topics had to be kept. */
    private boolean hasAllNames;
    private int segments;
    private final double[][] values = new double[NUMBERS][];
    private final int[] sizes = new int[NUMBERS];

    private final double[] limits;

    BundleSums(String name, double[] limits) {
        super(name);
        this.limits = limits;
    }

    BundleSums read(JsonParser in) throws IOException {
        if (in.currentToken() != JsonToken.START_OBJECT) {
            in.skipChildren();
            this.flaws = -1;
            return this;
        }
        while (in.nextToken() != JsonToken.END_OBJECT) {
            String name = in.currentName();
            JsonToken token = in.nextToken();
            int which = indexOf(name);
            if (which >= 0) {
                this.readNumbers(in, token, which);
            } else if (name.equals("topic")) {
                this.readTopics(in, token);
            } else if (name.equals("totals")) {
                this.readTotals(in);
            } else if (name.equals("bundle")) {
                this.name = token == JsonToken.VALUE_STRING ? in.getText() : null;
                in.skipChildren();
            } else {
                in.skipChildren();
            }
        }
        return this;
    }

    private void readTopics(JsonParser in, JsonToken token) throws IOException {
        this.topics = 0;
        this.kinds = 0;
        // Where the totals came first, as they do from a collector, most names need not be made.
        this.hasAllNames = this.near || !this.hasTotals;
        this.names = this.hasAllNames ? new String[16] : null;
        this.segments = 0;
        if (!this.begin(TOPIC, token == JsonToken.START_ARRAY, in)) {
            return;
        }
        while ((token = in.nextToken()) != JsonToken.END_ARRAY) {
            if (token != JsonToken.VALUE_STRING) {
                this.flaws |= 1 << TOPIC;
                in.skipChildren();
            } else {
                int kind = kind(in.getTextCharacters(), in.getTextOffset(), in.getTextLength());
                this.kinds |= kind;
                this.segments += isSegment(kind) ? 1 : 0;
                if (this.hasAllNames || isSegment(kind)) {
                    this.keep(in.getText());
                }
            }
            this.topics++;
        }
    }

    private void keep(String topic) {
        if (this.names == null || this.topics >= this.names.length) {
            int size = Math.max(16, 2 * this.topics);
            this.names = this.names == null ? new String[size] : Arrays.copyOf(this.names, size);
        }
        this.names[this.topics] = topic;
    }

    private void readNumbers(JsonParser in, JsonToken token, int which) throws IOException {
        this.sizes[which] = 0;
        if (!this.begin(which, token == JsonToken.START_ARRAY, in)) {
            return;
        }
        // It grows with the values read: the number of topics in the totals may be false.
        double[] found = this.values[which] == null ? new double[16] : this.values[which];
        int size = 0;
        while ((token = in.nextToken()) != JsonToken.END_ARRAY) {
            if (size == found.length) {
                found = Arrays.copyOf(found, 2 * size);
            }
            found[size] = value(in, token, which >= Wire.RATES.length);
            if (found[size++] < 0) {
                this.flaws |= 1 << which;
            }
        }
        this.values[which] = found;
        this.sizes[which] = size;
    }

    void readTotals(JsonParser in) throws IOException {
        this.hasTotals = false;
        if (!this.begin(TOTALS, in.currentToken() == JsonToken.START_OBJECT, in)) {
            return;
        }
        int good = 0;
        while (in.nextToken() != JsonToken.END_OBJECT) {
            String name = in.currentName();
            JsonToken token = in.nextToken();
            int which = name.equals("topics") ? Wire.TOPICS : indexOf(name);
            if (which < 0) {
                in.skipChildren();
                continue;
            }
            this.totals[which] = value(in, token, which >= Wire.RATES.length);
            good = this.totals[which] < 0 ? good & ~(1 << which) : good | 1 << which;
        }
        this.hasTotals = good == (1 << Wire.TOPICS + 1) - 1;
        this.near = isNear(this.totals[Wire.TOPICS], this.totals, 0, this.limits);
    }

    /** Begins to read a field: forgets a flaw of an earlier value of it. */
    private boolean begin(int field, boolean asItMustBe, JsonParser in) throws IOException {
        this.flaws &= ~(1 << field);
        if (!asItMustBe) {
            this.flaws |= 1 << field;
            in.skipChildren();
        }
        return asItMustBe;
    }

    /** The number, where it is valid for its field; -1 for anything else. */
    private static double value(JsonParser in, JsonToken token, boolean whole) throws IOException {
        if (token == JsonToken.VALUE_NUMBER_INT || (token == JsonToken.VALUE_NUMBER_FLOAT && !whole)) {
            double value = in.getDoubleValue();
            if (value >= 0 && value <= (whole ? Wire.MAX_COUNT : Wire.MAX_RATE)) {
                return value;
            }
        }
        in.skipChildren();
        return -1;
    }

    boolean isFlawed() {
        boolean flawed = this.flaws != 0 || !this.hasTotals || !isBundle(this.name);
        for (int i = 0; i < NUMBERS; i++) {
            flawed |= this.sizes[i] != this.topics;
        }
        // Totals were given twice, with the topics in between: the topics were not kept and now are needed, so refuse.
        return flawed || this.near && this.topics > 0 && !this.hasAllNames;
    }

    int kept() {
        return this.near ? this.topics : this.segments;
    }

    int kinds() {
        return this.topics > 0 ? this.kinds : this.totals[Wire.TOPICS] > 0 ? Wire.UNLISTED : 0;
    }

    double load(int which) {
        return this.topics == 0 ? this.totals[which] : which == Wire.TOPICS ? this.topics : this.sum(which);
    }

    void putTopics(ByteBuffer positions, ByteBuffer rates, ByteBuffer segments) {
        for (int i = 0; this.kept() > 0 && i < this.topics; i++) {
            String name = i < this.names.length ? this.names[i] : null;
            if (name == null || !this.near && !isSegment(name)) {
                continue;
            }
            positions.putLong(positionOf(name));
            segments.putLong(segment(name));
            for (int rate = 0; rate < Wire.RATES.length; rate++) {
                rates.putDouble(this.values[rate][i]);
            }
        }
    }

    private double sum(int which) {
        double sum = 0.0;
        for (int i = 0; i < this.topics; i++) {
            sum += this.values[which][i];
        }
        return sum;
    }

    private static int indexOf(String field) {
        for (int i = 0; i < NUMBERS; i++) {
            if ((i < Wire.RATES.length ? Wire.RATES[i] : Wire.COUNTS[i - Wire.RATES.length]).equals(field)) {
                return i;
            }
        }
        return -1;
    }
}

package trimtab;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonFactoryBuilder;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadFeature;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.zip.CRC32;
import org.apache.spark.sql.api.java.UDF5;

/**
 * A JSON record with its topics summed: Spark's JSON functions make an object of each number before anything can
 * be added to another, this looks at each once.
 *
 * "bundleStats" (a sweep's) and "lastStats" (a load report's) become "bundles", a list of
 *
 *     {"bundle": ..., "flawed": false, "load": [7 whole numbers],
 *      "positions": [...], "rates": [[...], [...], [...], [...]]}
 *
 * The load is that of the topics, summed in their order, or the totals where no topics are listed: thousandths of msg/s in
 * and out and of bytes/s in and out, then producers, consumers, topics. The last two fields are there for bundles whose totals reach one of
 * the limits: the topics' places on the hash ring, and their rates. Everything else stays as it is.
 *
 * call(record, topics, sessions, msg/s, bytes/s) is null for what is not one JSON object.
 */
public final class TopicsSummed implements UDF5 {
    private static final JsonFactory JSON =
        ((JsonFactoryBuilder) JsonFactory.builder()).enable(StreamReadFeature.USE_FAST_DOUBLE_PARSER).build();
    private static final String[] NUMBERS = {
        "msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut",
        "producerCount", "consumerCount", "storageSize", "backlogSize"
    };
    private static final int RATES = 4;
    private static final int SUMMED = 6;
    private static final double MAX_RATE = 1e12;
    private static final byte[][] MARKS = {bytes("\"bundleStats\""), bytes("\"lastStats\"")};

    public Object call(Object record, Object topics, Object sessions, Object msgRate, Object throughput)
            throws IOException {
        byte[] value = (byte[]) record;
        if (value == null || (!holds(value, MARKS[0]) && !holds(value, MARKS[1]))) {
            return value;
        }
        double[] limits = {number(topics), number(sessions), number(msgRate), number(throughput)};
        ByteArrayOutputStream out = new ByteArrayOutputStream(value.length / 4 + 64);
        try {
            JsonParser in = JSON.createParser(value);
            JsonGenerator json = JSON.createGenerator(out);
            if (in.nextToken() != JsonToken.START_OBJECT) {
                return null;
            }
            object(in, json, limits);
            json.close();
            return in.nextToken() == null ? out.toByteArray() : null;
        } catch (IOException notJson) {
            return null;
        }
    }

    private static void object(JsonParser in, JsonGenerator json, double[] limits) throws IOException {
        json.writeStartObject();
        while (in.nextToken() != JsonToken.END_OBJECT) {
            String name = in.getCurrentName();
            JsonToken token = in.nextToken();
            if (name.equals("report") && token == JsonToken.START_OBJECT) {
                json.writeFieldName(name);
                object(in, json, limits);
            } else if (name.equals("bundleStats") && token == JsonToken.START_ARRAY) {
                json.writeArrayFieldStart("bundles");
                while (in.nextToken() != JsonToken.END_ARRAY) {
                    new Bundle(limits).read(in).write(json);
                }
                json.writeEndArray();
            } else if (name.equals("lastStats") && token == JsonToken.START_OBJECT) {
                json.writeArrayFieldStart("bundles");
                while (in.nextToken() != JsonToken.END_OBJECT) {
                    Bundle bundle = new Bundle(limits);
                    bundle.name = in.getCurrentName();
                    in.nextToken();
                    bundle.readTotals(in);
                    bundle.write(json);
                }
                json.writeEndArray();
            } else {
                json.writeFieldName(name);
                json.copyCurrentStructure(in);
            }
        }
        json.writeEndObject();
    }

    /** One bundle while it is read. */
    private static final class Bundle {
        String name;
        boolean flawed;
        boolean hasTotals;
        double[] totals = new double[7];
        int topics;
        String[] names = new String[16];
        boolean near;
        double[][] values = new double[8][];
        int[] sizes = new int[8];

        final double[] limits;

        Bundle(double[] limits) {
            this.limits = limits;
        }

        Bundle read(JsonParser in) throws IOException {
            if (in.currentToken() != JsonToken.START_OBJECT) {
                in.skipChildren();
                this.flawed = true;
                return this;
            }
            while (in.nextToken() != JsonToken.END_OBJECT) {
                String field = in.getCurrentName();
                JsonToken token = in.nextToken();
                int which = indexOf(field);
                if (which >= 0) {
                    this.readNumbers(in, token, which);
                } else if (field.equals("topic")) {
                    this.readTopics(in, token);
                } else if (field.equals("totals")) {
                    this.readTotals(in);
                } else if (field.equals("bundle") && token == JsonToken.VALUE_STRING) {
                    this.name = in.getText();
                } else {
                    in.skipChildren();
                }
            }
            return this;
        }

        void readTopics(JsonParser in, JsonToken token) throws IOException {
            this.topics = 0;
            if (token != JsonToken.START_ARRAY) {
                this.flawed = true;
                in.skipChildren();
                return;
            }
            // Where the totals came first, as they do from a collector, most names need not even be decoded.
            boolean kept = this.near || !this.hasTotals;
            while ((token = in.nextToken()) != JsonToken.END_ARRAY) {
                if (token != JsonToken.VALUE_STRING) {
                    this.flawed = true;
                    in.skipChildren();
                } else if (kept) {
                    if (this.topics >= this.names.length) {
                        this.names = (String[]) Arrays.copyOf(this.names, 2 * this.topics);
                    }
                    this.names[this.topics] = in.getText();
                }
                this.topics++;
            }
        }

        void readNumbers(JsonParser in, JsonToken token, int which) throws IOException {
            if (token != JsonToken.START_ARRAY) {
                this.flawed = true;
                in.skipChildren();
                return;
            }
            double[] found = new double[Math.max(16, this.topics)];
            int size = 0;
            while ((token = in.nextToken()) != JsonToken.END_ARRAY) {
                if (size == found.length) {
                    found = Arrays.copyOf(found, 2 * size);
                }
                found[size++] = this.value(in, token, which >= RATES);
            }
            this.values[which] = found;
            this.sizes[which] = size;
        }

        void readTotals(JsonParser in) throws IOException {
            if (in.currentToken() != JsonToken.START_OBJECT) {
                this.flawed = true;
                in.skipChildren();
                return;
            }
            int seen = 0;
            while (in.nextToken() != JsonToken.END_OBJECT) {
                String field = in.getCurrentName();
                JsonToken token = in.nextToken();
                int which = field.equals("topics") ? SUMMED : indexOf(field);
                if (which >= 0 && which <= SUMMED) {
                    this.totals[which] = this.value(in, token, which >= RATES);
                    seen |= 1 << which;
                } else {
                    in.skipChildren();
                }
            }
            this.hasTotals = seen == (1 << 7) - 1;
            double[] t = this.totals;
            this.near = t[6] >= this.limits[0] || t[4] + t[5] >= this.limits[1]
                || t[0] + t[1] >= this.limits[2] || t[2] + t[3] >= this.limits[3];
        }

        /** A number as it must be; anything else makes the bundle flawed. */
        double value(JsonParser in, JsonToken token, boolean whole) throws IOException {
            if (token == JsonToken.VALUE_NUMBER_INT || (token == JsonToken.VALUE_NUMBER_FLOAT && !whole)) {
                double value = in.getDoubleValue();
                if (value >= 0 && (whole ? value < 9.2e18 : value <= MAX_RATE)) {
                    return value;
                }
            }
            this.flawed = true;
            in.skipChildren();
            return 0.0;
        }

        void write(JsonGenerator json) throws IOException {
            for (int i = 0; i < NUMBERS.length; i++) {
                this.flawed |= this.sizes[i] != this.topics;
            }
            this.flawed |= !this.hasTotals || !isBundle(this.name);
            json.writeStartObject();
            json.writeStringField("bundle", this.name);
            json.writeBooleanField("flawed", this.flawed);
            if (!this.flawed) {
                json.writeArrayFieldStart("load");
                for (int i = 0; i <= SUMMED; i++) {
                    double load = this.topics == 0 ? this.totals[i] : i == SUMMED ? this.topics : this.sum(i);
                    json.writeNumber((long) (i < RATES ? Math.rint(load * 1000) : load));
                }
                json.writeEndArray();
                if (this.topics > 0 && this.near) {
                    this.writeTopics(json);
                }
            }
            json.writeEndObject();
        }

        void writeTopics(JsonGenerator json) throws IOException {
            json.writeArrayFieldStart("positions");
            for (int i = 0; i < this.topics; i++) {
                CRC32 crc = new CRC32();
                byte[] name = bytes(this.names[i]);
                crc.update(name, 0, name.length);
                json.writeNumber(crc.getValue());
            }
            json.writeEndArray();
            json.writeArrayFieldStart("rates");
            for (int rate = 0; rate < RATES; rate++) {
                json.writeStartArray();
                for (int i = 0; i < this.topics; i++) {
                    json.writeNumber(this.values[rate][i]);
                }
                json.writeEndArray();
            }
            json.writeEndArray();
        }

        double sum(int which) {
            double sum = 0.0;
            for (int i = 0; i < this.topics; i++) {
                sum += this.values[which][i];
            }
            return sum;
        }
    }

    /** tenant/namespace/0xLLLLLLLL_0xUUUUUUUU, the lower end below the upper one; or with a cluster in it. */
    static boolean isBundle(String name) {
        int at = name == null ? -1 : name.lastIndexOf('/');
        if (at < 3 || name.length() - at != 22 || name.charAt(at + 11) != '_') {
            return false;
        }
        long lower = hexadecimal(name, at + 1), upper = hexadecimal(name, at + 12);
        int parts = 1, length = 0;
        for (int i = 0; i < at; i++) {
            if (name.charAt(i) != '/') {
                length++;
            } else if (length == 0) {
                return false;
            } else {
                parts++;
                length = 0;
            }
        }
        return length > 0 && (parts == 2 || parts == 3) && lower >= 0 && lower < upper;
    }

    private static long hexadecimal(String text, int at) {
        if (text.charAt(at) != '0' || text.charAt(at + 1) != 'x') {
            return -1;
        }
        long value = 0;
        for (int i = at + 2; i < at + 10; i++) {
            char c = text.charAt(i);
            int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
            if (digit < 0) {
                return -1;
            }
            value = value * 16 + digit;
        }
        return value;
    }

    private static int indexOf(String field) {
        for (int i = 0; i < NUMBERS.length; i++) {
            if (NUMBERS[i].equals(field)) {
                return i;
            }
        }
        return -1;
    }

    private static boolean holds(byte[] value, byte[] mark) {
        int end = value.length - mark.length;
        for (int i = 0; i <= end; i++) {
            int n = 0;
            while (n < mark.length && value[i + n] == mark[n]) {
                n++;
            }
            if (n == mark.length) {
                return true;
            }
        }
        return false;
    }

    private static double number(Object value) {
        return ((Number) value).doubleValue();
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}

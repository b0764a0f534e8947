package trimtab;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonFactoryBuilder;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.StreamReadFeature;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.api.java.UDF5;

/**
 * A JSON record with its topics summed: Spark's JSON functions make an object of each number before anything can
 * be added to another, this looks at each once.
 *
 * "bundleStats" (a sweep's) and "lastStats" (a load report's) become lists of what BundleSums writes; everything else
 * stays as it is.
 *
 * call(record, topics, sessions, msg/s, bytes/s) is null for what is not one JSON object in UTF-8, and for one that
 * has something else where text must be: Spark's parser would take 5 for "5".  So what is not null, Spark's lenient
 * parser and the strict one of controller.wire read in the same way.
 */
public final class TopicsSummed implements UDF5 {
    /** As deep as the parser of controller.wire goes. */
    private static final int DEPTH = 200;
    private static final JsonFactory JSON =
        ((JsonFactoryBuilder) JsonFactory.builder())
            .enable(StreamReadFeature.USE_FAST_DOUBLE_PARSER)
            .streamReadConstraints(StreamReadConstraints.builder().maxNestingDepth(DEPTH).build())
            .build();
    private static final byte[][] MARKS = {bytes("\"bundleStats\""), bytes("\"lastStats\"")};
    private static final Set ADDRESSES = new HashSet(Arrays.asList(new Object[] {"webServiceUrl", "webServiceUrlTls"}));
    private static final Set TEXTS = new HashSet(
        Arrays.asList(new Object[] {"type", "cluster", "broker", "sweepId", "bundle", "topic"})
    );

    static {
        TEXTS.addAll(ADDRESSES);
    }

    public Object call(Object record, Object topics, Object sessions, Object msgRate, Object throughput) {
        byte[] value = (byte[]) record;
        if (value == null) {
            return null;
        }
        double[] limits = {number(topics), number(sessions), number(msgRate), number(throughput)};
        try {
            checkText(value);
            JsonParser in = JSON.createParser(value);
            if (in.nextToken() != JsonToken.START_OBJECT) {
                return null;
            }
            byte[] summed = value;
            if (holds(value, MARKS[0]) || holds(value, MARKS[1])) {
                ByteArrayOutputStream out = new ByteArrayOutputStream(value.length / 4 + 64);
                JsonGenerator json = JSON.createGenerator(out);
                sum(in, json, limits, TEXTS);
                json.close();
                summed = out.toByteArray();
            } else {
                check(in);
            }
            return in.nextToken() == null ? summed : null;
        } catch (IOException notJson) {
            return null;
        }
    }

    private static void sum(JsonParser in, JsonGenerator json, double[] limits, Set texts) throws IOException {
        json.writeStartObject();
        while (in.nextToken() != JsonToken.END_OBJECT) {
            String name = in.getCurrentName();
            JsonToken token = in.nextToken();
            checkField(name, token, texts);
            json.writeFieldName(name);
            if (name.equals("report") && token == JsonToken.START_OBJECT) {
                sum(in, json, limits, ADDRESSES);
            } else if (name.equals("bundleStats") && token == JsonToken.START_ARRAY) {
                json.writeStartArray();
                while (in.nextToken() != JsonToken.END_ARRAY) {
                    new BundleSums(null, limits).read(in).write(json);
                }
                json.writeEndArray();
            } else if (name.equals("lastStats") && token == JsonToken.START_OBJECT) {
                sumReport(in, json, limits);
            } else if ((name.equals("bundleStats") || name.equals("lastStats")) && token != JsonToken.VALUE_NULL) {
                in.skipChildren();
                json.writeNumber(0); // no list, as what is there is none
            } else {
                json.copyCurrentStructure(in);
            }
        }
        json.writeEndObject();
    }

    private static void sumReport(JsonParser in, JsonGenerator json, double[] limits) throws IOException {
        Map bundles = new LinkedHashMap();
        while (in.nextToken() != JsonToken.END_OBJECT) {
            BundleSums bundle = new BundleSums(in.getCurrentName(), limits);
            in.nextToken();
            bundle.readTotals(in);
            bundle.follow((BundleSums) bundles.put(bundle.name, bundle));
        }
        json.writeStartArray();
        for (Iterator i = bundles.values().iterator(); i.hasNext(); ) {
            ((BundleSums) i.next()).write(json);
        }
        json.writeEndArray();
    }

    /** Walks through the rest of the object. */
    private static void check(JsonParser in) throws IOException {
        while (in.nextToken() != JsonToken.END_OBJECT) {
            String name = in.getCurrentName();
            JsonToken token = in.nextToken();
            if (name.equals("report") && token == JsonToken.START_OBJECT) {
                while (in.nextToken() != JsonToken.END_OBJECT) {
                    String inner = in.getCurrentName();
                    checkField(inner, in.nextToken(), ADDRESSES);
                    in.skipChildren();
                }
            } else {
                checkField(name, token, TEXTS);
                in.skipChildren();
            }
        }
    }

    private static void checkField(String name, JsonToken token, Set texts) throws IOException {
        if (token != JsonToken.VALUE_STRING && token != JsonToken.VALUE_NULL && texts.contains(name)) {
            throw new IOException(name + " is no text");
        }
    }

    /** UTF-8 without a byte order mark, and no half of a surrogate pair in it, not as an escape either. */
    private static void checkText(byte[] value) throws IOException {
        boolean ascii = true;
        for (int i = 0; i < value.length; i++) {
            byte b = value[i];
            if (b < 0) {
                ascii = false;
            } else if (b == '\\') {
                int unit = escaped(value, i);
                if (unit >= 0xDC00 && unit <= 0xDFFF) {
                    throw new IOException("low surrogate first");
                } else if (unit >= 0xD800 && unit <= 0xDBFF) {
                    int low = escaped(value, i + 6);
                    if (low < 0xDC00 || low > 0xDFFF) {
                        throw new IOException("high surrogate alone");
                    }
                    i += 10;
                }
                i++; // whatever it is, it is no backslash that begins an escape
            }
        }
        if (!ascii) {
            if (value[0] < 0) {
                throw new IOException("byte order mark");
            }
            StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(value));
        }
    }

    /** The UTF-16 code unit that the escape at *at* stands for; -1 where none begins. */
    private static int escaped(byte[] value, int at) {
        if (at + 6 > value.length || value[at] != '\\' || value[at + 1] != 'u') {
            return -1;
        }
        int unit = 0;
        for (int i = at + 2; i < at + 6; i++) {
            int digit = Character.digit((char) value[i], 16);
            if (digit < 0) {
                return -1;
            }
            unit = unit * 16 + digit;
        }
        return unit;
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

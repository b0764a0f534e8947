package trimtab;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonFactoryBuilder;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.StreamReadFeature;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The fields of a JSON object that the query uses; its bundles are summed while they are read.
 *
 * A field is checked when it is used: each getter throws Refused where the value is not valid.  So a field that a
 * type of record does not have may hold anything; where a field is given twice, the last counts, as in controller.wire.
 */
final class Fields {
    /** The deepest nesting that the parser of controller.wire accepts. */
    private static final int DEPTH = 200;
    private static final JsonFactory JSON =
        ((JsonFactoryBuilder) JsonFactory.builder())
            .recyclerPool(new KeptBuffers())
            .enable(StreamReadFeature.USE_FAST_DOUBLE_PARSER)
            .streamReadConstraints(
                StreamReadConstraints.builder()
                    .maxNestingDepth(DEPTH).maxNameLength(Integer.MAX_VALUE).maxNumberLength(Wire.MOST_DIGITS).build()
            )
            .build();
    private static final String BUNDLES = "bundleStats", REPORTED_BUNDLES = "lastStats", ROSTER = "roster";
    /** Of each name its place among the values: first the plain ones, then objects, then the others. */
    private static final Map<String, Integer> PLACES = new HashMap<>();
    /** Stands for a value of a shape that no field has. */
    private static final Object SPOILT = new Object();

    static {
        String[] others = {BUNDLES, REPORTED_BUNDLES, ROSTER};
        for (String[] names : List.of(Wire.PLAIN, Wire.OBJECTS, others)) {
            for (String name : names) {
                PLACES.put(name, PLACES.size());
            }
        }
        learn(PLACES.keySet());
        learn(Set.of("totals", "topics"));
    }

    /** A record is flawed; controller.wire finds out how. */
    static final class Refused extends Exception {
        private static final long serialVersionUID = 1L;

        Refused() {
            super(null, null, false, false);
        }
    }

    /** The value of a field that holds bundles: a type of its own, which a value can be asked for. */
    private static final class Bundles {
        final List<BundleSums> all;

        Bundles(List<BundleSums> all) {
            this.all = all;
        }
    }

    /** Null for a field that is not there. */
    private final Object[] values = new Object[PLACES.size()];

    /** The fields of the JSON object in *value*; Refused where it is not a JSON object. */
    static Fields of(byte[] value, double[] limits) throws Refused {
        try {
            checkText(value);
            // Not read to its end, and not closed: the parser would keep the names of its fields for later records,
            // and one record could fill that table for all.
            JsonParser in = JSON.createParser(value);
            if (in.nextToken() != JsonToken.START_OBJECT) {
                throw new Refused();
            }
            Fields fields = new Fields(in, limits);
            for (int i = (int) in.currentLocation().getByteOffset(); i < value.length; i++) {
                if (value[i] != ' ' && value[i] != '\n' && value[i] != '\r' && value[i] != '\t') {
                    throw new Refused();
                }
            }
            return fields;
        } catch (IOException notJson) {
            throw new Refused();
        }
    }

    /** Makes the parser know the names of our fields in advance, so that it learns none from a record. */
    private static void learn(Set<String> names) {
        StringBuilder sample = new StringBuilder("{");
        for (String name : names) {
            sample.append(sample.length() == 1 ? "" : ",").append('"').append(name).append("\":0");
        }
        try {
            JsonParser in = JSON.createParser(sample.append('}').toString().getBytes(StandardCharsets.UTF_8));
            while (in.nextToken() != null) {
                // only for the names
            }
            in.close();
        } catch (IOException never) {
            throw new IllegalStateException(never);
        }
    }

    private Fields(JsonParser in, double[] limits) throws IOException {
        while (in.nextToken() != JsonToken.END_OBJECT) {
            String name = in.currentName();
            JsonToken token = in.nextToken();
            Integer place = PLACES.get(name);
            if (place == null) {
                in.skipChildren();
            } else {
                this.values[place] = token == JsonToken.VALUE_NULL ? null : read(in, name, place, token, limits);
            }
        }
    }

    private static Object read(
        JsonParser in, String name, int place, JsonToken token, double[] limits
    ) throws IOException {
        if (place < Wire.PLAIN.length) {
            if (token == JsonToken.VALUE_STRING) {
                return in.getText();
            } else if (token == JsonToken.VALUE_NUMBER_FLOAT) {
                return in.getDoubleValue();
            } else if (token == JsonToken.VALUE_NUMBER_INT) {
                if (in.getNumberType() == JsonParser.NumberType.BIG_INTEGER) {
                    return in.getDoubleValue();
                }
                return in.getLongValue();
            } else if (token == JsonToken.VALUE_FALSE) {
                return Boolean.FALSE;
            }
        } else if (place < Wire.PLAIN.length + Wire.OBJECTS.length) {
            if (token == JsonToken.START_OBJECT) {
                return new Fields(in, limits);
            }
        } else if (name.equals(BUNDLES)) {
            if (token == JsonToken.START_ARRAY) {
                return orSpoilt(readBundles(in, limits));
            }
        } else if (name.equals(ROSTER)) {
            if (token == JsonToken.START_ARRAY) {
                return skipElements(in);
            }
        } else if (token == JsonToken.START_OBJECT) {
            return orSpoilt(readTotals(in, limits));
        }
        in.skipChildren();
        return SPOILT;
    }

    private static Object orSpoilt(List<BundleSums> found) {
        return found == null ? SPOILT : new Bundles(found);
    }

    /** The bundles of a sweep; null if one is flawed, and then none is kept, so that a flawed record takes no memory. */
    private static List<BundleSums> readBundles(JsonParser in, double[] limits) throws IOException {
        List<BundleSums> found = new ArrayList<>();
        while (in.nextToken() != JsonToken.END_ARRAY) {
            BundleSums bundle = new BundleSums(null, limits).read(in);
            if (bundle.isFlawed()) {
                found = null;
            } else if (found != null) {
                found.add(bundle);
            }
        }
        return found;
    }

    /** The bundles of a report; where one is given twice, the last counts, but a flaw of either refuses the record. */
    private static List<BundleSums> readTotals(JsonParser in, double[] limits) throws IOException {
        Map<String, BundleSums> found = new LinkedHashMap<>();
        while (in.nextToken() != JsonToken.END_OBJECT) {
            BundleSums bundle = new BundleSums(in.currentName(), limits);
            in.nextToken();
            bundle.readTotals(in);
            if (bundle.isFlawed()) {
                found = null;
            } else if (found != null) {
                found.put(bundle.name, bundle);
            }
        }
        return found == null ? null : new ArrayList<>(found.values());
    }

    private static long skipElements(JsonParser in) throws IOException {
        long found = 0;
        while (in.nextToken() != JsonToken.END_ARRAY) {
            in.skipChildren();
            found++;
        }
        return found;
    }

    boolean has(String name) {
        return this.get(name) != null;
    }

    private Object get(String name) {
        return this.values[PLACES.get(name)];
    }

    /** A text, which may be empty; null where there is none. */
    String textOrNull(String name) throws Refused {
        Object value = this.get(name);
        if (value != null && !(value instanceof String)) {
            throw new Refused();
        }
        return (String) value;
    }

    /** Text that is not empty. */
    String text(String name) throws Refused {
        String value = this.textOrNull(name);
        if (value == null || value.isEmpty()) {
            throw new Refused();
        }
        return value;
    }

    /** A name: see Names. */
    String name(String name) throws Refused {
        String value = this.textOrNull(name);
        if (!Names.isName(value)) {
            throw new Refused();
        }
        return value;
    }

    /** A whole number from 0 on. */
    long count(String name) throws Refused {
        return this.count(name, 0, Long.MAX_VALUE);
    }

    long count(String name, long least, long most) throws Refused {
        if (this.get(name) instanceof Long count && count >= least && count <= most) {
            return count;
        }
        throw new Refused();
    }

    double number(String name, double least, double most) throws Refused {
        double number = this.get(name) instanceof Number found ? found.doubleValue() : Double.NaN;
        if (number >= least && number <= most) {
            return number;
        }
        throw new Refused();
    }

    /** Whether it is the text that Jackson writes for a number that is none. */
    boolean isNaN(String name) {
        return "NaN".equals(this.get(name));
    }

    boolean isFalse(String name) {
        return Boolean.FALSE.equals(this.get(name));
    }

    Fields object(String name) throws Refused {
        if (this.get(name) instanceof Fields found) {
            return found;
        }
        throw new Refused();
    }

    /** None of them is flawed. */
    List<BundleSums> bundles(String name) throws Refused {
        if (this.get(name) instanceof Bundles found) {
            return found.all;
        }
        throw new Refused();
    }

    /** Checks that it is UTF-8 without a byte order mark, and without half a surrogate pair, also as an escape. */
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
}

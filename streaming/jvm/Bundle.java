package trimtab;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.zip.CRC32;

/**
 * A bundle of a sweep or a load report: its LOAD, and its topics where they are kept one by one.
 *
 * The load is that of the topics, summed in their order, or the totals where no topics are listed: thousandths of
 * msg/s in and out and of bytes/s in and out, then producers, consumers, topics, and the flags of the kinds of topics.
 */
abstract class Bundle {
    private static final byte[] NON_PERSISTENT_DOMAIN = "non-persistent://".getBytes(StandardCharsets.US_ASCII);
    /** As brokers write it; controller.model.segment_code has the same. */
    private static final Pattern SEGMENT = Pattern.compile(
        "segment://(.+)/([0-9a-f]{4})-([0-9a-f]{4})-[0-9]{1,19}", Pattern.DOTALL
    );
    private static final byte[] SEGMENT_DOMAIN = "segment://".getBytes(StandardCharsets.US_ASCII);

    String name;

    Bundle(String name) {
        this.name = name;
    }

    /** How many topics are kept one by one: all, or the segments of scalable topics. */
    abstract int kept();

    /** One of its LOAD numbers but the kinds, rates as they are. */
    abstract double load(int which);

    /** The flags of the kinds of its topics; 0 without any. */
    abstract int kinds();

    /** Of the topics kept: their places on the hash ring, the rates of one after the other, and their segments. */
    abstract void putTopics(ByteBuffer positions, ByteBuffer rates, ByteBuffer segments);

    final void putLoad(ByteBuffer out) {
        for (int i = 0; i < Wire.KINDS; i++) {
            out.putLong(i < Wire.RATES.length ? thousandths(this.load(i)) : (long) this.load(i));
        }
        out.putLong(this.kinds());
    }

    /** The flags of the topic whose name, in UTF-8, has *length* bytes from *from* on. */
    static int kind(byte[] bytes, int from, int length) {
        // Nearly every name differs in its first letter.
        if (length > 0 && bytes[from] == 'n' && starts(bytes, from, length, NON_PERSISTENT_DOMAIN)) {
            return Wire.NON_PERSISTENT;
        }
        return length > 0 && bytes[from] == 's' && starts(bytes, from, length, SEGMENT_DOMAIN)
            ? Wire.PERSISTENT | Wire.SEGMENTS : Wire.PERSISTENT;
    }

    /** The flags of the topic whose name has *length* characters from *from* on. */
    static int kind(char[] name, int from, int length) {
        if (starts(name, from, length, NON_PERSISTENT_DOMAIN)) {
            return Wire.NON_PERSISTENT;
        }
        return starts(name, from, length, SEGMENT_DOMAIN) ? Wire.PERSISTENT | Wire.SEGMENTS : Wire.PERSISTENT;
    }

    private static boolean starts(byte[] name, int from, int length, byte[] domain) {
        return length >= domain.length && Arrays.equals(name, from, from + domain.length, domain, 0, domain.length);
    }

    private static boolean starts(char[] name, int from, int length, byte[] domain) {
        if (length < domain.length) {
            return false;
        }
        for (int i = 0; i < domain.length; i++) {
            if (name[from + i] != domain[i]) {
                return false;
            }
        }
        return true;
    }

    static long thousandths(double rate) {
        return (long) Math.rint(rate * 1000);
    }

    /** Whether a topic's name is that of a segment, or begins as one. */
    static boolean isSegment(String topic) {
        return topic.startsWith("segment://");
    }

    /** Whether *kind*, of one topic, is that of a segment. */
    static boolean isSegment(int kind) {
        return (kind & Wire.SEGMENTS) != 0;
    }

    /** The topic's code: the place of its scalable topic on the ring, and the range of its keys; 0 for no segment. */
    static long segment(String topic) {
        // Most topics are no segments, and each record of a topic asks.
        if (!isSegment(topic)) {
            return 0;
        }
        Matcher match = SEGMENT.matcher(topic);
        if (!match.matches()) {
            return 0;
        }
        long start = Long.parseLong(match.group(2), 16), end = Long.parseLong(match.group(3), 16);
        return start > end ? 0 : positionOf("topic://" + match.group(1)) << 32 | start << 16 | end;
    }

    static long positionOf(String topic) {
        byte[] bytes = topic.getBytes(StandardCharsets.UTF_8);
        return position(bytes, 0, bytes.length);
    }

    /** A topic's place on the hash ring. */
    static long position(byte[] bytes, int from, int length) {
        CRC32 crc = new CRC32();
        crc.update(bytes, from, length);
        return crc.getValue();
    }

    /** Whether so many *topics*, or *sums* (four rates, producers, consumers, from *at* on), reach one of the limits. */
    static boolean isNear(double topics, double[] sums, int at, double[] limits) {
        return topics >= limits[0]
            || sums[at + 4] + sums[at + 5] >= limits[1]
            || sums[at] + sums[at + 1] >= limits[2]
            || sums[at + 2] + sums[at + 3] >= limits[3];
    }

    /** tenant/namespace/0xLLLLLLLL_0xUUUUUUUU, the lower end below the upper one; or with a cluster in it. */
    static boolean isBundle(String name) {
        int at = Names.isName(name) ? name.lastIndexOf('/') : -1;
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
}

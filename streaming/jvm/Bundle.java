package trimtab;

import java.nio.ByteBuffer;

/**
 * What is left of a bundle of a sweep or a load report: its LOAD, and its topics where they are kept one by one.
 *
 * The load is that of the topics, summed in their order, or the totals where no topics are listed: thousandths of
 * msg/s in and out and of bytes/s in and out, then producers, consumers, topics.
 */
abstract class Bundle {
    /** How many numbers a load is. */
    static final int LOAD = 7;

    String name;

    Bundle(String name) {
        this.name = name;
    }

    /** How many topics are kept one by one: all or none. */
    abstract int kept();

    /** Its LOAD numbers. */
    abstract void putLoad(ByteBuffer out);

    /** Of the topics kept: their places on the hash ring, and the rates of one after the other. */
    abstract void putTopics(ByteBuffer positions, ByteBuffer rates);

    /** tenant/namespace/0xLLLLLLLL_0xUUUUUUUU, the lower end below the upper one; or with a cluster in it. */
    static boolean isBundle(String name) {
        int at = name == null ? -1 : name.lastIndexOf('/');
        if (at < 3 || name.length() - at != 22 || name.charAt(at + 11) != '_') {
            return false;
        }
        long lower = hexadecimal(name, at + 1), upper = hexadecimal(name, at + 12);
        int parts = 1, length = 0;
        for (int i = 0; i < at; i++) {
            if (name.charAt(i) == '\n') {
                return false; // names lie one a line
            } else if (name.charAt(i) != '/') {
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

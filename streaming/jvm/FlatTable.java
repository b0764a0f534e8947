package trimtab;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * A table of a FlatBuffer, which is what Arrow describes its messages in.
 *
 * Each place is checked against the bytes there are before it is read.  controller/wire/flat_table.py reads the same.
 */
final class FlatTable {
    private final ByteBuffer in;
    private final int at;
    /** Where the places of the fields are listed, and how long that list is in bytes, its head included. */
    private final int list;
    private final int listed;

    /** The table that a FlatBuffer begins with. */
    static FlatTable first(byte[] value, int from, int length) throws Fields.Refused {
        ByteBuffer in = ArrowStream.slice(value, from, length);
        return new FlatTable(in, target(in, checked(in, 0, 4)));
    }

    private FlatTable(ByteBuffer in, long at) throws Fields.Refused {
        this.in = in;
        this.at = checked(in, at, 4);
        this.list = checked(in, at - in.getInt(this.at), 4);
        this.listed = in.getShort(this.list) & 0xFFFF;
    }

    /** The field *nth*, a number of so many bytes (unsigned where it has one or two), or *other* where it has none. */
    long number(int nth, int bytes, long other) throws Fields.Refused {
        int place = this.place(nth, bytes);
        if (place < 0) {
            return other;
        }
        return bytes == 1 ? this.in.get(place) & 0xFF
            : bytes == 2 ? this.in.getShort(place) & 0xFFFF
            : bytes == 4 ? this.in.getInt(place)
            : this.in.getLong(place);
    }

    /** The field *nth*, a table; Refused where it has none. */
    FlatTable table(int nth) throws Fields.Refused {
        FlatTable found = this.tableOrNull(nth);
        if (found == null) {
            throw new Fields.Refused();
        }
        return found;
    }

    FlatTable tableOrNull(int nth) throws Fields.Refused {
        int place = this.place(nth, 4);
        return place < 0 ? null : new FlatTable(this.in, target(this.in, place));
    }

    /** The field *nth*, a list of elements of so many bytes; of none where there is no list. */
    ByteBuffer list(int nth, int bytes) throws Fields.Refused {
        int place = this.place(nth, 4);
        if (place < 0) {
            return ByteBuffer.allocate(0);
        }
        int start = checked(this.in, target(this.in, place), 4);
        long length = (this.in.getInt(start) & 0xFFFFFFFFL) * bytes;
        checked(this.in, start + 4L, length);
        return ((ByteBuffer) this.in.slice(start + 4, (int) length)).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** The field *nth*, a list of so many tables at most. */
    FlatTable[] tables(int nth, int most) throws Fields.Refused {
        ByteBuffer places = this.list(nth, 4);
        if (places.limit() > 4 * most) {
            throw new Fields.Refused();
        }
        FlatTable[] found = new FlatTable[places.limit() / 4];
        int start = found.length == 0 ? 0 : (int) target(this.in, this.place(nth, 4)) + 4;
        for (int i = 0; i < found.length; i++) {
            found[i] = new FlatTable(this.in, target(this.in, start + 4 * i));
        }
        return found;
    }

    /** The field *nth*, text; empty where there is none. */
    byte[] text(int nth) throws Fields.Refused {
        ByteBuffer found = this.list(nth, 1);
        byte[] text = new byte[found.limit()];
        found.get(text);
        return text;
    }

    /** How long that text is in bytes. */
    int textLength(int nth) throws Fields.Refused {
        return this.list(nth, 1).limit();
    }

    /** Where the field *nth* lies, of so many bytes; -1 where the table has none. */
    private int place(int nth, int bytes) throws Fields.Refused {
        int entry = 4 + 2 * nth;
        if (entry + 2 > this.listed) {
            return -1;
        }
        int offset = this.in.getShort(checked(this.in, (long) this.list + entry, 2)) & 0xFFFF;
        return offset == 0 ? -1 : checked(this.in, (long) this.at + offset, bytes);
    }

    /** Where the offset at *place* points. */
    private static long target(ByteBuffer in, int place) {
        return place + (in.getInt(place) & 0xFFFFFFFFL);
    }

    /** *place*, where so many bytes lie from it on. */
    private static int checked(ByteBuffer in, long place, long bytes) throws Fields.Refused {
        if (place < 0 || bytes > in.limit() || place > in.limit() - bytes) {
            throw new Fields.Refused();
        }
        return (int) place;
    }
}

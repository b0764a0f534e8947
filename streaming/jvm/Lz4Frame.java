package trimtab;

import java.nio.ByteBuffer;
import org.apache.commons.codec.digest.XXHash32;

/**
 * One LZ4 frame of version 1, without a dictionary and without checksums of its blocks: header, blocks, end mark, and
 * nothing behind it.
 *
 * It accepts the frames that Arrow's own library accepts, with which controller.wire reads them, and gives the same
 * bytes; other libraries for Java are stricter or laxer.  See lz4_Frame_format.md and lz4_Block_format.md of LZ4.
 */
final class Lz4Frame {
    private static final int MAGIC = 0x184D2204;
    private static final int INDEPENDENT = 0x20, CONTENT_SIZE = 0x08, CONTENT_CHECKSUM = 0x04;
    /** A length of 15 in a token goes on in the bytes that follow. */
    private static final int LONG = 15;
    private static final int SHORTEST_MATCH = 4;
    /** So many bytes before a block's end, packed or unpacked, no further sequence begins to copy; see its format. */
    private static final int LAST_PACKED = 8, LAST_UNPACKED = 12, LAST_LITERALS = 5;

    private final ByteBuffer packed;
    private final byte[] out;
    /** The next byte to read, and the next one to write. */
    private int at;
    private int to;

    private Lz4Frame(ByteBuffer packed, byte[] out) {
        this.packed = packed;
        this.out = out;
    }

    /** Unpacks the frame *packed*, little-endian, into *out*, which it must fill. */
    static void unpack(ByteBuffer packed, byte[] out) throws Fields.Refused {
        new Lz4Frame(packed, out).read();
    }

    private void read() throws Fields.Refused {
        int length = this.packed.limit();
        refuse(length < 7 || this.packed.getInt(0) != MAGIC);
        int flags = this.packed.get(4), descriptor = this.packed.get(5);
        refuse((flags & 0xD3) != 0x40 || (descriptor & 0xCF) != 0x40);
        int header = (flags & CONTENT_SIZE) != 0 ? 14 : 6;
        refuse(length <= header || this.packed.get(header) != (byte) (hash(this.packed.slice(4, header - 4)) >> 8));
        long content = header == 14 ? this.packed.getLong(6) : 0;
        refuse(content != 0 && content != this.out.length); // 0: unknown, says the library
        this.at = header + 1;
        this.readBlocks(1 << (8 + 2 * (descriptor >> 4)), (flags & INDEPENDENT) != 0);
        refuse(this.to != this.out.length);
        if ((flags & CONTENT_CHECKSUM) != 0) {
            refuse(this.at != length - 4 || this.packed.getInt(this.at) != hash(ByteBuffer.wrap(this.out)));
        } else {
            refuse(this.at != length);
        }
    }

    private void readBlocks(int most, boolean independent) throws Fields.Refused {
        while (true) {
            refuse(this.at > this.packed.limit() - 4);
            int size = this.packed.getInt(this.at), block = size & 0x7FFFFFFF;
            this.at += 4;
            if (size == 0) {
                return;
            }
            refuse(block == 0 || block > most || block > this.packed.limit() - this.at);
            if (size < 0) {
                this.copy(block);
            } else {
                this.readSequences(this.at + block, this.to + most, independent ? this.to : 0);
            }
        }
    }

    /** Reads a block: up to *end*, to less than *most*, with matches from *first* on. */
    private void readSequences(int end, int most, int first) throws Fields.Refused {
        while (true) {
            refuse(this.at >= end);
            int token = this.packed.get(this.at++) & 0xFF;
            int literals = this.length(token >> 4, end);
            boolean last = literals > end - LAST_PACKED - this.at || literals > most - LAST_UNPACKED - this.to;
            refuse(last && (literals != end - this.at || literals > most - this.to));
            this.copy(literals);
            if (last) { // whatever its token says of a match
                return;
            }
            int back = this.packed.getShort(this.at) & 0xFFFF;
            this.at += 2;
            int match = SHORTEST_MATCH + this.length(token & LONG, end - LAST_LITERALS + 1);
            refuse(back > this.to - first || match > most - LAST_LITERALS - this.to);
            refuse(match > this.out.length - this.to);
            for (int stop = this.to + match; this.to < stop; this.to++) {
                // The format does not allow 0; the library writes zeros.
                this.out[this.to] = back == 0 ? 0 : this.out[this.to - back];
            }
        }
    }

    /** A length that begins with *nibble*, and goes on before *end*; a match or literals fit into an int. */
    private int length(int nibble, int end) throws Fields.Refused {
        int length = nibble;
        for (int more = nibble == LONG ? 255 : 0; more == 255; length += more) {
            refuse(this.at >= end);
            more = this.packed.get(this.at++) & 0xFF;
        }
        return length;
    }

    private void copy(int bytes) throws Fields.Refused {
        refuse(bytes > this.out.length - this.to);
        this.packed.get(this.at, this.out, this.to, bytes);
        this.at += bytes;
        this.to += bytes;
    }

    private static int hash(ByteBuffer bytes) {
        XXHash32 hash = new XXHash32();
        hash.update(bytes.array(), bytes.arrayOffset(), bytes.limit());
        return (int) hash.getValue();
    }

    private static void refuse(boolean flawed) throws Fields.Refused {
        ArrowStream.refuse(flawed);
    }
}

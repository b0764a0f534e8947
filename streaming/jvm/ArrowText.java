package trimtab;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** A column of texts in Arrow's layout, checked: ascending places in bytes that are UTF-8, text by text. */
final class ArrowText {
    final int size;
    private final ByteBuffer ends;
    private final ByteBuffer text;

    ArrowText(ByteBuffer ends, ByteBuffer text, int size) throws Fields.Refused, IOException {
        this.size = size;
        this.ends = ends;
        this.text = text;
        if (size == 0) {
            return;
        }
        ArrowStream.refuse(ends.limit() < 4 * (size + 1L) || ends.getInt(0) < 0);
        for (int i = 0; i < size; i++) {
            ArrowStream.refuse(this.from(i + 1) < this.from(i));
        }
        ArrowStream.refuse(this.from(size) > text.limit());
        boolean ascii = true;
        for (int i = this.from(0); i < this.from(size); i++) {
            ascii &= text.get(i) >= 0;
        }
        for (int i = 0; i < size && !ascii; i++) {
            this.get(i);
        }
    }

    /** Where the text *nth* begins, counted from start() on. */
    int from(int nth) {
        return this.ends.getInt(4 * nth);
    }

    /** The bytes that hold the texts, from start() on. */
    byte[] bytes() {
        return this.text.array();
    }

    int start() {
        return this.text.arrayOffset();
    }

    String get(int nth) throws IOException {
        return decoded(this.bytes(), this.start() + this.from(nth), this.from(nth + 1) - this.from(nth));
    }

    /** UTF-8 as text; IOException where it is not. */
    static String decoded(byte[] value, int from, int length) throws IOException {
        return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(value, from, length)).toString();
    }
}

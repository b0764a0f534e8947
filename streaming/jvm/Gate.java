package trimtab;

import java.util.concurrent.atomic.AtomicLong;

/**
 * Decides when the query may begin a micro-batch: after the gate was opened, until everything in the log has been read.
 *
 * A micro-batch costs much the same whether it reads one record or many, so streaming.batches.gate opens it a few times in an
 * interval only.  One query of a JVM has it.
 */
public final class Gate {
    private static final AtomicLong OPENED = new AtomicLong(), PASSED = new AtomicLong();

    private Gate() {}

    /** Let the query read what is in the log now. */
    public static void open() {
        OPENED.incrementAndGet();
    }

    /** How often it has been opened; 0 while it is closed. */
    static long opened() {
        long opened = OPENED.get();
        return opened > PASSED.get() ? opened : 0;
    }

    /** Close it: all has been read that lay in the log when it was opened for the *opened*-th time. */
    static void close(long opened) {
        PASSED.set(opened);
    }
}

package trimtab;

import com.fasterxml.jackson.core.util.BufferRecycler;
import com.fasterxml.jackson.core.util.RecyclerPool;

/**
 * The buffers of Jackson's parsers, one set for each thread.
 *
 * Fields never closes a parser, so a parser never gives its buffers back, and the next one would make its own.  Here a
 * buffer is free again at once: a thread reads one record after the other, with one parser each.
 */
final class KeptBuffers extends RecyclerPool.ThreadLocalPoolBase<BufferRecycler> {
    private static final long serialVersionUID = 1L;
    private static final ThreadLocal<BufferRecycler> OF_THREAD = ThreadLocal.withInitial(Kept::new);

    @Override
    public BufferRecycler acquirePooled() {
        return OF_THREAD.get();
    }

    private static final class Kept extends BufferRecycler {
        @Override
        public char[] allocCharBuffer(int kind, int leastSize) {
            char[] found = super.allocCharBuffer(kind, leastSize);
            this.releaseCharBuffer(kind, found);
            return found;
        }
    }
}

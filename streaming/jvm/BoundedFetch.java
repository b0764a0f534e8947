package trimtab;

import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.ClientResponse;
import org.apache.kafka.clients.KafkaClient;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.ByteUtils;
import org.apache.kafka.common.utils.Crc32C;

/**
 * Unpacks the record batches that a consumer has fetched, within bounds, before the consumer sees them.
 *
 * Kafka's consumer allocates what a record in a compressed batch says that it needs, so a batch of a few kilobytes can end
 * the JVM.  Here a batch is unpacked into at most *most* bytes and handed on as an uncompressed one.  In place of a batch
 * that does not fit there, the consumer gets one record at the batch's first offset: its value is the batch as it was
 * fetched, and {@link #refusal} says why.  Offsets and transactions of the batch stay as they were.
 */
final class BoundedFetch {
    /** A record batch, format 2: where its length, attributes and number of records lie, and its records begin. */
    private static final int LENGTH = 8, CRC = 17, ATTRIBUTES = 21, COUNT = 57, RECORDS = 61;
    private static final int CODEC = 0x07;
    /** Of the batches of a response so many are unpacked that they fill this; the consumer fetches the others again. */
    private static final int AT_ONCE = 32 << 20;
    private static final int CHUNK = 64 << 10;
    private static final int REMEMBERED = 100_000;
    /** In place of the size of what a batch unpacks to. */
    private static final int TOO_LARGE = -1, DAMAGED = -2;

    private final int most;
    /**
     * Offset of a refused batch's stand-in -> why it was refused; the last ones, more than a fetch holds.  They outlive a
     * seek, since the consumer may go on with what it has fetched before.
     */
    private final Map<Long, String> refused = new LinkedHashMap<>() {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<Long, String> eldest) {
            return this.size() > REMEMBERED;
        }
    };
    private final BufferSupplier buffers = BufferSupplier.create();
    private byte[] unpacked = new byte[CHUNK];

    private BoundedFetch(int most) {
        this.most = most;
    }

    /** Bounds what *consumer*, which reads one partition, unpacks: no batch of more than *most* bytes. */
    static BoundedFetch of(KafkaConsumer<?, ?> consumer, int most) throws ReflectiveOperationException {
        // Kafka's consumer has no hook between the network and its decompression.
        Object inner = field(consumer, "delegate").get(consumer);
        Object network = field(inner, "client").get(inner);
        Field field = field(network, "client");
        BoundedFetch bounded = new BoundedFetch(most);
        field.set(network, bounded.around((KafkaClient) field.get(network)));
        return bounded;
    }

    private static Field field(Object of, String name) throws ReflectiveOperationException {
        Field field = of.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field;
    }

    /** Why the batch was refused that the record at *offset* stands for; null where the record is one of the log's. */
    String refusal(long offset) {
        return this.refused.get(offset);
    }

    private KafkaClient around(KafkaClient client) {
        return (KafkaClient) Proxy.newProxyInstance(
            KafkaClient.class.getClassLoader(), new Class<?>[] {KafkaClient.class}, (proxy, method, arguments) -> {
                Object answer = call(client, method, arguments);
                if (method.getName().equals("poll")) {
                    for (Object response : (List<?>) answer) {
                        this.bound((ClientResponse) response);
                    }
                }
                return answer;
            });
    }

    private static Object call(KafkaClient client, Method method, Object[] arguments) throws Throwable {
        try {
            return method.invoke(client, arguments);
        } catch (InvocationTargetException error) {
            throw error.getCause();
        }
    }

    private void bound(ClientResponse response) {
        if (response.responseBody() instanceof FetchResponse fetched) {
            for (FetchResponseData.FetchableTopicResponse topic : fetched.data().responses()) {
                for (FetchResponseData.PartitionData partition : topic.partitions()) {
                    if (partition.records() instanceof MemoryRecords records) {
                        partition.setRecords(this.bounded(records));
                    }
                }
            }
        }
    }

    private MemoryRecords bounded(MemoryRecords records) {
        ByteBuffer out = ByteBuffer.allocate(CHUNK);
        for (MutableRecordBatch batch : records.batches()) {
            if (out.position() > AT_ONCE) {
                break;
            }
            ByteBuffer bytes = ByteBuffer.allocate(batch.sizeInBytes());
            batch.writeTo(bytes);
            ByteBuffer bounded = this.bounded(batch, bytes.flip());
            if (out.remaining() < bounded.remaining()) {
                ByteBuffer larger = ByteBuffer.allocate(Math.max(2 * out.capacity(), out.position() + bounded.remaining()));
                out = larger.put(out.flip());
            }
            out.put(bounded);
        }
        return MemoryRecords.readableRecords(out.flip());
    }

    /** *batch*, whose *bytes* these are, or what takes its place. */
    private ByteBuffer bounded(RecordBatch batch, ByteBuffer bytes) {
        boolean isPacked = batch.compressionType() != CompressionType.NONE;
        if (batch.magic() != RecordBatch.MAGIC_VALUE_V2 || !batch.isValid() || !isPacked && bytes.remaining() <= this.most) {
            return bytes; // where it is damaged the consumer says so, before it unpacks anything
        }
        int size = isPacked ? this.unpack(batch, bytes) : TOO_LARGE;
        if (size >= 0) {
            return uncompressed(bytes, ByteBuffer.wrap(this.unpacked, 0, size), bytes.getInt(COUNT));
        }
        String why = size == DAMAGED ? "which cannot be unpacked"
            : String.format("which %s more than %,d bytes", isPacked ? "unpack to" : "are", this.most);
        this.refused.put(batch.baseOffset(), String.format(
            "a batch of the offsets %d to %d: %,d bytes (%s), %s", batch.baseOffset(), batch.lastOffset(),
            bytes.remaining(), batch.compressionType().name, why));
        return uncompressed(bytes, standIn(bytes), 1);
    }

    /** Unpacks the records of *batch*; returns their size, or TOO_LARGE or DAMAGED. */
    private int unpack(RecordBatch batch, ByteBuffer bytes) {
        ByteBuffer packed = bytes.duplicate().position(RECORDS).slice();
        int size = 0;
        try (InputStream in = Compression.of(batch.compressionType()).build()
                .wrapForInput(packed, batch.magic(), this.buffers)) {
            while (true) {
                if (size == this.unpacked.length) {
                    this.unpacked = Arrays.copyOf(this.unpacked, (int) Math.min(2L * size, this.most + 1L));
                }
                int read = in.read(this.unpacked, size, this.unpacked.length - size);
                if (read < 0) {
                    return size;
                }
                size += read;
                if (size > this.most) {
                    return TOO_LARGE;
                }
            }
        } catch (IOException | RuntimeException error) {
            return DAMAGED; // Kafka's consumer would try for ever
        }
    }

    /** One record that holds *bytes*.  As they begin with an offset, no reader takes them for one of the log's records. */
    private static ByteBuffer standIn(ByteBuffer bytes) {
        int size = bytes.remaining();
        // Attributes, time and offset as in the batch's head; no key; the value; no headers.
        int body = 4 + ByteUtils.sizeOfVarint(size) + size + 1;
        ByteBuffer record = ByteBuffer.allocate(ByteUtils.sizeOfVarint(body) + body);
        ByteUtils.writeVarint(body, record);
        record.put((byte) 0).put((byte) 0).put((byte) 0);
        ByteUtils.writeVarint(-1, record);
        ByteUtils.writeVarint(size, record);
        record.put(bytes.duplicate());
        ByteUtils.writeVarint(0, record);
        return record.flip();
    }

    /** The batch *bytes* with *records*, *count* of them, in place of its own, and not compressed. */
    private static ByteBuffer uncompressed(ByteBuffer bytes, ByteBuffer records, int count) {
        ByteBuffer made = ByteBuffer.allocate(RECORDS + records.remaining());
        made.put(bytes.duplicate().limit(RECORDS)).put(records).flip();
        made.putInt(LENGTH, made.remaining() - LENGTH - Integer.BYTES);
        made.putShort(ATTRIBUTES, (short) (made.getShort(ATTRIBUTES) & ~CODEC));
        made.putInt(COUNT, count);
        made.putInt(CRC, (int) Crc32C.compute(made, ATTRIBUTES, made.remaining() - ATTRIBUTES));
        return made;
    }
}

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiConsumer;
import org.apache.pulsar.client.api.v5.Producer;
import org.apache.pulsar.client.api.v5.PulsarClient;
import org.apache.pulsar.client.api.v5.async.AsyncMessageBuilder;
import org.apache.pulsar.client.api.v5.async.AsyncProducer;
import org.apache.pulsar.client.api.v5.schema.Schema;

/**
 * {@code SERVICE_URL TOPIC MESSAGES_A_SECOND BYTES HOT_PERCENT}: sends to a scalable topic until it is killed, HOT_PERCENT
 * of the messages with keys of the upper half of all hashes.  It ends by itself, with code 3, where no message was
 * stored for a while: a client may stop at a split for good.
 */
@SuppressWarnings({"rawtypes", "unchecked"})
public class SegmentTraffic {
    private static final int KEYS = 4096;
    private static final int STEPS_A_SECOND = 20;
    private static final long PATIENCE_MS = 15000;
    private static volatile long stored;
    private static volatile long failed;

    public static void main(String[] arguments) throws Exception {
        int rate = Integer.parseInt(arguments[2]), hot = Integer.parseInt(arguments[4]);
        byte[] body = new byte[Integer.parseInt(arguments[3])];
        PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).build();
        Producer producer = (Producer) client.newProducer(Schema.bytes()).topic(arguments[1]).create();
        AsyncProducer sender = (AsyncProducer) producer.async();
        List[] halves = keys();
        System.out.println("sending");
        watch();
        long begin = System.nanoTime(), sent = 0;
        while (true) {
            long due = (System.nanoTime() - begin) * rate / 1000000000L;
            for (; sent < due; sent++) {
                List half = halves[sent % 100 < hot ? 1 : 0];
                AsyncMessageBuilder message = (AsyncMessageBuilder) sender.newMessage();
                message = (AsyncMessageBuilder) message.key((String) half.get((int) (sent * 7919 % half.size())));
                message = (AsyncMessageBuilder) message.value(body);
                CompletableFuture done = message.send();
                done.whenComplete(COUNTED);
            }
            Thread.sleep(1000 / STEPS_A_SECOND);
        }
    }

    private static final BiConsumer COUNTED = new BiConsumer() {
        @Override
        public void accept(Object id, Object error) {
            if (error == null) {
                stored++;
            } else if (failed++ == 0) {
                System.out.println("not stored: " + error);
            }
        }
    };

    /** Ends the process where nothing more is stored. */
    private static void watch() {
        Thread watcher = new Thread(new Runnable() {
            @Override
            public void run() {
                long last = stored, since = System.currentTimeMillis();
                while (true) {
                    try {
                        Thread.sleep(500);
                    } catch (InterruptedException e) {
                        return;
                    }
                    long now = System.currentTimeMillis();
                    if (stored != last) {
                        last = stored;
                        since = now;
                    } else if (now - since > PATIENCE_MS) {
                        System.out.println("stopped: stored " + stored + ", failed " + failed);
                        Runtime.getRuntime().halt(3);
                    }
                }
            }
        });
        watcher.setDaemon(true);
        watcher.start();
    }

    /** Keys whose hash is in the lower half, and in the upper half. */
    private static List[] keys() throws Exception {
        Method hash = Class.forName("org.apache.pulsar.client.impl.v5.SegmentRouter")
            .getDeclaredMethod("hash", new Class[] {String.class});
        hash.setAccessible(true);
        List[] halves = new List[] {new ArrayList(), new ArrayList()};
        for (int i = 0; i < KEYS; i++) {
            String key = "key-" + i;
            int at = ((Integer) hash.invoke(null, new Object[] {key})).intValue();
            halves[at >= 0x8000 ? 1 : 0].add(key);
        }
        return halves;
    }
}

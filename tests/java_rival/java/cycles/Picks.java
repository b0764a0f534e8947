import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.Map;
import java.util.Set;
import java.util.zip.CRC32;

/**
 * Takes one of the brokers that are as good as each other, where Pulsar's classes take one at random.
 *
 * <p>It is one that Pulsar may take, too, and never the bundle's own while there is another one. Which it is follows from
 * seed, time and bundle: {@code crc32("seed/time/bundle") modulo the number of brokers}, these in the order of their
 * names. That is trimtab's rule, so the two clusters stay alike over the rounds.
 */
final class Picks {
    private static final int SEED = 7;
    /** Bundle, and the brokers that its pick was one of. */
    final Map<String, Set<String>> among = new TreeMap<>();
    private long time;

    void begin(long of) {
        time = of;
        among.clear();
    }

    String of(String bundle, String own, Collection<String> brokers) {
        List<String> others = new ArrayList<>(new TreeSet<>(brokers));
        others.remove(own);
        if (others.isEmpty()) {
            return own;
        }
        among.put(bundle, new TreeSet<>(others));
        CRC32 sum = new CRC32();
        sum.update((SEED + "/" + time + "/" + bundle).getBytes(StandardCharsets.UTF_8));
        return others.get((int) (sum.getValue() % others.size()));
    }
}

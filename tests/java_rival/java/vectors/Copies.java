import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Copies answers, since Pulsar's classes go on with their maps in the next round. */
final class Copies {
    private Copies() {
    }

    static Object of(Object answer) {
        if (answer instanceof Map) {
            Map<String, Object> copy = new TreeMap<>();
            ((Map<?, ?>) answer).forEach((key, value) -> copy.put(key.toString(), of(value)));
            return copy;
        }
        if (answer instanceof Collection) {
            List<Object> copy = new ArrayList<>();
            ((Collection<?>) answer).forEach(one -> copy.add(of(one)));
            return copy;
        }
        return answer;
    }
}

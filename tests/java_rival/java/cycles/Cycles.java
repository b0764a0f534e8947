import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * Asks Pulsar's real classes; see tests/java_rival/cycles.py and vectors.py.
 *
 * <p>Each line of standard input is a JSON object, and is answered with one line. With "component" it is a case of one
 * class, and the answer is what the class came to. Otherwise it is a case of whole load-balancing cycles, which begins a
 * new cluster and is answered with {}, or a round of the case before it.
 */
public final class Cycles {
    /** A load manager that is asked round by round. */
    interface Manager {
        Map<String, Object> round(Round round) throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = new ObjectMapper();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Map<String, Component> components = Component.all();
        Manager manager = null;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode given = json.readTree(line);
            Object answer = Map.of();
            if (given.has("component")) {
                answer = components.get(given.get("component").asText()).answer(given.get("config"), given.get("input"));
            } else if (given.has("config")) {
                Cluster cluster = new Cluster(given.get("config"), given.get("input"));
                String kind = cluster.conf.getLoadManagerClassName();
                manager = kind.endsWith("ExtensibleLoadManagerImpl")
                        ? new ExtensibleCycle(cluster) : new ModularCycle(cluster);
            } else {
                answer = manager.round(new Round(given));
            }
            System.out.println(json.writeValueAsString(answer));
        }
        System.exit(0); // the modular load manager has threads of its own
    }
}

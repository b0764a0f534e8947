import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * Runs whole load-balancing cycles with Pulsar's real classes; see tests/java_rival/cycles.py.
 *
 * <p>Each line of standard input is a JSON object: either a case, with its "config" and "input", which begins a new
 * cluster, or a round of the case before it. Each is answered with one line: {} or what the round came to.
 */
public final class Cycles {
    /** A load manager that is asked round by round. */
    interface Manager {
        Map<String, Object> round(Round round) throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = new ObjectMapper();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Manager manager = null;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode given = json.readTree(line);
            Object answer = Map.of();
            if (given.has("config")) {
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

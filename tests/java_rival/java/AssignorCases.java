package org.apache.kafka.connect.runtime.distributed;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.connect.storage.*;
import org.apache.kafka.connect.util.ConnectorTaskId;

/**
 * Plays rebalances with Kafka Connect's real IncrementalCooperativeAssignor, one a line of standard input.
 *
 * <p>Lines are words: <code>new maxDelay</code> begins with a new leader; <code>round time generation lastCompleted</code>
 * goes on with the configured connectors and what each member holds. Lists have their length in front.
 */
public final class AssignorCases {
    private static long now;
    private static Coordinator coordinator;

    public static void main(String[] arguments) throws Exception {
        Time time = (Time) Proxy.newProxyInstance(
                Time.class.getClassLoader(), new Class<?>[] {Time.class}, (proxy, method, given) -> now);
        coordinator = unconstructed(Coordinator.class);
        IncrementalCooperativeAssignor assignor = null;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Iterator<String> words = Arrays.asList(line.split(" ")).iterator();
            if (words.next().equals("new")) {
                assignor = new IncrementalCooperativeAssignor(new LogContext(), time, Integer.parseInt(words.next()));
                System.out.println("new");
            } else {
                System.out.println(round(assignor, words));
            }
        }
    }

    private static String round(IncrementalCooperativeAssignor assignor, Iterator<String> words) throws Exception {
        now = Long.parseLong(words.next());
        coordinator.generation = Integer.parseInt(words.next());
        coordinator.lastCompleted = Integer.parseInt(words.next());
        coordinator.config = config(words);
        Map<String, ExtendedWorkerState> members = new LinkedHashMap<>();
        for (int left = Integer.parseInt(words.next()); left > 0; left--) {
            String name = words.next();
            List<String> connectors = list(words);
            members.put(name, new ExtendedWorkerState("http://" + name, 0, new ExtendedAssignment(
                    (short) 1, (short) 0, "a", "http://a", 0, connectors, tasks(list(words)), new ArrayList<>(),
                    new ArrayList<>(), 0)));
        }
        String leader = members.keySet().iterator().next();
        Map<String, ByteBuffer> answer = assignor.performTaskAssignment(leader, 0, members, coordinator, (short) 1);
        StringBuilder said = new StringBuilder();
        int delay = 0;
        for (String name : members.keySet()) {
            ExtendedAssignment one = IncrementalCooperativeConnectProtocol.deserializeAssignment(answer.get(name));
            delay = one.delay();
            said.append(' ').append(name);
            for (Collection<?> part : List.of(one.connectors(), one.tasks(), one.revokedConnectors(),
                    one.revokedTasks())) {
                said.append(' ').append(part.size());
                part.stream().map(AssignorCases::word).sorted().forEach(word -> said.append(' ').append(word));
            }
        }
        return delay + said.toString();
    }

    private static String word(Object resource) {
        return resource instanceof ConnectorTaskId
                ? ((ConnectorTaskId) resource).connector() + ":" + ((ConnectorTaskId) resource).task()
                : resource.toString();
    }

    private static List<String> list(Iterator<String> words) {
        List<String> found = new ArrayList<>();
        for (int left = Integer.parseInt(words.next()); left > 0; left--) {
            found.add(words.next());
        }
        return found;
    }

    private static List<ConnectorTaskId> tasks(List<String> names) {
        List<ConnectorTaskId> found = new ArrayList<>();
        for (String name : names) {
            int colon = name.indexOf(':');
            found.add(new ConnectorTaskId(name.substring(0, colon), Integer.parseInt(name.substring(colon + 1))));
        }
        return found;
    }

    /** What the constructors take differs from release to release; what is read of it does not. */
    private static ClusterConfigState config(Iterator<String> words) throws Exception {
        Map<String, Integer> counts = new HashMap<>();
        Map<String, Map<String, String>> configs = new HashMap<>();
        for (int left = Integer.parseInt(words.next()); left > 0; left--) {
            String name = words.next();
            counts.put(name, Integer.parseInt(words.next()));
            configs.put(name, new HashMap<>());
        }
        ClusterConfigState state = unconstructed(ClusterConfigState.class);
        set(state, "connectorTaskCounts", counts);
        set(state, "connectorConfigs", configs);
        set(state, "inconsistentConnectors", new HashSet<String>());
        return state;
    }

    private static void set(ClusterConfigState state, String name, Object value) throws Exception {
        Field field = ClusterConfigState.class.getDeclaredField(name);
        field.setAccessible(true);
        field.set(state, value);
    }

    private static <T> T unconstructed(Class<T> type) throws Exception {
        Field field = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        return type.cast(((sun.misc.Unsafe) field.get(null)).allocateInstance(type));
    }

    private static final class Coordinator extends WorkerCoordinator {
        private int generation;
        private int lastCompleted;
        private ClusterConfigState config;

        private Coordinator() {
            super(null, null, null, null, null, null, null, null, null, null, 0);
        }

        @Override
        public int generationId() {
            return generation;
        }

        @Override
        public int lastCompletedGenerationId() {
            return lastCompleted;
        }

        @Override
        public String memberId() {
            return "a";
        }

        @Override
        public ClusterConfigState configSnapshot() {
            return config;
        }

        @Override
        public void leaderState(LeaderState update) {
            // Nobody asks for it.
        }
    }
}

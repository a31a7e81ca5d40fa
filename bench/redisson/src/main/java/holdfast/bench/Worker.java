package holdfast.bench;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** Does the jobs that come over standard input; worker.go has the protocol and the other end. */
public final class Worker {
    private static final ObjectMapper JSON =
            new ObjectMapper().configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false);

    /** What one process is to do; durations are nanoseconds. */
    public record Job(String kind, String address, long lease, String page, long process, int callers, int first,
            boolean distinct, long hold, double reads, int warm, boolean forever) {}

    private Worker() {}

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        boolean cold = true;
        for (String line; (line = in.readLine()) != null; cold = false) {
            try {
                work(JSON.readValue(line, Job.class), in, cold);
            } catch (Exception e) {
                say(Map.of("ready", false, "error", e.toString()));
            }
        }
        System.exit(0);
    }

    private static void work(Job job, BufferedReader in, boolean cold) throws Exception {
        try (Crowd crowd = new Crowd(job, cold)) {
            say(Map.of("ready", true));
            for (String word; (word = in.readLine()) != null;) {
                switch (word) {
                    case "start" -> crowd.start();
                    case "sample" -> say(crowd.sample());
                    case "end" -> {
                        say(crowd.end());
                        return;
                    }
                    default -> throw new IllegalArgumentException("unknown word " + word);
                }
            }
            System.exit(1); // nobody is there any more; callers may wait for ever
        }
    }

    private static void say(Object answer) throws Exception {
        System.out.println(JSON.writeValueAsString(answer));
        System.out.flush();
    }
}

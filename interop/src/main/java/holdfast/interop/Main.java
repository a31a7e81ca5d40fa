package holdfast.interop;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.BaseConfig;
import org.redisson.config.ClusterServersConfig;
import org.redisson.config.Config;
import org.redisson.config.ReadMode;

import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/**
 * A client of Redisson that does what it is told, for tests in another language.
 *
 * <p>It writes {@code ready} and then reads one command per line: {@code id thread verb kind name
 * [argument...]}. Commands for one thread run one after the other in a thread of their own, which to
 * Redisson is an owner; commands for different threads overlap. Each is answered by one line, {@code id
 * began ended value}, or {@code id began ended !error} if it failed; the times are nanoseconds of the
 * machine's clock, which the other processes of a test share. The program ends with its input.
 */
@Command(name = "redisson-peer", description = "A client of Redisson that takes commands on its standard input.")
public final class Main implements Callable<Integer> {
    private static final int PATIENCE = 60_000; // milliseconds

    /** How releases are announced in a cluster. */
    enum Messages { AUTO, CLASSIC, SHARDED }

    @Option(names = "--address", required = true, description = "host:port of the server, or of one node of the cluster")
    private String address;

    @Option(names = "--password", description = "of the server")
    private String password;

    @Option(names = "--cluster", description = "the server is a node of a cluster")
    private boolean cluster;

    @Option(names = "--messages", defaultValue = "AUTO", description = "in a cluster: ${COMPLETION-CANDIDATES}")
    private Messages messages;

    // Redisson's default is SLAVE: isLocked and remainTimeToLive then tell what a replica has heard so far.
    @Option(names = "--read", defaultValue = "MASTER", description = "in a cluster: ${COMPLETION-CANDIDATES}")
    private ReadMode read;

    @Option(names = "--prefix", description = "a name mapper puts it before every name")
    private String prefix;

    @Option(names = "--watchdog", defaultValue = "30000", description = "TTL of a lock taken without a lease, in milliseconds")
    private long watchdog;

    private final Map<String, ExecutorService> executors = new HashMap<>();
    private final Map<String, Thread> threads = new ConcurrentHashMap<>();

    // What libraries print must not get between the answers.
    private final PrintStream answers =
            new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);

    public static void main(String[] args) {
        System.setOut(System.err);
        System.exit(new CommandLine(new Main()).setCaseInsensitiveEnumValuesAllowed(true).execute(args));
    }

    @Override
    public Integer call() throws Exception {
        RedissonClient redisson = Redisson.create(config());
        Commands commands = new Commands(redisson, threads);
        answers.println("ready");

        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            Request request = Request.parse(line);
            executors.computeIfAbsent(request.thread(), this::newThread)
                    .execute(() -> answers.println(answer(commands, request)));
        }
        // Whoever closed our input does not wait for locks.
        executors.values().forEach(ExecutorService::shutdownNow);
        redisson.shutdown();
        return 0;
    }

    private ExecutorService newThread(String name) {
        return Executors.newSingleThreadExecutor(task -> {
            Thread thread = new Thread(task, name);
            thread.setDaemon(true);
            threads.put(name, thread);
            return thread;
        });
    }

    private static String answer(Commands commands, Request request) {
        long began = now();
        String value;
        try {
            value = commands.execute(request);
        } catch (Exception e) {
            value = "!" + e.toString().replace('\n', ' ');
        }
        return request.id() + " " + began + " " + now() + " " + value;
    }

    private static long now() {
        return ChronoUnit.NANOS.between(Instant.EPOCH, Instant.now());
    }

    private Config config() {
        Config config = new Config();
        config.setLockWatchdogTimeout(watchdog);
        BaseConfig<?> servers;
        if (cluster) {
            ClusterServersConfig nodes = config.useClusterServers()
                    .addNodeAddress("redis://" + address)
                    .setReadMode(read);
            Dialect.messages(nodes, messages);
            servers = nodes;
        } else {
            servers = config.useSingleServer()
                    .setAddress("redis://" + address)
                    .setConnectionMinimumIdleSize(1);
        }
        servers.setConnectTimeout(PATIENCE);
        Dialect.timeout(servers, PATIENCE);
        if (password != null) {
            Dialect.password(config, servers, password);
        }
        if (prefix != null) {
            Dialect.prefix(config, servers, prefix);
        }
        return config;
    }
}

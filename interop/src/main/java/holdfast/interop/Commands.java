package holdfast.interop;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;

import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RedissonClient;

/** What can be told to the program. A lease or a wait of -1 is "none given". */
final class Commands {
    private final RedissonClient redisson;
    private final Map<String, Thread> threads;
    private final Map<String, RLock> locks = new ConcurrentHashMap<>();
    private final Map<String, String> permits = new ConcurrentHashMap<>(); // by thread

    Commands(RedissonClient redisson, Map<String, Thread> threads) {
        this.redisson = redisson;
        this.threads = threads;
    }

    String execute(Request request) throws Exception {
        if (request.kind().equals("permits")) {
            return permit(redisson.getPermitExpirableSemaphore(request.name()), request);
        }
        RLock lock = locks.computeIfAbsent(request.kind() + " " + request.name(),
                key -> lock(request.kind(), request.name()));
        switch (request.verb()) {
            case "lock": // lease
                lock.lock(request.number(0), MILLISECONDS);
                return "ok";
            case "tryLock": // wait, lease
                return String.valueOf(lock.tryLock(request.number(0), request.number(1), MILLISECONDS));
            case "unlock":
                lock.unlock();
                return "ok";
            case "lockAndGetToken":
                return String.valueOf(((RFencedLock) lock).lockAndGetToken());
            case "token":
                return String.valueOf(((RFencedLock) lock).getToken());
            case "isLocked":
                return String.valueOf(lock.isLocked());
            case "isHeld":
                return String.valueOf(lock.isHeldByCurrentThread());
            case "holdCount":
                return String.valueOf(lock.getHoldCount());
            case "remainTimeToLive":
                return String.valueOf(lock.remainTimeToLive());
            case "forceUnlock":
                return String.valueOf(lock.forceUnlock());
            case "waiting": // thread
                return String.valueOf(sleeps(threads.get(request.arguments().get(0))));
            case "work": // rounds, seed, file
            case "hammer": // rounds, seed, file
                try (Section section = new Section(Path.of(request.arguments().get(2)))) {
                    Worker worker = new Worker(lock, request.kind().equals("read"), section, request.number(1));
                    long amount = request.number(0);
                    return request.verb().equals("work") ? worker.work(amount)
                            : worker.hammer(amount, Path.of(request.arguments().get(2) + ".over"));
                }
            default:
                throw new IllegalArgumentException("no command " + request.verb());
        }
    }

    /** A thread has one permit of all semaphores at most. */
    private String permit(RPermitExpirableSemaphore semaphore, Request request) throws Exception {
        switch (request.verb()) {
            case "lock": // lease
                long lease = request.number(0);
                permits.put(request.thread(), lease < 0 ? semaphore.acquire() : semaphore.acquire(lease, MILLISECONDS));
                return "ok";
            case "tryLock": // wait, lease
                String id = semaphore.tryAcquire(request.number(0), request.number(1), MILLISECONDS);
                if (id != null) {
                    permits.put(request.thread(), id);
                }
                return String.valueOf(id != null);
            case "unlock":
                semaphore.release(permits.remove(request.thread()));
                return "ok";
            case "set": // how many
                semaphore.setPermits((int) request.number(0));
                return "ok";
            case "counts":
                return semaphore.availablePermits() + " " + semaphore.acquiredPermits();
            case "waiting": // thread
                return String.valueOf(sleeps(threads.get(request.arguments().get(0))));
            default:
                throw new IllegalArgumentException("no command " + request.verb());
        }
    }

    /** Whether a thread has been refused a lock and sleeps until a message or the TTL, which it does on a semaphore. */
    private static boolean sleeps(Thread thread) {
        Object blocker = thread == null ? null : LockSupport.getBlocker(thread);
        return blocker != null && blocker.getClass().getName().startsWith(Semaphore.class.getName());
    }

    /** A multi-lock has several names, with a comma between, and the kind of its members after a slash. */
    private RLock lock(String kind, String name) {
        String[] parts = kind.split("/");
        switch (parts[0]) {
            case "lock":
                return redisson.getLock(name);
            case "fair":
                return redisson.getFairLock(name);
            case "fenced":
                return redisson.getFencedLock(name);
            case "read":
                return redisson.getReadWriteLock(name).readLock();
            case "write":
                return redisson.getReadWriteLock(name).writeLock();
            case "spin":
                return redisson.getSpinLock(name);
            case "multi":
                return redisson.getMultiLock(members(parts[1], name));
            case "red":
                return redisson.getRedLock(members(parts[1], name));
            default:
                throw new IllegalArgumentException("no kind " + kind);
        }
    }

    private RLock[] members(String kind, String names) {
        return Stream.of(names.split(",")).map(name -> lock(kind, name)).toArray(RLock[]::new);
    }
}

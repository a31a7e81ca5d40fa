package holdfast.bench;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** The callers of this process, a thread each: crowd.go in Java. */
final class Crowd implements AutoCloseable {
    private static final OperatingSystemMXBean SYSTEM =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private static final int KEEPERS = 64;
    private static final int PERMITS = 8; // as in semaphore.go

    private final Worker.Job job;
    private final Page page;
    private final CountDownLatch over = new CountDownLatch(1);
    private RedissonClient redisson;
    private final Caller[] callers;
    private final Histogram waits = new Histogram();
    private final Histogram reads = new Histogram();
    private final Histogram handovers = new Histogram();
    private final AtomicLong overlaps = new AtomicLong();
    private final AtomicReference<Throwable> fault = new AtomicReference<>();
    private final int threadsBefore;
    private final long memoryBefore;
    private long cpu;

    /**
     * Redisson with its defaults, but for the lease, which the watchdog renews, and for the time-out of
     * subscriptions: with thousands of waiters they take longer than its 7.5 s.
     */
    Crowd(Worker.Job job, boolean cold) throws Exception {
        this.job = job;
        page = new Page(job.page());
        if (cold) {
            // By a client of its own: one that has locked often renews more often.
            redisson = connect();
            warm(job.warm());
            redisson.shutdown();
        }
        System.gc();
        threadsBefore = threads();
        memoryBefore = memory();
        redisson = connect();
        // A few threads hold many locks; a waiter needs a thread of its own.
        boolean keepers = job.forever() && job.distinct();
        callers = new Caller[keepers ? Math.min(KEEPERS, job.callers()) : job.callers()];
        for (int i = 0; i < callers.length; i++) {
            callers[i] = new Caller(i);
        }
        warm(20);
    }

    private RedissonClient connect() {
        Config config = new Config();
        config.setLockWatchdogTimeout(job.lease() / 1_000_000);
        config.useSingleServer().setAddress("redis://" + job.address()).setSubscriptionTimeout(60_000);
        return Redisson.create(config);
    }

    /** Scripts are known to the server, and the code has been compiled, before anything is counted. */
    private void warm(int pairs) throws InterruptedException {
        Side[] sides = sides("warm:" + job.process());
        for (int i = 0; i < pairs; i++) {
            sides[i % sides.length].enter().run();
        }
    }

    /** What a caller takes; enter waits for it, and returns how it is given back. */
    private interface Side {
        Runnable enter() throws InterruptedException;
    }

    /** The exclusive side of the job's kind, and the shared one where there is one. */
    private Side[] sides(String name) {
        switch (job.kind()) {
            case "lock":
                return new Side[] {side(redisson.getLock(name))};
            case "fair":
                return new Side[] {side(redisson.getFairLock(name))};
            case "rw":
                RReadWriteLock rw = redisson.getReadWriteLock(name);
                return new Side[] {side(rw.writeLock()), side(rw.readLock())};
            case "permit":
                return new Side[] {side(semaphore(name + ":one", 1), 1), side(semaphore(name, PERMITS), 1)};
            case "weighed":
                RPermitExpirableSemaphore all = semaphore(name, PERMITS);
                return new Side[] {side(all, PERMITS), side(all, 1)};
            default:
                throw new IllegalArgumentException("unknown kind " + job.kind());
        }
    }

    private static Side side(RLock lock) {
        return () -> {
            lock.lockInterruptibly();
            return lock::unlock;
        };
    }

    /** Permits have the lease that others renew, since Redisson does not. */
    private Side side(RPermitExpirableSemaphore semaphore, int permits) {
        return () -> {
            List<String> ids = semaphore.acquire(permits, job.lease(), TimeUnit.NANOSECONDS);
            return () -> semaphore.release(ids);
        };
    }

    private RPermitExpirableSemaphore semaphore(String name, int permits) {
        RPermitExpirableSemaphore semaphore = redisson.getPermitExpirableSemaphore(name);
        semaphore.trySetPermits(permits);
        return semaphore;
    }

    void start() {
        cpu = SYSTEM.getProcessCpuTime();
        for (Caller c : callers) {
            c.start();
        }
    }

    Map<String, Object> sample() {
        return Map.of("goroutines", threads() - threadsBefore - callers.length, "memory", memory() - memoryBefore);
    }

    /** Interrupts those who still wait; the page says stopped by then. */
    Map<String, Object> end() throws InterruptedException {
        long now = System.nanoTime();
        long unfinished = 0;
        for (Caller c : callers) {
            long since = c.since;
            if (since != 0) {
                unfinished = Math.max(unfinished, now - since);
            }
        }
        over.countDown();
        for (Caller c : callers) {
            if (!c.keeps) {
                c.interrupt();
            }
        }
        long[] grants = new long[callers.length];
        long writes = 0;
        for (int i = 0; i < callers.length; i++) {
            callers[i].join();
            grants[i] = callers[i].measured;
            writes += callers[i].writes;
            unfinished = Math.max(unfinished, callers[i].unfinished);
        }
        Map<String, Object> outcome = new LinkedHashMap<>();
        outcome.put("grants", grants);
        outcome.put("writes", writes);
        outcome.put("waits", waits.counts());
        outcome.put("reads", reads.counts());
        outcome.put("handovers", handovers.counts());
        outcome.put("unfinished", unfinished);
        outcome.put("overlaps", overlaps.get());
        outcome.put("cpu", SYSTEM.getProcessCpuTime() - cpu);
        if (fault.get() != null) {
            outcome.put("error", fault.get().toString());
        }
        return outcome;
    }

    @Override
    public void close() {
        redisson.shutdown();
    }

    private static int threads() {
        return ManagementFactory.getThreadMXBean().getThreadCount();
    }

    private static long memory() {
        return ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
    }

    private final class Caller extends Thread {
        private final int number;
        private volatile long since;
        private volatile boolean keeps;
        private long measured;
        private long writes;
        private long unfinished;

        Caller(int number) {
            this.number = number;
            setDaemon(true);
        }

        @Override
        public void run() {
            try {
                if (job.forever()) {
                    keep();
                } else {
                    work();
                }
            } catch (Throwable e) {
                if (page.phase() != Page.STOPPED) {
                    fault.compareAndSet(null, e);
                }
            }
        }

        private void work() throws InterruptedException {
            Side[] sides = sides(job.distinct() ? "lock:" + (job.first() + number) : "lock");
            SplittableRandom dice = new SplittableRandom(job.first() + number);
            for (long turn = 0; page.phase() != Page.STOPPED; turn++) {
                boolean shared = job.reads() > 0 && dice.nextDouble() < job.reads();
                long begun = System.nanoTime();
                since = begun;
                Runnable leave = sides[shared ? sides.length - 1 : 0].enter();
                since = 0;
                long phase = page.phase();
                long wait = System.nanoTime() - begun;
                if (phase == Page.MEASURING) {
                    (shared ? reads : waits).record(wait);
                    measured++;
                }
                if (phase == Page.STOPPED) {
                    unfinished = wait;
                } else {
                    pass(turn, shared, phase);
                }
                leave.run();
                page.progress();
            }
        }

        /** Locks its share of the names, or the one name, and unlocks at the end. */
        private void keep() throws InterruptedException {
            List<Runnable> kept = new ArrayList<>();
            for (int i = number; i < (job.distinct() ? job.callers() : number + 1); i += callers.length) {
                kept.add(sides(job.distinct() ? "lock:" + i : "lock")[0].enter());
                page.progress();
            }
            keeps = true;
            over.await();
            kept.forEach(Runnable::run);
        }

        private void pass(long turn, boolean shared, long phase) throws InterruptedException {
            if (shared) {
                boolean permits = job.kind().equals("permit") || job.kind().equals("weighed");
                if (!page.read(turn, job.hold(), permits ? PERMITS : Long.MAX_VALUE)) {
                    overlaps.incrementAndGet();
                }
                return;
            }
            if (job.distinct()) {
                return;
            }
            if (job.hold() > 0 && phase == Page.MEASURING) {
                page.handover(job.process(), handovers);
            }
            page.write(job.hold());
            writes++;
            if (job.hold() > 0) {
                page.released(job.process());
            }
        }
    }
}

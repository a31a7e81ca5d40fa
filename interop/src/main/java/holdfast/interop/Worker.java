package holdfast.interop;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.NANOSECONDS;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.locks.LockSupport;

import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;

/** Takes a lock again and again, each time in a way that chance chooses, and runs the section under it. */
final class Worker {
    private static final long LEASE = 20_000; // longer than any section can be delayed
    private static final long WAIT = 50;

    private final RLock lock;
    private final boolean shared;
    private final Section section;
    private final Random random;
    private final long me;

    private int entered;
    private int refused;
    private int violations;
    private long longest; // nanoseconds without the lock although it was asked for

    Worker(RLock lock, boolean shared, Section section, long seed) {
        this.lock = lock;
        this.shared = shared;
        this.section = section;
        this.random = new Random(seed);
        this.me = seed;
    }

    /** Returns how many sections were run, how many attempts refused, how many rules broken, and the longest wait in ms. */
    String work(long rounds) throws Exception {
        for (long i = 0; i < rounds; i++) {
            long began = System.nanoTime();
            boolean held = acquire();
            longest = Math.max(longest, System.nanoTime() - began);
            if (!held) {
                refused++;
                continue;
            }
            try {
                enter(lock instanceof RFencedLock ? ((RFencedLock) lock).getToken() : 0);
                if (random.nextInt(4) == 0) {
                    lock.lock();
                    try {
                        enter(0);
                    } finally {
                        lock.unlock();
                    }
                    enter(0); // still held
                }
            } finally {
                lock.unlock();
            }
        }
        return entered + " " + refused + " " + violations + " " + NANOSECONDS.toMillis(longest);
    }

    /**
     * Takes the lock as fast as it can, as often as rounds says, or, if that is negative, until the file over exists.
     * Returns how often it got it, how many sections of others passed while it waited (the median, which a process
     * that stands still for a moment does not change), how many rules were broken, and the longest wait in ms.
     */
    String hammer(long rounds, Path over) throws Exception {
        List<Long> others = new ArrayList<>();
        while ((rounds < 0 || entered < rounds) && !Files.exists(over)) {
            long sections = section.count();
            long began = System.nanoTime();
            lock.lock();
            try {
                longest = Math.max(longest, System.nanoTime() - began);
                others.add(section.count() - sections);
                entered++;
                violations += section.alone(me, 0, () -> { });
            } finally {
                lock.unlock();
            }
        }
        Collections.sort(others);
        long median = others.isEmpty() ? 0 : others.get(others.size() / 2);
        return entered + " " + median + " " + violations + " " + NANOSECONDS.toMillis(longest);
    }

    private boolean acquire() throws InterruptedException {
        switch (random.nextInt(6)) {
            case 0:
                return lock.tryLock();
            case 1:
                return lock.tryLock(WAIT, -1, MILLISECONDS);
            case 2:
                return lock.tryLock(WAIT, LEASE, MILLISECONDS);
            case 3:
                lock.lock(LEASE, MILLISECONDS);
                return true;
            default:
                lock.lock();
                return true;
        }
    }

    /** Runs the section; the token must be greater than all before it, unless it is 0. */
    private void enter(long token) throws IOException {
        Runnable work = () -> LockSupport.parkNanos(random.nextInt(100_000));
        entered++;
        violations += shared ? section.shared(work) : section.alone(me, token, work);
    }
}

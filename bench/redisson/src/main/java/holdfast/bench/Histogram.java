package holdfast.bench;

import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLongArray;

/** Counts durations in the buckets of histogram.go. */
final class Histogram {
    private static final int SUB_BITS = 5;

    private final AtomicLongArray buckets = new AtomicLongArray((64 - SUB_BITS + 1) << SUB_BITS);

    void record(long nanoseconds) {
        long v = Math.max(nanoseconds, 0);
        int shift = Math.max(63 - Long.numberOfLeadingZeros(v) - SUB_BITS, 0);
        buckets.incrementAndGet((shift << SUB_BITS) + (int) (v >>> shift));
    }

    Map<Integer, Long> counts() {
        Map<Integer, Long> counts = new TreeMap<>();
        for (int i = 0; i < buckets.length(); i++) {
            if (buckets.get(i) > 0) {
                counts.put(i, buckets.get(i));
            }
        }
        return counts;
    }
}

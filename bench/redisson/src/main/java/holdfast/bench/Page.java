package holdfast.bench;

import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Instant;

/** The memory that all processes of a measurement share: page.go in Java, with its word numbers. */
final class Page {
    static final long MEASURING = 1;
    static final long STOPPED = 2;

    private static final int WORD = 8;
    private static final int COUNT = 0;
    private static final int PHASE = 8 * WORD;
    private static final int PROGRESS = 16 * WORD;
    private static final int RELEASED = 24 * WORD;
    private static final int RELEASER = 32 * WORD;
    private static final int READERS = 40 * WORD;
    private static final int SIZE = 64 * WORD;

    private static final VarHandle WORDS =
            MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());

    private final MappedByteBuffer memory;

    Page(String file) throws IOException {
        try (FileChannel f = FileChannel.open(Path.of(file), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            memory = f.map(FileChannel.MapMode.READ_WRITE, 0, SIZE);
        }
    }

    private long get(int word) {
        return (long) WORDS.getVolatile(memory, word);
    }

    private void set(int word, long value) {
        WORDS.setVolatile(memory, word, value);
    }

    long phase() {
        return get(PHASE);
    }

    void progress() {
        long unused = (long) WORDS.getAndAdd(memory, PROGRESS, 1L);
    }

    void write(long hold) throws InterruptedException {
        long n = get(COUNT);
        inside(n, hold);
        set(COUNT, n + 1);
    }

    boolean read(long turn, long hold, long most) throws InterruptedException {
        long n = get(COUNT);
        long others = (long) WORDS.getAndAdd(memory, READERS, 1L);
        inside(turn, hold);
        long unused = (long) WORDS.getAndAdd(memory, READERS, -1L);
        return get(COUNT) == n && others < most;
    }

    private static void inside(long turn, long hold) throws InterruptedException {
        if (hold > 0) {
            Thread.sleep(hold / 1_000_000, (int) (hold % 1_000_000));
        } else if (turn % 32 == 0) {
            Thread.yield();
        }
    }

    void released(long process) {
        set(RELEASER, process);
        set(RELEASED, now());
    }

    void handover(long process, Histogram handovers) {
        long from = get(RELEASER);
        long at = get(RELEASED);
        if (from != 0 && from != process) {
            handovers.record(now() - at);
        }
    }

    private static long now() {
        Instant t = Instant.now();
        return t.getEpochSecond() * 1_000_000_000L + t.getNano();
    }
}

package holdfast.interop;

import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * Code that must not run twice at a time, on a file that all processes share and that nothing but the
 * lock protects. The file is three numbers: who is inside, how many sections there were, and the last
 * fencing token.
 */
final class Section implements Closeable {
    private static final int SIZE = 3 * Long.BYTES;

    private final FileChannel file;

    Section(Path path) throws IOException {
        file = FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE);
    }

    /** Runs a section that nobody may share. Returns how often it saw somebody else, or a token that is not new. */
    int alone(long me, long token, Runnable work) throws IOException {
        long[] before = read();
        write(me, before[1], before[2]);
        work.run();
        long[] after = read();
        write(0, before[1] + 1, Math.max(before[2], token));
        boolean intruded = before[0] != 0 || after[0] != me || after[1] != before[1];
        boolean stale = token != 0 && token <= before[2];
        return (intruded ? 1 : 0) + (stale ? 1 : 0);
    }

    /** Runs a section that others may share if they change nothing. */
    int shared(Runnable work) throws IOException {
        long[] before = read();
        work.run();
        long[] after = read();
        return before[0] != 0 || after[0] != 0 || after[1] != before[1] ? 1 : 0;
    }

    /** How many sections there were. */
    long count() throws IOException {
        return read()[1];
    }

    private long[] read() throws IOException {
        ByteBuffer buffer = ByteBuffer.allocate(SIZE);
        if (file.read(buffer, 0) != SIZE) {
            throw new IOException("the section's file is too short");
        }
        buffer.flip();
        return new long[] {buffer.getLong(), buffer.getLong(), buffer.getLong()};
    }

    private void write(long inside, long sections, long token) throws IOException {
        ByteBuffer buffer = ByteBuffer.allocate(SIZE);
        buffer.putLong(inside).putLong(sections).putLong(token).flip();
        if (file.write(buffer, 0) != SIZE) {
            throw new IOException("the section was written in part");
        }
    }

    @Override
    public void close() throws IOException {
        file.close();
    }
}

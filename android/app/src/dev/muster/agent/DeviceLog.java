package dev.muster.agent;

import dev.muster.agent.core.Log;
import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.text.SimpleDateFormat;
import java.util.Date;
import java.util.Locale;
import java.util.TimeZone;

/** DeviceLog is the agent's log: a file that keeps its last lines, without secrets, for adb to fetch. */
final class DeviceLog implements Log {
    /** MAX is how long the file may grow, in bytes. Then its older half goes. */
    static final int MAX = 128 << 10;

    private static final String TAG = "muster";
    private static final int MAX_LINE = 1000;

    private final File file;

    DeviceLog(File file) {
        this.file = file;
    }

    @Override
    public void debug(String what, Object about) {}

    @Override
    public void warn(String what, Object about) {
        android.util.Log.w(TAG, what + ": " + about);
        write("WARN", what, about);
    }

    @Override
    public void error(String what, Object about) {
        android.util.Log.e(TAG, what + ": " + about);
        write("ERROR", what, about);
    }

    void info(String what, Object about) {
        write("INFO", what, about);
    }

    private synchronized void write(String level, String what, Object about) {
        SimpleDateFormat time = new SimpleDateFormat("yyyy-MM-dd'T'HH:mm:ss'Z'", Locale.ROOT);
        time.setTimeZone(TimeZone.getTimeZone("UTC"));
        String line = time.format(new Date()) + " " + level + " " + what + ": " + String.valueOf(about).replaceAll("\\s+", " ");
        line = line.substring(0, Math.min(line.length(), MAX_LINE)) + "\n";
        try (RandomAccessFile out = new RandomAccessFile(file, "rw")) {
            if (out.length() > MAX) {
                halve(out);
            }
            out.seek(out.length());
            out.write(line.getBytes(StandardCharsets.UTF_8));
        } catch (IOException e) {
            android.util.Log.w(TAG, "cannot write the log", e); // a full disk: the agent goes on without
        }
    }

    /** halve keeps the younger half, from the beginning of a line. */
    private static void halve(RandomAccessFile out) throws IOException {
        byte[] half = new byte[MAX / 2];
        out.seek(out.length() - half.length);
        out.readFully(half);
        int start = 0;
        while (start < half.length && half[start] != '\n') {
            start++;
        }
        start = Math.min(start + 1, half.length);
        out.seek(0);
        out.write(half, start, half.length - start);
        out.setLength(half.length - start);
    }
}

package dev.muster.agent.core;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.text.SimpleDateFormat;
import java.util.Arrays;
import java.util.Date;
import java.util.Locale;
import java.util.TimeZone;

/** LogFile keeps the last lines of what the agent logs in a file, without secrets, for the service to ask for. */
public final class LogFile implements Kept {
    private static final int MAX_LINE = 1000; // bytes

    private final File file;

    public LogFile(File file) {
        this.file = file;
    }

    /** write adds a line. It throws what happens to a file on a full disk. */
    public synchronized void write(String level, String what, Object about) throws IOException {
        SimpleDateFormat time = new SimpleDateFormat("yyyy-MM-dd'T'HH:mm:ss'Z'", Locale.ROOT);
        time.setTimeZone(TimeZone.getTimeZone("UTC"));
        byte[] line = Text.bytes(clean(time.format(new Date()) + " " + level + " " + what + ": " + about));
        line = Arrays.copyOf(line, Math.min(line.length, MAX_LINE) + 1);
        line[line.length - 1] = '\n';
        try (RandomAccessFile out = new RandomAccessFile(file, "rw")) {
            if (out.length() + line.length > MAX) {
                halve(out);
            }
            out.seek(out.length());
            out.write(line);
        }
    }

    /** halve keeps the younger half, from the beginning of a line. */
    private static void halve(RandomAccessFile out) throws IOException {
        byte[] half = tail(out, MAX / 2);
        out.seek(0);
        out.write(half);
        out.setLength(half.length);
    }

    /** tail is the end of the file, at most limit bytes, from the beginning of a line. */
    private static byte[] tail(RandomAccessFile in, int limit) throws IOException {
        byte[] end = new byte[(int) Math.min(in.length(), limit)];
        in.seek(in.length() - end.length);
        in.readFully(end);
        int start = 0;
        if (in.length() > limit) {
            while (start < end.length && end[start] != '\n') {
                start++;
            }
            start = Math.min(start + 1, end.length);
        }
        return Arrays.copyOfRange(end, start, end.length);
    }

    /** text is what is kept. A character that was cut in two is a question mark. */
    @Override
    public synchronized byte[] text() throws IOException {
        if (!file.exists()) {
            return new byte[0];
        }
        try (RandomAccessFile in = new RandomAccessFile(file, "r")) {
            return Text.bytes(new String(tail(in, MAX), Text.UTF_8).replace((char) 0xFFFD, '?'));
        }
    }

    /** clear forgets what was logged. */
    public synchronized void clear() {
        file.delete();
    }

    /** clean is a line without secrets, and without what breaks lines or controls. */
    public static String clean(String line) {
        StringBuilder out = new StringBuilder();
        for (int i = 0; i < line.length(); i++) {
            char c = line.charAt(i);
            boolean alone = Character.isSurrogate(c)
                    && !(Character.isHighSurrogate(c) ? i + 1 < line.length() && Character.isLowSurrogate(line.charAt(i + 1))
                            : i > 0 && Character.isHighSurrogate(line.charAt(i - 1)));
            out.append(Character.isISOControl(c) || c == 0x2028 || c == 0x2029 || c == 0xFFFD || alone ? ' ' : c);
        }
        return Redaction.of(out.toString());
    }
}

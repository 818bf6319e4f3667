package dev.muster.agent;

import dev.muster.agent.core.Kept;
import dev.muster.agent.core.Log;
import dev.muster.agent.core.LogFile;
import java.io.File;
import java.io.IOException;

/** DeviceLog is the agent's log: a file that keeps its last lines, without secrets, for adb to fetch and the service to ask for. */
final class DeviceLog implements Log, Kept {
    private static final String TAG = "muster";

    private final LogFile file;

    DeviceLog(File file) {
        this.file = new LogFile(file);
    }

    @Override
    public void debug(String what, Object about) {} // the file has no such lines

    @Override
    public void info(String what, Object about) {
        write("INFO", what, about);
    }

    @Override
    public void warn(String what, Object about) {
        android.util.Log.w(TAG, LogFile.clean(what + ": " + about));
        write("WARN", what, about);
    }

    @Override
    public void error(String what, Object about) {
        android.util.Log.e(TAG, LogFile.clean(what + ": " + about));
        write("ERROR", what, about);
    }

    private void write(String level, String what, Object about) {
        try {
            file.write(level, what, about);
        } catch (IOException e) {
            android.util.Log.w(TAG, "cannot write the log", e); // a full disk: the agent goes on without
        }
    }

    @Override
    public byte[] text() throws IOException {
        return file.text();
    }

    /** clear forgets what was logged. */
    void clear() {
        file.clear();
    }
}

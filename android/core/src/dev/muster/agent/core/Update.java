package dev.muster.agent.core;

import java.util.Map;
import java.util.regex.Pattern;

/** Update is a version of the agent that the service has named. */
public final class Update {
    /** MAX is the size of an update, in bytes. */
    private static final long MAX = 64 << 20;

    private static final Pattern SHA256 = Pattern.compile("[0-9a-f]{64}");

    public final String packageName;
    public final String version;
    public final long code;
    /** sha256 is that of the file, in hexadecimal, and size its length in bytes. */
    public final String sha256;

    public final long size;

    private Update(Fields f) throws JsonException {
        Fields file = f.object("file");
        packageName = f.text("package");
        version = f.text("version");
        code = f.number("code");
        sha256 = file == null ? "" : file.text("sha256");
        size = file == null ? 0 : file.number("size");
    }

    static Update read(Fields f) throws JsonException {
        return f == null ? null : new Update(f);
    }

    /** sound reports whether there can be such a file. */
    boolean sound() {
        return SHA256.matcher(sha256).matches() && size > 0 && size <= MAX;
    }

    boolean same(Update other) {
        return other != null && code == other.code && sha256.equals(other.sha256) && size == other.size;
    }

    Map<String, Object> json() {
        return Fields.members("package", packageName, "version", version, "code", code, "file",
                Fields.members("sha256", sha256, "size", size));
    }
}

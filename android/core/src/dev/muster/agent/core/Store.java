package dev.muster.agent.core;

import java.io.File;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Store is the state directory. */
final class Store {
    static final String IDENTITY = "identity.json";
    static final String OBEYED = "service.json";
    static final String APPLIED = "applied.json";
    static final String PENDING = "enrolling.json";
    static final String JOURNAL = "journal";
    static final String ORDER = "order";
    static final String UPDATE = "update.json";
    /** PROGRAM is the file of an update. */
    static final String PROGRAM = "update";

    /** PART is what there is of PROGRAM so far. */
    private static final String PART = Download.part(new File(PROGRAM)).getName();

    /** FILES are all files that the agent may have written, in the order in which they are destroyed. */
    private static final List<String> FILES =
            Arrays.asList(IDENTITY, PENDING, OBEYED, APPLIED, JOURNAL, ORDER, UPDATE, PROGRAM, PART, Disk.RESERVE);

    /** SUM is the last member of each file: the checksum of what the file is without it. */
    private static final Pattern SUM = Pattern.compile(",\"checksum\":\"([0-9a-f]{8})\"\\}$");

    private final File directory;

    Store(File directory) {
        this.directory = directory;
    }

    File path(String name) {
        return new File(directory, name);
    }

    /** load reads a file, or returns null where there is none. */
    Fields load(String name) throws IOException {
        try {
            return Json.object(unsum(new String(Disk.read(path(name)), Text.UTF_8)));
        } catch (NoSuchFileException e) {
            return null;
        } catch (JsonException e) {
            throw new DamagedException(path(name) + " is damaged: " + e.getMessage(), e);
        }
    }

    void save(String name, Map<String, Object> value) throws IOException {
        Disk.makeDirectory(directory);
        Disk.write(path(name), Text.bytes(addSum(Json.write(value))));
    }

    static String addSum(String object) {
        return object.substring(0, object.length() - 1) + ",\"checksum\":\"" + Disk.checksum(Text.bytes(object)) + "\"}";
    }

    /** unsum returns the object without its checksum. */
    static String unsum(String file) throws JsonException {
        Matcher m = SUM.matcher(file);
        if (!m.find()) {
            return file;
        }
        String object = file.substring(0, m.start()) + "}";
        if (!Disk.checksum(Text.bytes(object)).equals(m.group(1))) {
            throw new JsonException("its checksum is wrong");
        }
        return object;
    }

    Identity identity() throws IOException {
        try {
            Fields f = load(IDENTITY);
            if (f != null) {
                return Identity.read(f);
            }
        } catch (DamagedException | JsonException e) {
            throw new LostException("this device has lost its identity: " + e.getMessage(), e);
        }
        throw new NotEnrolledException();
    }

    /** destroy removes everything, the identity first: without it nothing else has any power. */
    void destroy() throws IOException {
        for (String name : FILES) {
            remove(name);
        }
        sweep("");
    }

    /** sweepLeftovers removes what interrupted writes left. The caller is the only writer, but another process may be writing an order. */
    void sweepLeftovers() throws IOException {
        sweep(ORDER);
    }

    /** sweep removes what interrupted writes left of all files but one. It may hold a token. */
    private void sweep(String except) throws IOException {
        String[] left = directory.list();
        for (String name : left == null ? new String[0] : left) {
            for (String file : FILES) {
                if (name.startsWith(file + Disk.FRESH) && !file.equals(except)) {
                    remove(name);
                }
            }
        }
    }

    void remove(String name) throws IOException {
        Disk.remove(path(name));
    }
}

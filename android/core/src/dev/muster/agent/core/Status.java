package dev.muster.agent.core;

import java.io.File;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Status is what a device knows of its own enrollment. */
public final class Status {
    public final String deviceId;
    public final String server;
    public final String role;
    public final String policyId;
    public final long policyVersion;
    /** open counts the commands that the service has no final word about. */
    public final int open;
    /** wanted are the policy's settings with their values, states what became of each. */
    public final Map<String, String> wanted;

    public final Map<String, String> states = new LinkedHashMap<>();

    private Status(Identity id, Applied applied, int open) {
        deviceId = id.deviceId;
        server = id.server;
        role = id.role;
        policyId = applied.policy.id;
        policyVersion = applied.policy.version;
        wanted = new TreeMap<>(applied.wanted);
        for (SettingReport s : applied.settings) {
            states.put(s.id, s.state);
        }
        this.open = open;
    }

    /** read reads it from a state directory. It changes nothing there, so that it may be asked beside an agent that runs. */
    public static Status read(File directory) throws IOException {
        Store store = new Store(directory);
        Identity id = store.identity();
        Applied applied = new Applied();
        try {
            Fields f = store.load(Store.APPLIED);
            applied = f == null ? applied : Applied.read(f);
        } catch (DamagedException | JsonException e) {
            // It is made again at the next check-in.
        }
        Journal journal = Journal.load(store.path(Store.JOURNAL));
        int open = journal.entries(Entry.RECEIVED).size() + journal.entries(Entry.STARTED).size() + journal.entries(Entry.DONE).size();
        return new Status(id, applied, open);
    }

    /** pins are those of an enrolled device's service. */
    public static List<String> pins(File directory) throws IOException {
        return new Store(directory).identity().pins;
    }
}

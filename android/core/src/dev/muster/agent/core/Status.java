package dev.muster.agent.core;

import java.io.File;
import java.io.IOException;

/** Status is what a device knows of its own enrollment. */
public final class Status {
    public final String deviceId;
    public final String server;
    public final String role;
    public final String policyId;
    public final long policyVersion;
    /** open counts the commands that the service has no final word about. */
    public final int open;

    private Status(Identity id, PolicyRef policy, int open) {
        deviceId = id.deviceId;
        server = id.server;
        role = id.role;
        policyId = policy.id;
        policyVersion = policy.version;
        this.open = open;
    }

    /** read reads it from a state directory. It changes nothing there, so that it may be asked beside an agent that runs. */
    public static Status read(File directory) throws IOException {
        Store store = new Store(directory);
        Identity id = store.identity();
        PolicyRef policy = PolicyRef.NONE;
        try {
            Fields f = store.load(Store.APPLIED);
            policy = f == null ? PolicyRef.NONE : Applied.read(f).policy;
        } catch (DamagedException | JsonException e) {
            // It is made again at the next check-in.
        }
        Journal journal = Journal.load(store.path(Store.JOURNAL));
        int open = journal.entries(Entry.RECEIVED).size() + journal.entries(Entry.STARTED).size() + journal.entries(Entry.DONE).size();
        return new Status(id, policy, open);
    }

    /** pins are those of an enrolled device's service. */
    public static java.util.List<String> pins(File directory) throws IOException {
        return new Store(directory).identity().pins;
    }
}

package dev.muster.agent.core;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Identity is who the device is to the service. It is written when the device enrolls and when keys
 * change, and destroyed when the enrollment ends.
 */
final class Identity implements Cloneable {
    static final String COMPANION = "companion";

    String server = "";
    String deviceId = "";
    String role = "manager";
    String key = ""; // its name in the key store
    List<CommandKey> commandKeys = new ArrayList<>();
    /** reserved is a sequence number that was never used: counting goes on from there after a restart. */
    long reserved;

    long offset; // the service's clock minus the device's, in milliseconds
    /** nextKey was offered to the service, which may or may not have taken it. */
    String nextKey = "";

    long keyMade; // Unix milliseconds
    List<String> pins = new ArrayList<>();
    /** latest is the latest time that the service has signed. The device's own clock cannot take it back. */
    long latest;

    /** copy returns an identity that can be changed. Its lists are replaced, never changed. */
    Identity copy() {
        try {
            return (Identity) clone();
        } catch (CloneNotSupportedException e) {
            throw new IllegalStateException(e);
        }
    }

    boolean companion() {
        return COMPANION.equals(role);
    }

    static Identity read(Fields f) throws IOException {
        Identity id = new Identity();
        id.server = f.text("server");
        id.deviceId = f.text("deviceId");
        id.role = f.text("role");
        id.key = f.text("key");
        id.commandKeys = CommandKey.readAll(f.objects("commandKeys"));
        id.reserved = f.number("reserved");
        id.offset = f.number("offsetMs");
        id.nextKey = f.text("nextKey");
        id.keyMade = f.number("keyMade");
        Fields connection = f.object("connection");
        id.pins = connection == null ? new ArrayList<String>() : connection.texts("pins");
        id.latest = f.number("latest");
        try {
            id.sound();
        } catch (IOException e) {
            throw new DamagedException(e.getMessage(), e);
        }
        return id;
    }

    /** sound refuses an identity that lacks something without which there is nothing to run. */
    private void sound() throws IOException {
        Server.check(server);
        if (deviceId.isEmpty() || commandKeys.isEmpty() || key.isEmpty()) {
            throw new IOException("it names no device or no key");
        }
    }

    Map<String, Object> json() {
        List<Object> all = new ArrayList<>();
        for (CommandKey k : commandKeys) {
            all.add(k.json());
        }
        return Fields.members("server", server, "deviceId", deviceId, "role", role, "key", key, "commandKeys", all, "reserved",
                reserved, "offsetMs", offset, "nextKey", Fields.some(nextKey), "keyMade", keyMade, "connection",
                Fields.members("pins", pins), "latest", latest);
    }
}

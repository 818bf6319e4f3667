package dev.muster.agent.core;

import java.io.IOException;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/**
 * Obeyed is which service a device obeys, kept beside its identity: a device that lost that, or its key,
 * still knows whose code it may take.
 */
final class Obeyed {
    final String server;
    final List<String> pins;
    final String role;
    /** key is the youngest command key. */
    final CommandKey key;

    final long latest;

    private Obeyed(String server, List<String> pins, String role, CommandKey key, long latest) {
        this.server = server;
        this.pins = pins;
        this.role = role;
        this.key = key;
        this.latest = latest;
    }

    private static Obeyed of(Identity id) {
        return new Obeyed(id.server, id.pins, id.role, id.commandKeys.get(id.commandKeys.size() - 1), id.latest);
    }

    /** keep writes down whom an identity obeys, if that is not what is there. */
    static void keep(Store store, Identity id) throws IOException {
        Obeyed now = of(id);
        try {
            Obeyed kept = read(store);
            if (kept.server.equals(now.server) && kept.pins.equals(now.pins) && kept.role.equals(now.role)
                    && kept.key.id.equals(now.key.id) && kept.key.key.same(now.key.key)) {
                return;
            }
        } catch (DamagedException | JsonException e) {
            // It is written again.
        }
        Map<String, Object> all = Fields.members("server", now.server, "pins", now.pins, "role", now.role,
                "commandKey", now.key.json(), "latest", now.latest);
        store.save(Store.OBEYED, all);
    }

    private static Obeyed read(Store store) throws IOException {
        Fields f = store.load(Store.OBEYED);
        if (f == null || f.object("commandKey") == null) {
            throw new DamagedException("it is not noted", null);
        }
        Obeyed o = new Obeyed(f.text("server"), f.texts("pins"), f.text("role"), CommandKey.read(f.object("commandKey")),
                f.number("latest"));
        o.key.key.check();
        return o;
    }

    /** find is whom a device obeyed that lost its key or its identity. */
    static Obeyed find(Store store, LostException lost) throws IOException {
        try {
            return of(store.identity()); // its key alone is lost
        } catch (LostException e) {
            // The identity is.
        }
        try {
            return read(store);
        } catch (IOException e) {
            throw new LostException(lost.getMessage() + "; which service it obeyed is not known either: " + e.getMessage(), lost);
        }
    }

    /** fits refuses an enrollment that would change whom this device obeys. */
    void fits(String as) throws IOException {
        if (!role.equals(as)) {
            throw new IOException("this device lost its identity in another role");
        }
    }

    /** signed refuses an answer unless the key that signed it is the one that the device obeyed, or follows from that. */
    void signed(CommandKey by, List<Envelope> announced, long at) throws IOException {
        List<CommandKey> keys = Collections.singletonList(key);
        for (Envelope e : announced) {
            try {
                keys = CommandKey.follow(keys, e, Math.max(latest, at));
            } catch (IOException passed) {
                // A forged announcement hides no true one behind it.
            }
        }
        if (!keys.get(keys.size() - 1).key.same(by.key)) {
            throw new IOException(Enrollment.NOT_OBEYED);
        }
    }
}

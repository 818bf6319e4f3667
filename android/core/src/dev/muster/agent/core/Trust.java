package dev.muster.agent.core;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** Trust knows the keys that the service signs with, and follows their succession. */
final class Trust {
    /** LATEST_EVERY is how far the latest signed time may run ahead of what is on disk. */
    private static final long LATEST_EVERY = 24L * 60 * 60 * 1000;

    private final Link link;

    Trust(Link link) {
        this.link = link;
    }

    /** open verifies an envelope with the key that it names, if the agent trusts that key now. */
    Fields open(Envelope e, String kind) throws IOException {
        for (CommandKey k : CommandKey.trusted(link.identity().commandKeys, link.signedNow())) {
            if (k.id.equals(e.keyId)) {
                return e.open(k.key, kind);
            }
        }
        throw new IOException("signed with the key \"" + e.keyId + "\", which this device does not trust");
    }

    private CommandKey newest() {
        List<CommandKey> keys = link.identity().commandKeys;
        return keys.get(keys.size() - 1);
    }

    /** newestKey is the id of the youngest key that the agent trusts: the service announces those that came after it. */
    String newestKey() {
        return newest().id;
    }

    /**
     * learn follows the announcements, oldest first, from the newest key that the agent trusts to the
     * present one. What another key announces is passed over: a former key that leaked must not name a
     * successor of its own.
     */
    void learn(List<Envelope> announced) throws IOException {
        for (Envelope e : announced) {
            if (e.keyId.equals(newestKey())) {
                trust(CommandKey.read(open(e, Envelope.KEY)));
            }
        }
    }

    /** learnQuietly is learn where what is not believed opens nothing later, either. */
    void learnQuietly(List<Envelope> announced) {
        try {
            learn(announced);
        } catch (IOException e) {
            // Not announced by a known key.
        }
    }

    /** trust adds the key that the newest one announced. The keys before may lose their power by it. */
    private void trust(CommandKey k) throws IOException {
        synchronized (link) {
            long now = link.signedNow();
            for (CommandKey known : link.identity().commandKeys) {
                if (known.id.equals(k.id)) {
                    throw new IOException("the announced key is known already");
                }
            }
            if (k.notBefore < newest().notBefore || k.notBefore > now + CommandKey.AHEAD) {
                throw new IOException("the key \"" + k.id + "\" begins before the key that it follows, or in the future");
            }
            if (!k.key.algorithm.equals(newest().key.algorithm)) {
                throw new IOException("the key \"" + k.id + "\" is of another algorithm than the key that it follows");
            }
            Identity next = link.identity().copy();
            List<CommandKey> keys = new ArrayList<>(next.commandKeys);
            keys.add(k);
            next.commandKeys = CommandKey.trusted(keys, now);
            link.save(next);
        }
    }

    /**
     * assignment opens the assignment in the answer to the request with the sequence number. From the
     * first one on the device asks for one.
     */
    Fields assignment(Envelope sealed, long sequence) throws IOException {
        if (sealed == null) {
            throw new IOException("the service did not sign which policy this device is to have");
        }
        Fields said;
        try {
            said = open(sealed, Envelope.ASSIGNMENT);
        } catch (IOException e) {
            throw new IOException("cannot trust the assignment of a policy: " + e.getMessage(), e);
        }
        synchronized (link) {
            Identity id = link.identity();
            if (!said.text("deviceId").equals(id.deviceId) || said.number("number") != sequence) {
                throw new IOException("the assignment of a policy is for another device or another request");
            }
            Identity next = id.copy();
            next.assigned = true;
            next.latest = Math.max(next.latest, said.number("time"));
            if (!id.assigned || next.latest - id.latest > LATEST_EVERY) {
                link.save(next);
            }
            return said;
        }
    }
}

package dev.muster.agent.core;

import java.io.IOException;
import java.util.Collections;
import java.util.List;

/** Trust knows the keys that the service signs with, and follows their succession. */
final class Trust {
    /** LATEST_EVERY is how far the latest signed time may run ahead of what is on disk. */
    private static final long LATEST_EVERY = 24L * 60 * 60 * 1000;
    /** ANY_TIME is later than the beginning of any key, in Unix milliseconds. */
    private static final long ANY_TIME = Long.MAX_VALUE / 2;

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

    /**
     * time opens the time that a refusal holds. Keys that the refusal announces may have signed it, whatever the
     * device's clock shows: where it is far behind, they seem to begin in the future.
     */
    Fields time(Refusal r) throws IOException {
        List<CommandKey> keys = link.identity().commandKeys;
        for (Envelope e : trusts(r.signed.keyId) ? Collections.<Envelope>emptyList() : r.keys) {
            try {
                keys = CommandKey.follow(keys, e, ANY_TIME);
            } catch (IOException passed) {
                continue; // a forged announcement hides no true one behind it
            }
            CommandKey newest = keys.get(keys.size() - 1);
            if (newest.id.equals(r.signed.keyId)) {
                return r.signed.open(newest.key, Envelope.TIME);
            }
        }
        return open(r.signed, Envelope.TIME);
    }

    /** trusts reports whether the agent trusts the key with the id now. */
    boolean trusts(String keyId) {
        for (CommandKey k : CommandKey.trusted(link.identity().commandKeys, link.signedNow())) {
            if (k.id.equals(keyId)) {
                return true;
            }
        }
        return false;
    }

    CommandKey newest() {
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
     * successor of its own. So is what is not trusted, for the error says why: a forged announcement does
     * not hide a true one behind it.
     */
    void learn(List<Envelope> announced) throws IOException {
        IOException passed = null;
        for (Envelope e : announced) {
            if (!e.keyId.equals(newestKey())) {
                continue;
            }
            try {
                trust(e);
            } catch (IOException refused) {
                passed = refused;
            }
        }
        if (passed != null) {
            throw passed;
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
    private void trust(Envelope e) throws IOException {
        synchronized (link) {
            Identity next = link.identity().copy();
            next.commandKeys = CommandKey.follow(next.commandKeys, e, link.signedNow());
            link.save(next);
        }
    }

    /** assignment opens the assignment in the answer to the request with the sequence number. */
    Fields assignment(Envelope sealed, long sequence) throws IOException {
        if (sealed == null) {
            throw new IOException("the service did not sign which policy this device is to have");
        }
        Fields assignment;
        try {
            assignment = open(sealed, Envelope.ASSIGNMENT);
        } catch (IOException e) {
            throw new IOException("cannot trust the assignment of a policy: " + e.getMessage(), e);
        }
        if (!assignment.text("deviceId").equals(link.identity().deviceId) || assignment.number("number") != sequence
                || assignment.text("policyId").isEmpty()) {
            throw new IOException("the assignment of a policy is for another device or another request");
        }
        keepTime(assignment.number("time"));
        return assignment;
    }

    /**
     * tombstone returns the action of the tombstone in a refusal, if the service has signed one for this
     * device in answer to this very request; else "".
     */
    String tombstone(Refusal r) {
        if (r == null || !r.error.equals(Refusal.ENDED) || r.signed == null) {
            return "";
        }
        learnQuietly(r.keys); // what is not believed opens nothing below
        try {
            Fields stone = open(r.signed, Envelope.TOMBSTONE);
            if (!stone.text("deviceId").equals(link.identity().deviceId) || r.signature.isEmpty()
                    || !stone.text("inReplyTo").equals(r.signature) || stone.number("time") <= 0) {
                return "";
            }
            keepTime(stone.number("time"));
            return stone.text("action");
        } catch (IOException e) {
            return "";
        }
    }

    /** keepTime keeps a time that the service has signed, if it is much later than the one that is kept. */
    void keepTime(long at) throws IOException {
        synchronized (link) {
            if (at - link.identity().latest > LATEST_EVERY) {
                Identity next = link.identity().copy();
                next.latest = at;
                link.save(next);
            }
        }
    }
}

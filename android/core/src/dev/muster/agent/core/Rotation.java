package dev.muster.agent.core;

import java.io.IOException;
import java.security.GeneralSecurityException;
import java.util.Map;

/** Rotation changes the device's key. */
final class Rotation {
    /** KEY_LIFE is how long a device keeps its key unless it is told to change it. */
    private static final long KEY_LIFE = 365L * 24 * 60 * 60 * 1000;

    private static final int SILENCE = 30_000;

    private final Link link;

    Rotation(Link link) {
        this.link = link;
    }

    /** due changes the key when it is old, or when a change was begun. */
    void due() throws IOException {
        Identity id = link.identity();
        boolean old = id.keyMade != 0 && link.serviceTime() > id.keyMade + KEY_LIFE;
        if (old || !id.nextKey.isEmpty()) {
            rotate();
        }
    }

    /**
     * rotate offers a new key, which is kept before the service hears of it. Where the answer was lost,
     * the service may have either key: it is offered by the old key, and then by itself. The old key is
     * forgotten last.
     */
    void rotate() throws IOException {
        DeviceKey next = begin();
        try {
            offer(link.key(), next);
        } catch (IOException e) {
            Refusal refused = Refusal.in(e);
            if (refused == null || !refused.error.equals(Refusal.BAD_SIGNATURE)) {
                throw e;
            }
            offer(next, next);
        }
        String old;
        synchronized (link) {
            Identity taken = link.identity().copy();
            old = taken.key;
            taken.key = taken.nextKey;
            taken.nextKey = "";
            taken.keyMade = link.serviceTime();
            link.use(next); // also where that cannot be written down now: the service has no other
            link.save(taken);
        }
        try {
            link.keys().delete(old);
        } catch (GeneralSecurityException e) {
            // It has no power any more, and the next change takes its place.
        }
    }

    /** begin returns the key that a change was begun with, or a new one. */
    DeviceKey begin() throws IOException {
        synchronized (link) {
            Identity id = link.identity();
            try {
                DeviceKey begun = id.nextKey.isEmpty() ? null : link.keys().key(id.nextKey);
                if (begun != null) {
                    return begun;
                }
                Identity changed = id.copy();
                changed.nextKey = Enrollment.otherKey(id.key);
                DeviceKey next = link.keys().create(changed.nextKey);
                link.save(changed);
                return next;
            } catch (GeneralSecurityException e) {
                throw new IOException("cannot make a key: " + e.getMessage(), e);
            }
        }
    }

    /** offer makes one offer, again if the service corrects clock or sequence. */
    private void offer(DeviceKey holder, DeviceKey next) throws IOException {
        for (int attempt = 0; ; attempt++) {
            try {
                offerOnce(holder, next);
                return;
            } catch (IOException e) {
                Refusal refused = Refusal.in(e);
                if (attempt == 2 || refused == null || !link.correct(refused)) {
                    throw e;
                }
            }
        }
    }

    /** message is what the old and the new key sign. */
    static byte[] message(String device, PublicKey next, long sequence) {
        return Text.lines("muster-rotate-v1", device, next.algorithm, next.spki, Long.toString(sequence));
    }

    private void offerOnce(DeviceKey holder, DeviceKey next) throws IOException {
        long sequence = link.take();
        PublicKey offered = Enrollment.publicKey(next);
        byte[] message = message(link.identity().deviceId, offered, sequence);
        Map<String, Object> request = Fields.members("key", offered.json(), "oldSig", Link.sign(holder, message), "newSig",
                Link.sign(next, message));
        byte[] body = Text.bytes(Json.write(request));
        Map<String, String> headers = link.signed(holder, sequence, "POST", "/rotate", body);
        long deadline = Link.deadline();
        Link.decode(link.carry("POST", "/rotate", body, headers, SILENCE), deadline);
    }
}

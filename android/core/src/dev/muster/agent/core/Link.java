package dev.muster.agent.core;

import java.io.IOException;
import java.security.GeneralSecurityException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Link signs requests and keeps what signing needs: key, sequence, clock. */
final class Link {
    private static final int MAX_ANSWER = 4 << 20;
    private static final int SILENCE = 30_000; // milliseconds
    /** LOG is where a command's log is uploaded. */
    static final String LOG = "/log/";
    /** RESERVE is how many sequence numbers are set aside on disk at a time. */
    private static final long RESERVE = 1000;

    /** Reply is a decoded answer with the sequence number of the request that was answered. */
    static final class Reply {
        final Fields answer;
        final long sequence;

        Reply(Fields answer, long sequence) {
            this.answer = answer;
            this.sequence = sequence;
        }
    }

    final Trust trust;
    private final Transport transport;
    private final Store store;
    private final KeyStore keys;
    private final Clock clock;

    private Identity id;
    private DeviceKey key;
    private long next; // the next sequence number
    private boolean closed;

    Link(Store store, Transport transport, KeyStore keys, Clock clock) throws IOException {
        this.store = store;
        this.transport = transport;
        this.keys = keys;
        this.clock = clock;
        id = store.identity();
        key = deviceKey(id.key);
        next = id.reserved;
        trust = new Trust(this);
        id.commandKeys = CommandKey.trusted(id.commandKeys, signedNow());
        Obeyed.keep(store, id);
    }

    private DeviceKey deviceKey(String name) throws IOException {
        try {
            DeviceKey found = keys.key(name);
            if (found == null) {
                throw new LostException("this device has lost its key", null);
            }
            return found;
        } catch (GeneralSecurityException e) {
            throw new LostException("this device cannot use its key: " + e.getMessage(), e);
        }
    }

    /** identity returns who the device is. The caller changes a copy of it, and saves that. */
    synchronized Identity identity() {
        return id;
    }

    /**
     * save writes an identity down and makes it the agent's. One that was given up in between is not
     * brought back.
     */
    synchronized void save(Identity changed) throws IOException {
        checkOpen();
        Identity disk = store.identity();
        if (!disk.deviceId.equals(changed.deviceId)) {
            throw new NotEnrolledException();
        }
        changed.reserved = Math.max(changed.reserved, disk.reserved);
        store.save(Store.IDENTITY, changed.json());
        id = changed;
        Obeyed.keep(store, changed);
    }

    /** close ends all requests and saves: another agent of this process may have changed the identity since. */
    synchronized void close() {
        closed = true;
    }

    private void checkOpen() throws IOException {
        if (closed) {
            throw new IOException("this agent was closed");
        }
    }

    /** hold makes an identity the agent's that cannot be written down. */
    synchronized void hold(Identity changed) {
        id = changed;
    }

    /** serviceTime is the service's clock as far as the agent knows it. */
    synchronized long serviceTime() {
        return clock.now() + id.offset;
    }

    /**
     * signedNow is the time by which keys are judged: the service's clock, but never before what the
     * service has signed already. So a device whose clock goes back does not trust a former key again.
     */
    synchronized long signedNow() {
        return Math.max(serviceTime(), id.latest);
    }

    /** forgetKeys deletes the device's keys, once no service knows them. */
    void forgetKeys() throws IOException {
        Enrollment.forgetKeys(keys);
    }

    KeyStore keys() {
        return keys;
    }

    synchronized DeviceKey key() {
        return key;
    }

    synchronized void use(DeviceKey other) {
        key = other;
    }

    /** take reserves the next sequence number. */
    synchronized long take() throws IOException {
        checkOpen();
        if (next >= id.reserved) {
            Identity more = id.copy();
            more.reserved = next + RESERVE;
            save(more);
        }
        return next++;
    }

    /** canonical is what a device signs of a request: one line an item. */
    static byte[] canonical(String method, String path, String device, long time, long sequence, byte[] body) {
        return Text.lines("muster-agent-v1", method, path, device, Long.toString(time), Long.toString(sequence),
                Text.hex(Text.sha256(body)));
    }

    static String sign(DeviceKey key, byte[] message) throws IOException {
        try {
            return Text.encode(key.sign(message));
        } catch (GeneralSecurityException e) {
            throw new LostException("this device cannot sign with its key: " + e.getMessage(), e);
        }
    }

    /** signed are the headers of a request that has the sequence number. */
    Map<String, String> signed(DeviceKey holder, long sequence, String method, String path, byte[] body) throws IOException {
        long time = serviceTime();
        String device = identity().deviceId;
        Map<String, String> headers = new LinkedHashMap<>();
        headers.put("Muster-Device", device);
        headers.put("Muster-Time", Long.toString(time));
        headers.put("Muster-Seq", Long.toString(sequence));
        headers.put("Muster-Sig", sign(holder, canonical(method, Server.BASE + path, device, time, sequence, body)));
        return headers;
    }

    /** carry sends a request that is signed. Any answer but success is thrown as a Refusal. */
    Transport.Answer carry(String method, String path, byte[] body, Map<String, String> headers, int silence) throws IOException {
        if (body.length > 0) {
            headers.put("Content-Type", path.startsWith(LOG) ? "text/plain; charset=utf-8" : "application/json");
        }
        Transport.Answer answer = transport.send(method, Server.url(identity().server, path), headers, body, silence);
        if (answer.status() == 200 || answer.status() == 206 && headers.containsKey("Range")) {
            return answer;
        }
        try {
            throw Refusal.read(answer, headers.get("Muster-Sig"));
        } finally {
            answer.close();
        }
    }

    /** deadline is when a request that begins now must have its whole answer. */
    static long deadline() {
        return Backoff.elapsed() + HttpTransport.EXCHANGE;
    }

    /** decode reads an answer to its end. */
    static Fields decode(Transport.Answer answer, long deadline) throws IOException {
        try {
            return Json.object(new String(Disk.readAll(answer.body(), MAX_ANSWER, deadline), Text.UTF_8));
        } finally {
            answer.close();
        }
    }

    /** call posts a message and decodes the answer. */
    Reply call(String path, Map<String, Object> message) throws ExchangeException {
        return exchange("POST", path, Text.bytes(Json.write(message)));
    }

    /**
     * exchange makes a request and decodes the answer. A refusal for the clock or the sequence that the
     * service has signed is corrected, and the request made again.
     */
    Reply exchange(String method, String path, byte[] body) throws ExchangeException {
        for (int attempt = 0; ; attempt++) {
            try {
                long sequence = take();
                Map<String, String> headers = signed(key(), sequence, method, path, body);
                long deadline = deadline();
                return new Reply(decode(carry(method, path, body, headers, SILENCE), deadline), sequence);
            } catch (IOException e) {
                Refusal refused = Refusal.in(e);
                if (attempt == 2 || refused == null || !correct(refused)) {
                    throw new ExchangeException(e);
                }
            }
        }
    }

    /** range asks for the bytes of a file from one offset to another, both included. The caller closes the answer. */
    Transport.Answer range(String path, long from, long to) throws IOException {
        for (int attempt = 0; ; attempt++) {
            try {
                Map<String, String> headers = signed(key(), take(), "GET", path, new byte[0]);
                headers.put("Range", "bytes=" + from + "-" + to);
                return carry("GET", path, new byte[0], headers, SILENCE);
            } catch (IOException e) {
                Refusal refused = Refusal.in(e);
                if (attempt == 2 || refused == null || !correct(refused)) {
                    throw e;
                }
            }
        }
    }

    /** correct sets the clock's offset or the sequence as the service says, if it is the service, about this very request. */
    boolean correct(Refusal r) {
        trust.learnQuietly(r.keys);
        if (r.signed == null || !r.error.equals(Refusal.CLOCK_SKEW) && !r.error.equals(Refusal.REPLAYED)) {
            return false;
        }
        try {
            if (!set(trust.time(r), r.signature)) {
                return false;
            }
        } catch (IOException e) {
            return false;
        }
        trust.learnQuietly(r.keys); // those that lay in the future of the clock before
        return true;
    }

    /** set sets the clock's offset and the sequence by a time, if it answers the request with the signature. */
    private synchronized boolean set(Fields correction, String signature) throws IOException {
        if (!correction.text("deviceId").equals(id.deviceId) || !correction.text("inReplyTo").equals(signature)) {
            return false;
        }
        long time = correction.number("serverTime");
        Identity corrected = id.copy();
        corrected.offset = time - clock.now();
        corrected.latest = Math.max(corrected.latest, time);
        next = Math.max(next, correction.number("lastSequence") + 1);
        corrected.reserved = Math.max(corrected.reserved, next);
        save(corrected);
        return true;
    }
}

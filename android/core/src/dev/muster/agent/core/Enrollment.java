package dev.muster.agent.core;

import java.io.File;
import java.io.IOException;
import java.security.GeneralSecurityException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/** Enrollment is what a device needs to enroll. */
public final class Enrollment {
    private static final String KEY = "device-a";
    private static final String OTHER_KEY = "device-b";
    private static final String THIRD_KEY = "device-c";
    private static final int MAX_ANSWER = 4 << 20;
    private static final int SILENCE = 30_000;

    public String server = "";
    /** token is one-time, from the QR code or the USB tool. */
    public String token = "";

    public String role = "manager";
    /**
     * commandKey names the service's P-256 command key, from the code: its spki, or "sha256:" and its digest;
     * empty: the device keeps the key that signs the answer.
     */
    public String commandKey = "";

    public List<String> pins = new ArrayList<>();
    /** again enrolls a device that is enrolled already. Its former key proves which asset it was. */
    public boolean again;

    public File directory;
    public String version = "";
    public Device device;
    public KeyStore keys;
    public Transport transport;
    public Clock clock = Clock.SYSTEM;

    static final String NOT_OBEYED = "the answer does not name the command key that this device knows: create a new code,"
            + " and see what answers at the service's address";

    /** Former is who the device was so far. */
    private static final class Former {
        final Link link;
        /** live: the service still manages it, so that its key proves which asset the new enrollment is of. */
        final boolean live;

        Former(Link link, boolean live) {
            this.link = link;
            this.live = live;
        }
    }

    /** UselessException means that this device can never enroll with the code. It keeps what it was. */
    private static final class UselessException extends IOException {
        private static final long serialVersionUID = 1;

        UselessException(String why) {
            super(why);
        }
    }

    private static final String ERASE = "the service has ordered to erase this device: it cannot enroll again";

    /** Redeemed is what the service signed in answer to a request, and what it announced beside that. */
    private static final class Redeemed {
        final Fields enrolled;
        final List<Envelope> announced;

        Redeemed(Fields enrolled, List<Envelope> announced) {
            this.enrolled = enrolled;
            this.announced = announced;
        }
    }

    /** Enrolled is what came of an enrollment. */
    public static final class Enrolled {
        public final String deviceId;
        /** key is the name of the command key that the device obeys from now on. */
        public final String key;

        Enrolled(String deviceId, String key) {
            this.deviceId = deviceId;
            this.key = key;
        }
    }

    /**
     * enroll redeems the token and keeps the identity that it gets for it. After a lost answer or a crash it
     * may be called again with the same token.
     */
    public Enrolled enroll() throws IOException {
        Server.check(server);
        Store store = new Store(directory);
        Former former = null;
        Obeyed lost = null;
        try {
            former = former(store);
        } catch (IOException e) {
            if (LostException.in(e) == null) {
                throw e;
            }
            lost = Obeyed.find(store, LostException.in(e));
            lost.fits(role);
        }
        boolean was = former != null || lost != null;
        String name = keyName(was ? holding(store) : null);
        DeviceKey key = key(store, name);
        Redeemed redeemed = redeem(key, former, role.equals("manager") ? lost : null);
        Fields answer = redeemed.enrolled;
        CommandKey commandKey = CommandKey.read(answer.object("commandKey"));
        Identity id = identity(answer, commandKey);
        if (lost != null) {
            lost.signed(commandKey, redeemed.announced, id.latest);
            id.latest = Math.max(id.latest, lost.latest);
        }
        if (former != null) {
            if (!former.link.trust.newest().key.same(commandKey.key)) {
                throw new IOException(NOT_OBEYED);
            }
            id.latest = Math.max(id.latest, former.link.identity().latest);
        }
        id.key = name;
        forget(store); // also where an end of an enrollment was interrupted
        Obeyed.keep(store, id);
        store.save(Store.IDENTITY, id.json());
        store.remove(Store.PENDING);
        for (String other : was ? Arrays.asList(KEY, OTHER_KEY, THIRD_KEY) : Collections.<String>emptyList()) {
            if (!other.equals(name)) {
                drop(other);
            }
        }
        return new Enrolled(id.deviceId, commandKey.key.name());
    }

    /**
     * former is who the device was so far, with the command keys that the service has had since; null: it was
     * not enrolled. A device that is to be erased does not enroll out of that, nor one at a service that it
     * does not know.
     */
    private Former former(Store store) throws IOException {
        Identity was;
        try {
            was = store.identity();
        } catch (NotEnrolledException e) {
            return null;
        }
        Link link = new Link(store, transport, keys, clock); // fails if the key is lost
        if (!again) {
            throw new IOException("this device is enrolled already: unenroll it first");
        }
        if (!Server.url(was.server, "").equals(Server.url(server, "")) || !was.role.equals(role)) {
            throw new UselessException("this device is enrolled at another service, or in another role: unenroll it first");
        }
        String action = catchUp(link);
        if (action.equals("wipe") && !link.identity().companion()) {
            throw new UselessException(ERASE);
        }
        if (!commandKey.isEmpty() && !link.trust.newest().key.named(commandKey)) {
            throw new UselessException("the code is of a service that this device does not know: unenroll it first");
        }
        return new Former(link, action.isEmpty() && !link.identity().companion());
    }

    /**
     * catchUp follows the command keys that the service has had since this device was last in touch, and returns
     * the action of the tombstone that it has signed for this device; "": it still manages the device.
     */
    private String catchUp(Link link) throws IOException {
        if (!link.identity().nextKey.isEmpty()) { // the service has one of two keys
            try {
                new Rotation(link).rotate();
            } catch (IOException e) {
                String action = link.trust.tombstone(Refusal.in(e));
                if (!action.isEmpty()) {
                    return action;
                }
                // What this leaves open, the check-in is refused for.
            }
        }
        try {
            Fields answer = link.call("/checkin", CheckIn.bare(version, new SafeDevice(device).bootId(), link)).answer;
            link.trust.learnQuietly(Refusal.envelopes(answer, "keys"));
            return "";
        } catch (ExchangeException e) {
            String action = link.trust.tombstone(Refusal.in(e));
            if (action.isEmpty()) {
                throw LostException.of(e);
            }
            return action;
        }
    }

    /**
     * forget drops the commands of the former device before there is a new one: the service has given them
     * up. What is applied stays, and is reported again.
     */
    private static void forget(Store store) throws IOException {
        try {
            Fields f = store.load(Store.APPLIED);
            if (f != null) {
                Applied applied = Applied.read(f);
                applied.reported = false;
                store.save(Store.APPLIED, applied.json());
            }
        } catch (DamagedException | JsonException e) {
            // The agent notes it when it starts.
        }
        store.remove(Store.JOURNAL);
        store.remove(Store.ORDER);
    }

    private void drop(String name) {
        try {
            if (!name.isEmpty()) {
                keys.delete(name);
            }
        } catch (GeneralSecurityException e) {
            // It has no power any more, and its place is taken some day.
        }
    }

    /** holding is who the device was, so that its keys stay until it has another; null: that is lost. */
    private static Identity holding(Store store) throws IOException {
        try {
            return store.identity();
        } catch (LostException e) {
            return null;
        }
    }

    /** keyName is a name that no key has which the service may know. */
    private static String keyName(Identity former) {
        for (String name : Arrays.asList(KEY, OTHER_KEY, THIRD_KEY)) {
            if (former == null || !name.equals(former.key) && !name.equals(former.nextKey)) {
                return name;
            }
        }
        throw new IllegalStateException("there are three names for two keys");
    }

    private Identity identity(Fields answer, CommandKey commandKey) throws JsonException {
        Identity id = new Identity();
        id.server = server;
        id.deviceId = answer.text("deviceId");
        id.role = role;
        id.commandKeys = Collections.singletonList(commandKey);
        id.reserved = 1;
        id.latest = answer.number("time");
        id.offset = id.latest - clock.now();
        id.keyMade = id.latest;
        id.pins = new ArrayList<>(pins);
        return id;
    }

    /** refusedForGood reports whether the same code would be refused again, so that it takes another. */
    public static boolean refusedForGood(IOException e) {
        Refusal refused = Refusal.in(e);
        return e instanceof UselessException
                || refused != null && (refused.error.equals(Refusal.BAD_TOKEN) || refused.error.equals(Refusal.MALFORMED));
    }

    /** waits reports whether an administrator has to confirm first that a device which lost its identity is enrolled again. */
    public static boolean waits(IOException e) {
        Refusal refused = Refusal.in(e);
        return refused != null && refused.status == 409 && refused.error.equals("waiting");
    }

    /** pause is how long to wait, in milliseconds, because the service asked for it in its answer; 0: it did not. */
    public static long pause(Throwable e) {
        return new Backoff(new Random()).asked(e);
    }

    /** key returns the key that was made for this token, or makes one and notes what it is for. */
    private DeviceKey key(Store store, String name) throws IOException {
        Fields pending = null;
        try {
            pending = store.load(Store.PENDING);
        } catch (DamagedException e) {
            // It is made again.
        }
        try {
            if (pending != null && pending.text("token").equals(token) && pending.text("server").equals(server)) {
                DeviceKey made = keys.key(name);
                if (made != null) {
                    return made;
                }
            }
            DeviceKey made = keys.create(name);
            store.save(Store.PENDING, Fields.members("server", server, "token", token));
            return made;
        } catch (GeneralSecurityException e) {
            throw new IOException("cannot make a key: " + e.getMessage(), e);
        }
    }

    /** message proves that the device holds the key and means these facts with this token. */
    static byte[] message(String token, PublicKey key, byte[] facts, long time) {
        return Text.lines("muster-enroll-v1", Text.hex(Text.sha256(Text.bytes(token))), key.algorithm, key.spki,
                Text.hex(Text.sha256(facts)), Long.toString(time));
    }

    /** formerMessage is what the key of the device that this one was so far signs as well. */
    static byte[] formerMessage(String former, byte[] message) {
        return Text.lines("muster-reenroll-v1", former, new String(message, Text.UTF_8));
    }

    /** formerProof proves which device this is; null: the service manages none. */
    private static Map<String, Object> formerProof(Former former, byte[] message) throws IOException {
        if (former == null || !former.live) {
            return null;
        }
        String id = former.link.identity().deviceId;
        return Fields.members("deviceId", id, "sig", Link.sign(former.link.key(), formerMessage(id, message)));
    }

    /** lostMessage is what a device signs that lost its key or its identity, with the key's id that it knows. */
    static byte[] lostMessage(String keyId, byte[] message) {
        return Text.lines("muster-lost-v1", keyId, new String(message, Text.UTF_8));
    }

    /** redeem asks the service, and returns what it signed in answer to this request. */
    private Redeemed redeem(DeviceKey key, Former former, Obeyed lost) throws IOException {
        Map<String, Object> facts = new SafeDevice(device).facts();
        long now = clock.now();
        PublicKey own = publicKey(key);
        // The facts' bytes are signed as they stand in the body: Json writes them the same way there.
        byte[] message = message(token, own, Text.bytes(Json.write(facts)), now);
        String proof = Link.sign(key, lost == null ? message : lostMessage(lost.key.id, message));
        byte[] body = Text.bytes(Json.write(Fields.members("token", token, "key", own.json(), "facts", facts, "agentVersion", version,
                "role", role, "time", now, "former", formerProof(former, message),
                "lost", lost == null ? null : Fields.members("keyId", lost.key.id), "proof", proof)));
        Map<String, String> headers = new LinkedHashMap<>();
        headers.put("Content-Type", "application/json");
        long deadline = Link.deadline();
        Transport.Answer answer;
        try {
            answer = transport.send("POST", Server.url(server, "/enroll"), headers, body, SILENCE);
        } catch (IOException e) {
            throw new IOException("cannot reach the service: " + e.getMessage(), e);
        }
        try {
            if (answer.status() != 200) {
                Refusal refused = Refusal.read(answer, proof);
                if (former != null && former.link.trust.tombstone(refused).equals("wipe")) {
                    throw new UselessException(ERASE);
                }
                IOException e = new IOException("the service refused the enrollment (" + refused.error + "): " + refused.message, refused);
                if (refusedForGood(e)) { // it takes a new code
                    forgetToken(e);
                }
                throw e;
            }
            Fields response = Json.object(new String(Disk.readAll(answer.body(), MAX_ANSWER, deadline), Text.UTF_8));
            return new Redeemed(open(Envelope.read(response), commandKey, own, proof), Refusal.envelopes(response, "keys"));
        } finally {
            answer.close();
        }
    }

    /** forgetToken removes what is noted about a token that was refused for good. */
    private void forgetToken(IOException refused) {
        try {
            new Store(directory).remove(Store.PENDING);
        } catch (IOException e) {
            refused.addSuppressed(e);
        }
    }

    /**
     * open opens the answer to an enrollment. It is signed with the key that it names, for the device's key and
     * for this very proof; named is what the code says about that key, "" if it says nothing.
     */
    static Fields open(Envelope sealed, String named, PublicKey device, String proof) throws IOException {
        CommandKey key = CommandKey.read(sealed.claims().object("commandKey"));
        if (!named.isEmpty() && !key.key.named(named)) {
            throw new IOException("the answering server does not have the command key that the code names: create a new code,"
                    + " and look for a proxy in between");
        }
        if (!key.key.algorithm.equals(device.algorithm)) {
            throw new IOException("the service signs with \"" + key.key.algorithm + "\", which is not the algorithm of this device's key");
        }
        if (key.id.isEmpty() || !key.id.equals(sealed.keyId)) {
            throw new IOException("the service's answer to the enrollment is signed with another key than it names");
        }
        Fields enrolled = sealed.open(key.key, Envelope.ENROLLED);
        if (!PublicKey.read(enrolled.object("key")).same(device)
                || !enrolled.text("proof").equals(Text.encode(Text.sha256(Text.bytes(proof))))) {
            throw new IOException("the service's answer is to another enrollment");
        }
        if (!enrolled.text("deviceId").matches("[!-~]{1,128}")) { // it must fit into a header
            throw new IOException("the service's answer to the enrollment holds no device id that can be used");
        }
        return enrolled;
    }

    static PublicKey publicKey(DeviceKey key) throws IOException {
        try {
            return key.publicKey();
        } catch (GeneralSecurityException e) {
            throw new IOException("cannot use the device's key: " + e.getMessage(), e);
        }
    }

    /** otherKey is the name under which the key that follows one is kept. */
    static String otherKey(String name) {
        return name.equals(KEY) ? OTHER_KEY : KEY;
    }

    /** abandon deletes what an enrollment that did not succeed has left: the token and the key. */
    public static void abandon(File directory, KeyStore keys) throws IOException {
        new Store(directory).destroy();
        forgetKeys(keys);
    }

    static void forgetKeys(KeyStore keys) throws IOException {
        try {
            keys.delete(KEY);
            keys.delete(OTHER_KEY);
            keys.delete(THIRD_KEY);
        } catch (GeneralSecurityException e) {
            throw new IOException("cannot delete the device's key: " + e.getMessage(), e);
        }
    }
}

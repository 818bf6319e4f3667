package dev.muster.agent.core;

import java.io.File;
import java.io.IOException;
import java.security.GeneralSecurityException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

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
     * commandKey is the SubjectPublicKeyInfo of the service's P-256 command key, from the code; empty:
     * the answer to the enrollment is believed.
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

    /**
     * enroll redeems the token, keeps the identity that it gets for it, and returns the device's id.
     * After a lost answer or a crash it may be called again with the same token.
     */
    public String enroll() throws IOException {
        Server.check(server);
        Store store = new Store(directory);
        Identity former = former(store);
        String name = keyName(former);
        DeviceKey key = key(store, name);
        Fields answer = redeem(key, former);
        List<CommandKey> commandKeys = CommandKey.readAll(answer.objects("commandKeys"));
        if (answer.text("deviceId").isEmpty() || commandKeys.isEmpty()) {
            throw new IOException("the service's answer to the enrollment names no device or no key");
        }
        CommandKey first = commandKeys.get(0);
        if (!commandKey.isEmpty() && !first.key.spki.equals(commandKey)) {
            throw new IOException("the answering server does not have the command key that the code names: create a new code,"
                    + " and see who is between");
        }
        if (!first.key.algorithm.equals(PublicKey.ES256)) {
            throw new IOException("the service signs with " + first.key.algorithm + ", which this device cannot verify:"
                    + " update the service");
        }
        Identity id = identity(answer, commandKeys);
        id.key = name;
        if (former != null) {
            forget(store);
        }
        store.save(Store.IDENTITY, id.json());
        store.remove(Store.PENDING);
        if (former != null) {
            drop(former.key);
            drop(former.nextKey);
        }
        return id.deviceId;
    }

    /** former is who the device was so far; null: it was not enrolled. */
    private Identity former(Store store) throws IOException {
        Identity was;
        try {
            was = store.identity();
        } catch (NotEnrolledException e) {
            return null;
        }
        if (!again) {
            throw new IOException("this device is enrolled already: unenroll it first");
        }
        return was;
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

    /** keyName is a name that no key has which the service may know. */
    private static String keyName(Identity former) {
        for (String name : Arrays.asList(KEY, OTHER_KEY, THIRD_KEY)) {
            if (former == null || !name.equals(former.key) && !name.equals(former.nextKey)) {
                return name;
            }
        }
        throw new IllegalStateException("there are three names for two keys");
    }

    private Identity identity(Fields answer, List<CommandKey> commandKeys) throws JsonException {
        Identity id = new Identity();
        id.server = server;
        id.deviceId = answer.text("deviceId");
        id.role = role;
        id.commandKeys = commandKeys;
        id.reserved = 1;
        id.latest = answer.number("serverTime");
        id.offset = id.latest - clock.now();
        id.keyMade = id.latest;
        id.pins = new ArrayList<>(pins);
        return id;
    }

    /** refusedForGood reports whether the same code would be refused again, so that it takes another. */
    public static boolean refusedForGood(IOException e) {
        Refusal refused = Refusal.in(e);
        return refused != null && !refused.error.isEmpty() && refused.status >= 400 && refused.status < 500
                && refused.status != 408 && refused.status != 429;
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

    /** formerProof proves which device this was; null: it was none. */
    private Map<String, Object> formerProof(Identity former, byte[] message) throws IOException {
        if (former == null) {
            return null;
        }
        DeviceKey before;
        try {
            before = keys.key(former.key);
        } catch (GeneralSecurityException e) {
            throw new IOException("cannot use the device's former key: " + e.getMessage(), e);
        }
        if (before == null) {
            return null; // it enrolls as any other newcomer
        }
        return Fields.members("deviceId", former.deviceId, "sig", Link.sign(before, formerMessage(former.deviceId, message)));
    }

    private Fields redeem(DeviceKey key, Identity former) throws IOException {
        Map<String, Object> facts = new SafeDevice(device).facts();
        long now = clock.now();
        PublicKey own = publicKey(key);
        // The facts' bytes are signed as they stand in the body: Json writes them the same way there.
        byte[] message = message(token, own, Text.bytes(Json.write(facts)), now);
        String proof = Link.sign(key, message);
        byte[] body = Text.bytes(Json.write(Fields.members("token", token, "key", own.json(), "facts", facts, "agentVersion", version,
                "role", role, "time", now, "former", formerProof(former, message), "proof", proof)));
        Map<String, String> headers = new LinkedHashMap<>();
        headers.put("Content-Type", "application/json");
        Transport.Answer answer;
        try {
            answer = transport.send("POST", Server.url(server, "/enroll"), headers, body, SILENCE);
        } catch (IOException e) {
            throw new IOException("cannot reach the service: " + e.getMessage(), e);
        }
        try {
            if (answer.status() != 200) {
                Refusal refused = Refusal.read(answer, "");
                throw new IOException("the service refused the enrollment (" + refused.error + "): " + refused.said, refused);
            }
            return Json.object(new String(Disk.readAll(answer.body(), MAX_ANSWER), Text.UTF_8));
        } finally {
            answer.close();
        }
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

package dev.muster.agent.core;

import java.io.File;
import java.io.IOException;
import java.security.GeneralSecurityException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Enrollment is what a device needs to enroll. */
public final class Enrollment {
    private static final String KEY = "device-a";
    private static final String OTHER_KEY = "device-b";
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
        try {
            store.identity();
            throw new IOException("this device is enrolled already: unenroll it first");
        } catch (NotEnrolledException e) {
            // As it should be.
        }
        DeviceKey key = key(store);
        Fields answer = redeem(key);
        List<CommandKey> commandKeys = CommandKey.readAll(answer.objects("commandKeys"));
        if (answer.text("deviceId").isEmpty() || commandKeys.isEmpty()) {
            throw new IOException("the service's answer to the enrollment names no device or no key");
        }
        CommandKey first = commandKeys.get(0);
        if (!commandKey.isEmpty() && !first.key.spki.equals(commandKey)) {
            throw new IOException("whoever answered does not have the command key that the code names: create a new code,"
                    + " and see who is between");
        }
        if (!first.key.algorithm.equals(PublicKey.ES256)) {
            throw new IOException("the service signs with " + first.key.algorithm + ", which this device cannot verify:"
                    + " update the service");
        }
        store.save(Store.IDENTITY, identity(answer, commandKeys).json());
        store.remove(Store.PENDING);
        return answer.text("deviceId");
    }

    private Identity identity(Fields answer, List<CommandKey> commandKeys) throws JsonException {
        Identity id = new Identity();
        id.server = server;
        id.deviceId = answer.text("deviceId");
        id.role = role;
        id.key = KEY;
        id.commandKeys = commandKeys;
        id.reserved = 1;
        id.latest = answer.number("serverTime");
        id.offset = id.latest - clock.now();
        id.keyMade = id.latest;
        id.pins = new ArrayList<>(pins);
        return id;
    }

    /** key returns the key that was made for this token, or makes one and notes what it is for. */
    private DeviceKey key(Store store) throws IOException {
        Fields pending = null;
        try {
            pending = store.load(Store.PENDING);
        } catch (DamagedException e) {
            // It is made again.
        }
        try {
            if (pending != null && pending.text("token").equals(token) && pending.text("server").equals(server)) {
                DeviceKey made = keys.key(KEY);
                if (made != null) {
                    return made;
                }
            }
            DeviceKey made = keys.create(KEY);
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

    private Fields redeem(DeviceKey key) throws IOException {
        Map<String, Object> facts = new SafeDevice(device).facts();
        long now = clock.now();
        PublicKey own = publicKey(key);
        // The facts' bytes are signed as they stand in the body: Json writes them the same way there.
        String proof = Link.sign(key, message(token, own, Text.bytes(Json.write(facts)), now));
        byte[] body = Text.bytes(Json.write(Fields.members("token", token, "key", own.json(), "facts", facts, "agentVersion", version,
                "role", role, "time", now, "proof", proof)));
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
        } catch (GeneralSecurityException e) {
            throw new IOException("cannot delete the device's key: " + e.getMessage(), e);
        }
    }
}

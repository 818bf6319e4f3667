package dev.muster.agent.core;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/** Trusting checks what the core makes of true and of forged answers against what the Go agent does. */
final class Trusting {
    private Trusting() {}

    static void check(Fields trust, PublicKey service) throws IOException {
        for (Fields one : trust.objects("enrolled")) {
            boolean taken;
            try {
                Enrollment.open(Envelope.read(one.object("answer")), one.text("named"), PublicKey.read(trust.object("own")),
                        trust.text("proof"));
                taken = true;
            } catch (IOException refused) {
                taken = false;
            }
            Vectors.check("enrolled, " + one.text("what"), taken == one.flag("taken"));
        }
        for (Fields one : trust.objects("tombstones")) {
            Map<String, Object> body = Fields.members("error", "ended", "signed", one.object("signed").map());
            Refusal refusal = Refusal.read(new JsonAnswer(410, body), one.text("request"));
            Vectors.same("a tombstone " + one.text("what"), one.text("action"), device(trust, service).trust.tombstone(refusal));
        }
        for (Fields one : trust.objects("assignments")) {
            String policy;
            try {
                policy = device(trust, service).trust.assignment(Envelope.read(one.object("sealed")), 42).text("policyId");
            } catch (IOException refused) {
                policy = "";
            }
            Vectors.same("an assignment " + one.text("what"), one.text("policy"), policy);
        }
        for (Fields one : trust.objects("announcements")) {
            Link device = device(trust, service);
            device.trust.learnQuietly(Refusal.envelopes(one, "said"));
            Vectors.same("announcements, " + one.text("what"), one.texts("trusted"), trusted(device));
        }
        for (Fields one : trust.objects("times")) {
            Link device = device(trust, service);
            device.correct(Refusal.read(new JsonAnswer(401, one.object("answer").map()), "this"));
            Vectors.same("a time, " + one.text("what"), one.number("offset"), device.identity().offset);
            Vectors.same("a time, " + one.text("what"), one.texts("trusted"), trusted(device));
        }
    }

    private static List<String> trusted(Link device) {
        List<String> ids = new ArrayList<>();
        for (CommandKey k : device.identity().commandKeys) {
            ids.add(k.id);
        }
        return ids;
    }

    /** device is one that trusts the service's key k1. */
    private static Link device(Fields trust, final PublicKey service) throws IOException {
        final long now = trust.number("now");
        File directory = Files.createTempDirectory("trusting").toFile();
        Identity id = new Identity();
        id.server = "https://muster.example";
        id.deviceId = "d1";
        id.key = "device-a";
        id.reserved = 1;
        id.latest = now;
        id.commandKeys = Collections.singletonList(new CommandKey("k1", service, now - 1000));
        Store store = new Store(directory);
        store.save(Store.IDENTITY, id.json());
        return new Link(store, null, new NoKeys(), new Clock() {
            @Override
            public long now() {
                return now;
            }

            @Override
            public long elapsed() {
                return now;
            }
        });
    }

    /** NoKeys has a key for every name, which signs nothing. */
    private static final class NoKeys implements KeyStore {
        @Override
        public DeviceKey key(String name) {
            return new DeviceKey() {
                @Override
                public PublicKey publicKey() {
                    return new PublicKey(PublicKey.ES256, "");
                }

                @Override
                public byte[] sign(byte[] message) {
                    return new byte[0];
                }
            };
        }

        @Override
        public DeviceKey create(String name) {
            return key(name);
        }

        @Override
        public void delete(String name) {}
    }
}

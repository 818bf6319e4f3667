package dev.muster.agent.core;

import java.util.LinkedHashMap;
import java.util.Map;

/** Envelope is something that the service says with authority: a payload, signed together with its kind. */
public final class Envelope {
    static final String COMMAND = "command";
    static final String POLICY = "policy";
    static final String ASSIGNMENT = "assignment";
    static final String TOMBSTONE = "tombstone";
    static final String TIME = "time";
    static final String KEY = "key";
    static final String ENROLLED = "enrolled";
    static final String UPDATE = "update";

    final String kind;
    final String payload; // JSON in base64url
    final String keyId;
    final String signature;

    Envelope(String kind, String payload, String keyId, String signature) {
        this.kind = kind;
        this.payload = payload;
        this.keyId = keyId;
        this.signature = signature;
    }

    /** read returns the envelope, or null where there is none. */
    static Envelope read(Fields f) throws JsonException {
        return f == null ? null : new Envelope(f.text("kind"), f.text("payload"), f.text("keyId"), f.text("sig"));
    }

    Map<String, Object> json() {
        Map<String, Object> m = new LinkedHashMap<>();
        m.put("kind", kind);
        m.put("payload", payload);
        m.put("keyId", keyId);
        m.put("sig", signature);
        return m;
    }

    /** claims is what the payload says, before anything is verified. */
    Fields claims() throws JsonException {
        return Json.object(new String(Text.decode(payload), Text.UTF_8));
    }

    /** open verifies the envelope as one of the kind and returns its payload. */
    Fields open(PublicKey key, String kind) throws JsonException {
        if (!this.kind.equals(kind)) {
            throw new JsonException("cannot open an envelope: it is a " + this.kind + ", not a " + kind);
        }
        if (!key.verifies(Text.lines("muster-service-v1", kind, keyId, payload), signature)) {
            throw new JsonException("cannot open an envelope: the signature does not verify");
        }
        return claims();
    }
}

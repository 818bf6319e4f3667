package dev.muster.agent.core;

import java.io.IOException;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Map;

/** Seal signs as the service does. */
final class Seal {
    private Seal() {}

    /** key reads a P-256 key in PKCS #8 and base64url. */
    static PrivateKey key(String pkcs8) throws IOException {
        try {
            return KeyFactory.getInstance("EC").generatePrivate(new PKCS8EncodedKeySpec(Text.decode(pkcs8)));
        } catch (GeneralSecurityException e) {
            throw new IOException(e);
        }
    }

    static Envelope seal(PrivateKey key, String keyId, String kind, Map<String, Object> payload) throws IOException {
        String text = Text.encode(Text.bytes(Json.write(payload)));
        try {
            Signature signer = Signature.getInstance("SHA256withECDSA");
            signer.initSign(key);
            signer.update(Text.lines("muster-service-v1", kind, keyId, text));
            return new Envelope(kind, text, keyId, Text.encode(signer.sign()));
        } catch (GeneralSecurityException e) {
            throw new IOException(e);
        }
    }
}

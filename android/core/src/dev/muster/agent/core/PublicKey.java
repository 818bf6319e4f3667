package dev.muster.agent.core;

import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.Signature;
import java.security.interfaces.ECPublicKey;
import java.security.spec.X509EncodedKeySpec;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * PublicKey is a verifying key as it travels: the algorithm's name and the SubjectPublicKeyInfo in base64url. This
 * agent verifies ES256 alone: P-256 with SHA-256, signatures in ASN.1.
 */
public final class PublicKey {
    public static final String ES256 = "es256";

    private static final int P256_BITS = 256;

    public final String algorithm;
    public final String spki;

    public PublicKey(String algorithm, String spki) {
        this.algorithm = algorithm;
        this.spki = spki;
    }

    static PublicKey read(Fields f) throws JsonException {
        if (f == null) {
            throw new JsonException("cannot read a key: it is missing");
        }
        return new PublicKey(f.text("alg"), f.text("spki"));
    }

    Map<String, Object> json() {
        Map<String, Object> m = new LinkedHashMap<>();
        m.put("alg", algorithm);
        m.put("spki", spki);
        return m;
    }

    /** verifies reports whether the signature, in base64url, is this key's for the message. */
    boolean verifies(byte[] message, String signature) {
        if (!ES256.equals(algorithm)) {
            return false;
        }
        try {
            java.security.PublicKey key =
                    KeyFactory.getInstance("EC").generatePublic(new X509EncodedKeySpec(Text.decode(spki)));
            if (((ECPublicKey) key).getParams().getCurve().getField().getFieldSize() != P256_BITS) {
                return false;
            }
            Signature verifier = Signature.getInstance("SHA256withECDSA");
            verifier.initVerify(key);
            verifier.update(message);
            return verifier.verify(Text.decode(signature));
        } catch (GeneralSecurityException | JsonException e) {
            return false;
        }
    }
}

package dev.muster.agent.core;

import java.math.BigInteger;
import java.security.GeneralSecurityException;
import java.security.InvalidKeyException;
import java.security.KeyFactory;
import java.security.Signature;
import java.security.interfaces.ECPublicKey;
import java.security.spec.ECFieldFp;
import java.security.spec.ECParameterSpec;
import java.security.spec.ECPoint;
import java.security.spec.EllipticCurve;
import java.security.spec.X509EncodedKeySpec;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * PublicKey is a verifying key as it travels: the algorithm's name and the SubjectPublicKeyInfo in base64url. This
 * agent verifies ES256 alone: P-256 with SHA-256, signatures in ASN.1.
 */
public final class PublicKey {
    public static final String ES256 = "es256";

    private static final String SHA256 = "sha256:";

    /** The curve P-256, and its base point: a key on another curve of 256 bits is none. */
    private static final BigInteger P = hex("ffffffff00000001000000000000000000000000ffffffffffffffffffffffff");

    private static final BigInteger A = P.subtract(BigInteger.valueOf(3));
    private static final BigInteger B = hex("5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604b");
    private static final ECPoint G = new ECPoint(hex("6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"),
            hex("4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"));

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

    private static BigInteger hex(String digits) {
        return new BigInteger(digits, 16);
    }

    /** same reports whether the other is this key. */
    boolean same(PublicKey other) {
        return algorithm.equals(other.algorithm) && spki.equals(other.spki);
    }

    /** named reports whether a name means this key: it is its spki, or "sha256:" with the digest of the spki's bytes. */
    boolean named(String name) throws JsonException {
        return name.startsWith(SHA256) ? name.equals(name()) : name.equals(spki);
    }

    /** name is the short text that means this key. */
    String name() throws JsonException {
        return SHA256 + Text.encode(Text.sha256(Text.decode(spki)));
    }

    /** check refuses a key that can verify nothing: it is no key, or one of another algorithm or curve than P-256. */
    void check() throws JsonException {
        try {
            parse();
        } catch (GeneralSecurityException | RuntimeException e) { // Android's providers throw both
            throw new JsonException("this is no key that can verify: " + e.getMessage());
        }
    }

    private java.security.PublicKey parse() throws GeneralSecurityException, JsonException {
        if (!ES256.equals(algorithm)) {
            throw new InvalidKeyException("its algorithm is " + algorithm);
        }
        byte[] der = Text.decode(spki);
        java.security.PublicKey key = KeyFactory.getInstance("EC").generatePublic(new X509EncodedKeySpec(der));
        ECParameterSpec parameters = ((ECPublicKey) key).getParams();
        EllipticCurve curve = parameters.getCurve();
        if (!new ECFieldFp(P).equals(curve.getField()) || !A.equals(curve.getA()) || !B.equals(curve.getB())
                || !G.equals(parameters.getGenerator())) {
            throw new InvalidKeyException("it is not on P-256");
        }
        ECPoint w = ((ECPublicKey) key).getW();
        BigInteger x = w.getAffineX();
        BigInteger y = w.getAffineY();
        if (x == null || x.signum() < 0 || x.compareTo(P) >= 0 || y.signum() < 0 || y.compareTo(P) >= 0
                || !y.multiply(y).mod(P).equals(x.multiply(x).add(A).multiply(x).add(B).mod(P))) {
            throw new InvalidKeyException("its point is not on the curve");
        }
        if (!Arrays.equals(der, key.getEncoded())) {
            throw new InvalidKeyException("it is not written in the one way");
        }
        return key;
    }

    /** verifies reports whether the signature, in base64url, is this key's for the message. */
    boolean verifies(byte[] message, String signature) {
        try {
            java.security.PublicKey key = parse();
            Signature verifier = Signature.getInstance("SHA256withECDSA");
            verifier.initVerify(key);
            verifier.update(message);
            return verifier.verify(Text.decode(signature));
        } catch (GeneralSecurityException | JsonException | RuntimeException e) {
            return false;
        }
    }
}

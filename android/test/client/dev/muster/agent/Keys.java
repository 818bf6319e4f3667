package dev.muster.agent;

import dev.muster.agent.core.DeviceKey;
import dev.muster.agent.core.KeyStore;
import dev.muster.agent.core.PublicKey;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.Signature;
import java.security.spec.ECGenParameterSpec;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;

/** Keys are P-256 keys in memory: Android's Keystore is not there in tests. */
final class Keys implements KeyStore {
    private final Map<String, KeyPair> pairs = new HashMap<>();

    private static KeyPair pair() throws GeneralSecurityException {
        KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
        generator.initialize(new ECGenParameterSpec("secp256r1"));
        return generator.generateKeyPair();
    }

    static String spki() {
        try {
            return text(pair());
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException(e);
        }
    }

    private static String text(KeyPair pair) {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(pair.getPublic().getEncoded());
    }

    @Override
    public DeviceKey key(String name) {
        final KeyPair pair = pairs.get(name);
        return pair == null ? null : new DeviceKey() {
            @Override
            public PublicKey publicKey() {
                return new PublicKey(PublicKey.ES256, text(pair));
            }

            @Override
            public byte[] sign(byte[] message) throws GeneralSecurityException {
                Signature signer = Signature.getInstance("SHA256withECDSA");
                signer.initSign(pair.getPrivate());
                signer.update(message);
                return signer.sign();
            }
        };
    }

    @Override
    public DeviceKey create(String name) throws GeneralSecurityException {
        pairs.put(name, pair());
        return key(name);
    }

    @Override
    public void delete(String name) {
        pairs.remove(name);
    }
}

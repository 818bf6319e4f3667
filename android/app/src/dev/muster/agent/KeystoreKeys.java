package dev.muster.agent;

import android.security.keystore.KeyGenParameterSpec;
import android.security.keystore.KeyProperties;
import dev.muster.agent.core.DeviceKey;
import dev.muster.agent.core.KeyStore;
import dev.muster.agent.core.PublicKey;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyPairGenerator;
import java.security.PrivateKey;
import java.security.ProviderException;
import java.security.Signature;
import java.security.cert.Certificate;
import java.security.spec.ECGenParameterSpec;
import java.util.Base64;

/**
 * KeystoreKeys keeps P-256 keys in Android's Keystore, from which they cannot be read. They can be used before the
 * first unlock, so that a device that has restarted and is still locked can be erased.
 */
final class KeystoreKeys implements KeyStore {
    private static final String PROVIDER = "AndroidKeyStore";
    private static final String PREFIX = "muster-";

    final boolean strongBox;

    /** KeystoreKeys makes keys in the trusted execution environment; with strongBox in the secure element, if there is one. */
    KeystoreKeys(boolean strongBox) {
        this.strongBox = strongBox;
    }

    private static java.security.KeyStore store() throws GeneralSecurityException {
        try {
            java.security.KeyStore store = java.security.KeyStore.getInstance(PROVIDER);
            store.load(null);
            return store;
        } catch (IOException e) {
            throw new GeneralSecurityException("cannot open the Keystore", e);
        }
    }

    @Override
    public DeviceKey key(String name) throws GeneralSecurityException {
        java.security.KeyStore store = store();
        PrivateKey privateKey = (PrivateKey) store.getKey(PREFIX + name, null);
        Certificate certificate = store.getCertificate(PREFIX + name);
        return privateKey == null || certificate == null ? null : new KeystoreKey(privateKey, certificate.getPublicKey());
    }

    /** create makes a key. If StrongBox is asked for, and is missing or does not sign, the key is made without it. */
    @Override
    public DeviceKey create(String name) throws GeneralSecurityException {
        if (strongBox) {
            try {
                return generate(name, true);
            } catch (ProviderException | GeneralSecurityException e) {
                delete(name);
            }
        }
        try {
            return generate(name, false);
        } catch (ProviderException e) {
            throw new GeneralSecurityException("the Keystore makes no key", e);
        }
    }

    /** generate makes a key and tests it: enrollment spends a one-time token on the key. */
    private DeviceKey generate(String name, boolean strongBox) throws GeneralSecurityException {
        KeyGenParameterSpec.Builder spec =
                new KeyGenParameterSpec.Builder(PREFIX + name, KeyProperties.PURPOSE_SIGN | KeyProperties.PURPOSE_VERIFY)
                        .setAlgorithmParameterSpec(new ECGenParameterSpec("secp256r1"))
                        .setDigests(KeyProperties.DIGEST_SHA256)
                        .setIsStrongBoxBacked(strongBox);
        KeyPairGenerator generator = KeyPairGenerator.getInstance(KeyProperties.KEY_ALGORITHM_EC, PROVIDER);
        generator.initialize(spec.build());
        generator.generateKeyPair();
        DeviceKey key = key(name);
        if (key == null) {
            throw new GeneralSecurityException("the Keystore lost the key that it made");
        }
        ((KeystoreKey) key).test();
        return key;
    }

    @Override
    public void delete(String name) throws GeneralSecurityException {
        store().deleteEntry(PREFIX + name);
    }

    private static final class KeystoreKey implements DeviceKey {
        private final PrivateKey privateKey;
        private final java.security.PublicKey publicKey;

        KeystoreKey(PrivateKey privateKey, java.security.PublicKey publicKey) {
            this.privateKey = privateKey;
            this.publicKey = publicKey;
        }

        /** test throws unless the key's signature verifies. */
        void test() throws GeneralSecurityException {
            byte[] message = "muster".getBytes(StandardCharsets.UTF_8);
            Signature verifier = Signature.getInstance("SHA256withECDSA");
            verifier.initVerify(publicKey);
            verifier.update(message);
            if (!verifier.verify(sign(message))) {
                throw new GeneralSecurityException("the Keystore's signature does not verify");
            }
        }

        @Override
        public PublicKey publicKey() {
            return new PublicKey(PublicKey.ES256, Base64.getUrlEncoder().withoutPadding().encodeToString(publicKey.getEncoded()));
        }

        @Override
        public byte[] sign(byte[] message) throws GeneralSecurityException {
            try {
                Signature signer = Signature.getInstance("SHA256withECDSA");
                signer.initSign(privateKey);
                signer.update(message);
                return signer.sign();
            } catch (ProviderException e) {
                throw new GeneralSecurityException("the Keystore does not sign", e);
            }
        }
    }
}

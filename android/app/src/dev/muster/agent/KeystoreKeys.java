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
 * KeystoreKeys keeps P-256 keys in Android's Keystore. They do not leave it, and may be used before the
 * first unlock: a device that restarted and is still locked can be erased.
 */
final class KeystoreKeys implements KeyStore {
    private static final String PROVIDER = "AndroidKeyStore";
    private static final String PREFIX = "muster-";

    private final boolean strongBox;

    /** KeystoreKeys makes keys in the usual hardware; with strongBox in the secure element, where there is one. */
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
        PrivateKey secret = (PrivateKey) store.getKey(PREFIX + name, null);
        Certificate holder = store.getCertificate(PREFIX + name);
        return secret == null || holder == null ? null : new HeldKey(secret, holder.getPublicKey());
    }

    /** create makes a key. Where StrongBox is asked for and not there, or does not sign, the usual hardware has it. */
    @Override
    public DeviceKey create(String name) throws GeneralSecurityException {
        if (strongBox) {
            try {
                return made(name, true);
            } catch (ProviderException | GeneralSecurityException e) {
                delete(name);
            }
        }
        try {
            return made(name, false);
        } catch (ProviderException e) {
            throw new GeneralSecurityException("the Keystore makes no key", e);
        }
    }

    private DeviceKey made(String name, boolean strongBox) throws GeneralSecurityException {
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
        ((HeldKey) key).test();
        return key;
    }

    @Override
    public void delete(String name) throws GeneralSecurityException {
        store().deleteEntry(PREFIX + name);
    }

    private static final class HeldKey implements DeviceKey {
        private final PrivateKey secret;
        private final java.security.PublicKey open;

        HeldKey(PrivateKey secret, java.security.PublicKey open) {
            this.secret = secret;
            this.open = open;
        }

        /** test shows that the key signs, before a token is spent on it. */
        void test() throws GeneralSecurityException {
            byte[] message = "muster".getBytes(StandardCharsets.UTF_8);
            Signature verifier = Signature.getInstance("SHA256withECDSA");
            verifier.initVerify(open);
            verifier.update(message);
            if (!verifier.verify(sign(message))) {
                throw new GeneralSecurityException("the Keystore's signature does not verify");
            }
        }

        @Override
        public PublicKey publicKey() {
            return new PublicKey(PublicKey.ES256, Base64.getUrlEncoder().withoutPadding().encodeToString(open.getEncoded()));
        }

        @Override
        public byte[] sign(byte[] message) throws GeneralSecurityException {
            try {
                Signature signer = Signature.getInstance("SHA256withECDSA");
                signer.initSign(secret);
                signer.update(message);
                return signer.sign();
            } catch (ProviderException e) {
                throw new GeneralSecurityException("the Keystore does not sign", e);
            }
        }
    }
}

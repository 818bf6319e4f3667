package dev.muster.agent.jvm;

import dev.muster.agent.core.DeviceKey;
import dev.muster.agent.core.KeyStore;
import dev.muster.agent.core.PublicKey;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.spec.ECGenParameterSpec;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;

/** FileKeyStore keeps P-256 keys in files, for machines without a keystore of hardware. */
final class FileKeyStore implements KeyStore {
    private final File directory;

    FileKeyStore(File directory) {
        this.directory = directory;
    }

    private File file(String name, String kind) {
        return new File(directory, name + "." + kind);
    }

    @Override
    public DeviceKey key(String name) throws GeneralSecurityException {
        File secret = file(name, "key");
        if (!secret.exists()) {
            return null;
        }
        try {
            PrivateKey key = KeyFactory.getInstance("EC").generatePrivate(new PKCS8EncodedKeySpec(Files.readAllBytes(secret.toPath())));
            return new SoftwareKey(key, Files.readAllBytes(file(name, "pub").toPath()));
        } catch (IOException e) {
            throw new GeneralSecurityException("cannot read a key: " + e.getMessage(), e);
        }
    }

    @Override
    public DeviceKey create(String name) throws GeneralSecurityException {
        KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
        generator.initialize(new ECGenParameterSpec("secp256r1"));
        KeyPair pair = generator.generateKeyPair();
        try {
            Files.createDirectories(directory.toPath());
            Files.deleteIfExists(file(name, "key").toPath()); // never a key beside another's public half
            write(file(name, "pub"), pair.getPublic().getEncoded());
            write(file(name, "key"), pair.getPrivate().getEncoded());
        } catch (IOException e) {
            throw new GeneralSecurityException("cannot keep a key: " + e.getMessage(), e);
        }
        return new SoftwareKey(pair.getPrivate(), pair.getPublic().getEncoded());
    }

    private static void write(File file, byte[] data) throws IOException {
        File fresh = new File(file.getPath() + ".new");
        Files.deleteIfExists(fresh.toPath());
        Files.createFile(fresh.toPath());
        fresh.setReadable(false, false);
        fresh.setReadable(true, true);
        Files.write(fresh.toPath(), data, StandardOpenOption.SYNC);
        Files.move(fresh.toPath(), file.toPath(), StandardCopyOption.ATOMIC_MOVE);
    }

    @Override
    public void delete(String name) throws GeneralSecurityException {
        try {
            Files.deleteIfExists(file(name, "key").toPath());
            Files.deleteIfExists(file(name, "pub").toPath());
        } catch (IOException e) {
            throw new GeneralSecurityException("cannot delete a key: " + e.getMessage(), e);
        }
    }

    private static final class SoftwareKey implements DeviceKey {
        private final PrivateKey secret;
        private final byte[] spki;

        SoftwareKey(PrivateKey secret, byte[] spki) {
            this.secret = secret;
            this.spki = spki;
        }

        @Override
        public PublicKey publicKey() {
            return new PublicKey(PublicKey.ES256, Base64.getUrlEncoder().withoutPadding().encodeToString(spki));
        }

        @Override
        public byte[] sign(byte[] message) throws GeneralSecurityException {
            Signature signer = Signature.getInstance("SHA256withECDSA");
            signer.initSign(secret);
            signer.update(message);
            return signer.sign();
        }
    }
}

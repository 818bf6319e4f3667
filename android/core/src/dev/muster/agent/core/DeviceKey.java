package dev.muster.agent.core;

import java.security.GeneralSecurityException;

/** DeviceKey is a P-256 key that signs for the device. On Android it never leaves the Keystore. */
public interface DeviceKey {
    /** publicKey is what the service verifies with. */
    PublicKey publicKey() throws GeneralSecurityException;

    /** sign returns the ASN.1 signature of the message, by SHA256withECDSA. */
    byte[] sign(byte[] message) throws GeneralSecurityException;
}

package dev.muster.agent.core;

import java.security.GeneralSecurityException;

/** KeyStore keeps the device's keys by name: the present one and, while it is being changed, the next. */
public interface KeyStore {
    /** key returns the key with the name, or null if there is none. */
    DeviceKey key(String name) throws GeneralSecurityException;

    /** create makes a key with the name, in the place of one that has it. */
    DeviceKey create(String name) throws GeneralSecurityException;

    /** delete removes the key with the name, if there is one. */
    void delete(String name) throws GeneralSecurityException;
}

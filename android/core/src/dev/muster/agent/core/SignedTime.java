package dev.muster.agent.core;

import java.io.File;
import java.io.IOException;

/**
 * SignedTime is a time that has surely passed: the latest that the service has signed, as far as it is on
 * disk, which is at most a day before; until there is one, when the agent was built. The device's own clock
 * has no part in it.
 */
public final class SignedTime {
    private final Store store;
    private final long built;

    /** SignedTime is that of a state directory. built is Unix milliseconds. */
    public SignedTime(File directory, long built) {
        store = new Store(directory);
        this.built = built;
    }

    /** passed returns it in Unix milliseconds. */
    long passed() {
        try {
            return Math.max(built, store.identity().latest);
        } catch (IOException e) { // there is no identity, or it is damaged
            return built;
        }
    }
}

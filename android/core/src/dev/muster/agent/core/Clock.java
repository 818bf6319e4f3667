package dev.muster.agent.core;

/** Clock returns the device's own time in Unix milliseconds, right or wrong. */
public interface Clock {
    long now();

    /** SYSTEM is the machine's clock. */
    Clock SYSTEM =
            new Clock() {
                @Override
                public long now() {
                    return System.currentTimeMillis();
                }
            };
}

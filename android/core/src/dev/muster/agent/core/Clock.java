package dev.muster.agent.core;

/** Clock is the device's own time. */
public interface Clock {
    /** now is Unix milliseconds, right or wrong. */
    long now();

    /** elapsed only goes forward while the machine runs, in milliseconds, also asleep, in every process alike. A restart sets it back. */
    long elapsed();

    /** SYSTEM is the machine's clock. */
    Clock SYSTEM =
            new Clock() {
                @Override
                public long now() {
                    return System.currentTimeMillis();
                }

                @Override
                public long elapsed() {
                    return Backoff.elapsed();
                }
            };
}

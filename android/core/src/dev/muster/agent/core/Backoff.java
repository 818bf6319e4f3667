package dev.muster.agent.core;

import java.io.IOException;
import java.util.Random;

/** Backoff is how long the agent waits, in milliseconds. */
final class Backoff {
    static final long FIRST = 1000;
    static final long LAST = 15 * 60_000;

    private final Random random;

    Backoff(Random random) {
        this.random = random;
    }

    /** after is the wait after a failure: what the service asked for, else anything up to a limit that doubles. */
    long after(int failures, IOException e) {
        Refusal r = Refusal.in(e);
        if (r != null && r.retryAfter > 0) {
            return jitter(Math.min(r.retryAfter, LAST));
        }
        if (e instanceof SupersededException) {
            return jitter(LAST); // only a person can change that
        }
        long limit = Math.min(FIRST << Math.min(failures, 20), LAST);
        return FIRST / 2 + below(limit);
    }

    /** jitter moves a wait by up to a fifth, so that a fleet does not come back at one moment. */
    long jitter(long wait) {
        return wait - wait / 5 + below(2 * wait / 5 + 1);
    }

    private long below(long limit) {
        return (long) (random.nextDouble() * limit);
    }
}

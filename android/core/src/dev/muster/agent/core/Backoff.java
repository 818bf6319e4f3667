package dev.muster.agent.core;

import java.io.IOException;
import java.util.Random;

/**
 * Backoff is how long an agent waits after failures, in milliseconds: one growing pause for its check-ins and
 * its stream. It is forgotten when both work again.
 */
final class Backoff {
    static final long FIRST = 2000;
    static final long LAST = 8 * 60_000;
    /** HOLD is how long a stream must be open before its failures are forgotten. */
    static final long HOLD = 60_000;
    /** SUPERSEDED is how long it waits where only a person can change something. */
    private static final long SUPERSEDED = 15 * 60_000;

    private final Random random;
    private int failures;
    private long until; // the end of the present pause
    private boolean away; // the latest check-in failed
    private boolean touched; // there was an answer
    private boolean holds; // the stream has been open for HOLD

    Backoff(Random random) {
        this.random = random;
    }

    /**
     * failed notes a failure, of the stream or of a check-in, and returns how long to wait. While a pause runs,
     * that is the rest of it. The time is by a clock that only goes forward.
     */
    synchronized long failed(long now, IOException e, boolean stream) {
        away |= !stream;
        holds &= !stream;
        if (e instanceof SupersededException) {
            return jitter(SUPERSEDED);
        }
        long left = until - now;
        if (left > 0 && left <= LAST) {
            return left;
        }
        long limit = Math.min(FIRST << Math.min(failures, 20), LAST);
        failures++;
        long wait = limit / 2 + below(limit / 2 + 1); // spread, so that a fleet does not come back at one moment
        Refusal r = Refusal.in(e);
        if (r != null && r.retryAfter > 0) {
            wait = Math.max(wait, Math.min(jitter(r.retryAfter), LAST));
        }
        until = now + wait;
        return wait;
    }

    /** answered notes a check-in that the service answered. */
    synchronized void answered() {
        away = false;
        touched = true;
        settle();
        notifyAll();
    }

    /** held notes that the stream has been open for HOLD. */
    synchronized void held() {
        if (!holds) {
            holds = true;
            settle();
        }
    }

    /** moved notes that the device changed its network: what failed there may work here. */
    synchronized void moved() {
        failures = 0;
        until = 0;
    }

    private void settle() {
        if (holds && !away) {
            failures = 0;
        }
    }

    /**
     * awaitTouch returns once the latest check-in was answered, or after a second: while the service is out of
     * reach one thing alone tries, and the stream takes its connection.
     */
    synchronized boolean awaitTouch() throws InterruptedException {
        if (!touched || away) {
            wait(1000);
        }
        return touched && !away;
    }

    /** elapsed is a clock that only goes forward, in milliseconds. */
    static long elapsed() {
        return System.nanoTime() / 1_000_000;
    }

    /** jitter moves a wait by up to a fifth, so that a fleet does not come back at one moment. */
    long jitter(long wait) {
        return wait - wait / 5 + below(2 * wait / 5 + 1);
    }

    private long below(long limit) {
        return (long) (random.nextDouble() * limit);
    }
}

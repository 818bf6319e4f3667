package dev.muster.agent.core;

import java.io.IOException;
import java.util.Random;

/**
 * Backoff is how long an agent waits after failures. Check-ins and the wake stream share one pause, which grows
 * with each failure and starts small again when both work. Times are in milliseconds. Any thread may call it.
 */
final class Backoff {
    /** FIRST is the longest first pause; every further one may be twice as long, up to LAST. */
    static final long FIRST = 2000;
    static final long LAST = 8 * 60_000;
    /** HOLD is how long a stream must be open before it counts as working. */
    static final long HOLD = 60_000;
    /** SUPERSEDED is the wait while another device has enrolled as this one: only a person can correct that. */
    private static final long SUPERSEDED = 15 * 60_000;

    private final Random random;
    private int failures;
    private long pauseEnd; // by elapsed; 0: no pause yet
    private boolean checkInFailed; // the latest one
    private boolean answeredOnce; // a check-in was answered since the start
    private boolean reached; // the latest one failed after it was answered
    private boolean streamHolds; // the stream has been open for HOLD

    Backoff(Random random) {
        this.random = random;
    }

    /**
     * failed records a failure of the stream or of a check-in, and returns how long to wait. During a pause it
     * returns the rest of the pause. A SupersededException starts no pause. now is from elapsed.
     */
    synchronized long failed(long now, IOException e, boolean stream) {
        checkInFailed |= !stream;
        reached &= stream;
        streamHolds &= !stream;
        if (e instanceof SupersededException) {
            return jitter(SUPERSEDED);
        }
        long left = pauseEnd - now;
        if (left > 0 && left <= LAST) {
            return left;
        }
        long limit = Math.min(FIRST << Math.min(failures, 20), LAST);
        failures++;
        long wait = limit / 2 + below(limit / 2 + 1); // spread, so that a fleet does not come back at one moment
        wait = Math.max(wait, asked(e));
        pauseEnd = now + wait;
        return wait;
    }

    /** asked is how long to wait because the service asked for it in its answer; 0: it did not. */
    long asked(Throwable e) {
        Refusal r = Refusal.in(e);
        return r == null ? 0 : Math.min(jitter(r.retryAfter), LAST);
    }

    /** answered notes a check-in that the service answered. */
    synchronized void answered() {
        checkInFailed = false;
        answeredOnce = true;
        settle();
        notifyAll();
    }

    /** reached notes that the service answered the check-in that failed: the stream may be opened. */
    synchronized void reached() {
        answeredOnce = true;
        reached = true;
        notifyAll();
    }

    /** held notes that the stream has been open for HOLD. */
    synchronized void held() {
        if (!streamHolds) {
            streamHolds = true;
            settle();
        }
    }

    /** moved ends the pause, because the device changed its network and the new one may work. */
    synchronized void moved() {
        failures = 0;
        pauseEnd = 0;
    }

    private void settle() {
        if (streamHolds && !checkInFailed) {
            failures = 0;
        }
    }

    /**
     * awaitCheckIn waits until the latest check-in was answered, for at most a second, and reports whether it
     * was. While the service is out of reach, only check-ins try to connect. The stream then uses the connection of
     * the check-in.
     */
    synchronized boolean awaitCheckIn() throws InterruptedException {
        if (!inTouch()) {
            wait(1000);
        }
        return inTouch();
    }

    private boolean inTouch() {
        return answeredOnce && (!checkInFailed || reached);
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

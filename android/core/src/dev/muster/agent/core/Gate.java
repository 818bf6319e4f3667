package dev.muster.agent.core;

/** Gate holds back check-ins of an agent that runs: at most five begin in any second. */
final class Gate {
    private static final long SECOND = 1000;

    private final long[] times = new long[5];
    private int next;
    private boolean on;

    synchronized void open() {
        on = true;
        for (int i = 0; i < times.length; i++) {
            times[i] = Backoff.elapsed() - SECOND;
        }
    }

    synchronized boolean isOpen() {
        return on;
    }

    /** left is how long the next check-in has to wait at a time; it counts as begun after that. */
    synchronized long left(long now) {
        if (!on) {
            return 0;
        }
        long wait = Math.max(0, times[next] + SECOND - now);
        times[next] = now + wait;
        next = (next + 1) % times.length;
        return wait;
    }

    /** pass waits until another check-in may begin. */
    void pass() {
        try {
            Thread.sleep(left(Backoff.elapsed()));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}

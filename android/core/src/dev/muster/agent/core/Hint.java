package dev.muster.agent.core;

/** Hint is a wake-up that waits to be heard. Two are as good as one. */
final class Hint {
    private boolean raised;

    synchronized void raise() {
        raised = true;
        notifyAll();
    }

    /** await returns when the hint was raised or the time, in milliseconds, is over. */
    synchronized void await(long wait) throws InterruptedException {
        long end = System.nanoTime() + wait * 1_000_000;
        for (long left = wait; !raised && left > 0; left = (end - System.nanoTime() + 999_999) / 1_000_000) {
            wait(left);
        }
        raised = false;
    }
}

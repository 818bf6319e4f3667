package dev.muster.agent.core;

import java.io.IOException;

/** Eraser erases the device, again and again until it is gone. */
final class Eraser {
    /** RETRY_INTERVAL is how soon an erase is ordered again that shows no effect, in milliseconds. */
    static final long RETRY_INTERVAL = 30_000;
    /**
     * FALLBACK_AFTER is how long an erase may show no effect, in milliseconds, before the device is asked
     * to erase without what the system may refuse (Action.again).
     */
    private static final long FALLBACK_AFTER = 2 * 60_000;

    private final Agent agent;
    private long erasing; // since when a tombstone has asked for an erase; 0: none has

    Eraser(Agent agent) {
        this.agent = agent;
    }

    /**
     * eraseAgain orders an erase again that was ordered before, also without a connection: the service
     * knows that the device has the command. Such a command is DONE only where the device itself can tell
     * that it was erased. It does not fail any more: that the system refuses now may be part of its going
     * down.
     */
    void eraseAgain() throws IOException {
        for (Entry e : agent.journal.entries(Entry.STARTED)) {
            if (!e.command.type.equals(Command.WIPE)) {
                continue;
            }
            Action erase = new Action(Command.WIPE, e.command.id, null);
            erase.again = agent.link.serviceTime() - e.at > FALLBACK_AFTER;
            String outcome;
            try {
                outcome = agent.device.act(erase);
            } catch (DeviceException refused) {
                agent.log.warn("cannot erase the device yet", refused);
                continue;
            }
            agent.executor.finish(e, Entry.DONE, outcome);
        }
    }

    /** answered says that the service answered a check-in: a wipe that it gave up was taken back. */
    void answered() {
        erasing = 0;
    }

    /**
     * eraseForGood erases a device that the service has given up after a wipe, and returns what to throw.
     * While the device is still there, each check-in is answered with the same tombstone, and it is called
     * again.
     */
    IOException eraseForGood() {
        long now = agent.clock.elapsed();
        if (erasing == 0) {
            erasing = now;
        }
        Action erase = new Action(Command.WIPE, "", null);
        erase.again = now - erasing > FALLBACK_AFTER;
        try {
            agent.device.act(erase);
        } catch (DeviceException e) { // also when it was ordered: the device is still there
            return e;
        }
        return new EndedException();
    }
}

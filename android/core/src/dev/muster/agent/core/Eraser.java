package dev.muster.agent.core;

import java.io.IOException;

/** Eraser erases the device, again and again until it is gone. */
final class Eraser {
    /** EVERY is how soon an erase is ordered again that shows no effect, in milliseconds. */
    static final long EVERY = 30_000;
    /** SECOND_WAY is how long the first way to erase a device may show no effect before the second is taken. */
    private static final long SECOND_WAY = 2 * 60_000;

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
            erase.again = agent.link.serviceTime() - e.at > SECOND_WAY;
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

    /**
     * eraseForGood erases a device that the service has given up after a wipe, and returns what to throw.
     * While the device is still there it goes on asking, and is told again.
     */
    IOException eraseForGood() {
        long now = agent.clock.elapsed();
        if (erasing == 0) {
            erasing = now;
        }
        Action erase = new Action(Command.WIPE, "", null);
        erase.again = now - erasing > SECOND_WAY;
        EndedException ended = new EndedException();
        try {
            agent.device.act(erase);
        } catch (DeviceException e) {
            if (e.kind == DeviceException.Kind.ORDERED) {
                return e;
            }
            ended.initCause(e);
        }
        return ended;
    }
}

package dev.muster.agent.core;

import java.io.File;
import java.io.IOException;
import java.nio.file.NoSuchFileException;

/**
 * Order is what another process asks of the agent that runs: only one process at a time may change
 * what is in the state directory.
 */
public enum Order {
    ROTATE_KEY("rotate"),
    SAY_GOOD_BYE("unenroll");

    private final String text;

    Order(String text) {
        this.text = text;
    }

    /** leave leaves the order in the state directory of an enrolled device. The agent carries it out before its next check-in. */
    public void leave(File directory) throws IOException {
        Store store = new Store(directory);
        store.identity();
        Disk.write(store.path(Store.ORDER), Text.bytes(text));
    }

    /** obey carries out the order that was left. The order goes once a crash can no longer lose it. */
    static void obey(Agent agent) throws IOException {
        String order;
        try {
            order = new String(Disk.read(agent.store.path(Store.ORDER)), Text.UTF_8);
        } catch (NoSuchFileException e) {
            return;
        }
        if (order.equals(SAY_GOOD_BYE.text)) {
            agent.unenroll();
            throw new EndedException();
        }
        if (order.equals(ROTATE_KEY.text)) {
            agent.beginRotation(); // on disk: rotation goes on from there
        } else {
            agent.log.warn("unknown order dropped", order);
        }
        agent.store.remove(Store.ORDER);
    }
}

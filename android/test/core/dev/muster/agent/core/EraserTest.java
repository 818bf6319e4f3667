package dev.muster.agent.core;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;

import java.io.File;
import java.util.Arrays;
import org.junit.Test;

/** A device that is to erase itself, and does not. */
public final class EraserTest {
    /** Unerased is a device whose system refuses to erase it. */
    private static final class Unerased extends Fixture {
        final StringBuilder asked = new StringBuilder();

        Unerased() throws Exception {}

        @Override
        public String act(Action action) throws DeviceException {
            asked.append(action.again ? "again " : "first ");
            throw DeviceException.failed("not now");
        }
    }

    /**
     * The agent goes on, and asks in the second way after a while. A check-in that is answered says that the wipe was taken
     * back: another one begins in the first way.
     */
    @Test
    public void aRefusedEraseIsTriedInTheSecondWay() throws Exception {
        Unerased fixture = new Unerased();
        try (Agent agent = fixture.open()) {
            erase(agent);
            fixture.elapsed += 3 * 60_000;
            erase(agent);
            agent.once();
            erase(agent);
        }
        assertEquals("first again first ", fixture.asked.toString());
    }

    /** erase fails for a device that is still there. */
    private static void erase(Agent agent) {
        assertThrows(DeviceException.class, () -> {
            throw agent.eraser.eraseForGood();
        });
    }

    /** What an interrupted enrollment or write left, which may hold a token, goes with the rest. */
    @Test
    public void nothingIsLeftOfADestroyedStore() throws Exception {
        Fixture fixture = new Fixture();
        String[] names = {"enrolling.json", "identity.json.new-1", "journal.new-2", "update", "update.part", "other.new-3"};
        for (String name : names) {
            Disk.write(new File(fixture.directory, name), new byte[1]);
        }
        new Store(fixture.directory).destroy();
        assertArrayEquals(new String[] {"other.new-3"}, fixture.directory.list());
    }

    /** A start removes what an interrupted write left, but for an order: another process may be writing one. */
    @Test
    public void aStartRemovesWhatInterruptedWritesLeft() throws Exception {
        Fixture fixture = new Fixture();
        for (String name : new String[] {"enrolling.json.new-1", "identity.json.new-2", "journal.new-3", "order.new-4", "other.new-5",
            "update.part"}) {
            Disk.write(new File(fixture.directory, name), new byte[1]);
        }
        fixture.open().close();
        String[] left = fixture.directory.list();
        Arrays.sort(left);
        assertArrayEquals(new String[] {"identity.json", "journal", "order.new-4", "other.new-5", "service.json", "update.part"}, left);
    }
}

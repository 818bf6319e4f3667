package dev.muster.agent.core;

import static org.junit.Assert.assertEquals;

import java.nio.file.Files;
import java.util.Collections;
import org.junit.Test;

/** What a device that lost its identity still knows of its service. */
public final class ObeyedTest {
    @Test
    public void itKnowsTheLatestAddressAndPins() throws Exception {
        Fixture fixture = new Fixture();
        fixture.open().close();
        Store store = new Store(fixture.directory);
        Identity moved = store.identity();
        moved.server = "https://moved.example";
        moved.pins = Collections.singletonList("pin");
        store.save(Store.IDENTITY, moved.json());
        fixture.open().close();
        Files.write(store.path(Store.IDENTITY).toPath(), new byte[0]);
        Code code = Code.parse(Code.again(fixture.directory, "met_secret"));
        assertEquals("https://moved.example [pin]", code.server + " " + code.pins);
    }
}

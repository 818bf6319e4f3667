package dev.muster.agent.core;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.Test;

/** The commands of the wake stream: carried out before the check-in that acknowledges them, or left to it. */
public final class WakeStreamTest {
    /** Streaming is a service whose first stream has a text, and then ends. */
    private static class Streaming extends Fixture {
        final List<String> did = new ArrayList<>();
        private final CountDownLatch streams = new CountDownLatch(2);
        private volatile String text = "";
        private volatile String wakeHeader = "";

        Streaming() throws Exception {}

        @Override
        public Answer send(String method, String url, Map<String, String> headers, byte[] body, int silence) throws IOException {
            if (!url.endsWith("/wake")) {
                return super.send(method, url, headers, body, silence);
            }
            wakeHeader = headers.get("Muster-Wake");
            streams.countDown();
            if (streams.getCount() == 0) {
                throw new IOException("no network");
            }
            return new JsonAnswer(200, text);
        }

        @Override
        public String act(Action action) {
            did.add(action.type + " " + action.commandId);
            return "did";
        }

        /** hears has the agent read a stream to its end, and look once. */
        void hears(String stream) throws Exception {
            text = stream;
            try (Agent agent = open()) {
                Backoff backoff = new Backoff(new Random(1));
                backoff.answered();
                WakeStream listening = new WakeStream(agent, backoff);
                listening.start();
                for (int i = 0; i < 1000 && streams.getCount() > 0; i++) {
                    listening.moved(); // ends the pause before the next stream
                    streams.await(10, TimeUnit.MILLISECONDS); // the stream's thread is a real one
                }
                listening.stop();
                assertEquals("streams that were not asked for", 0, streams.getCount());
                agent.once();
            }
        }

        String event(String keyId, String id) throws IOException {
            return "event: command\ndata: " + Json.write(order(keyId, id, Command.LAUNCH).json()) + "\n\n";
        }

        /** acknowledged are the ids of the commands about which a check-in had a word. */
        List<String> acknowledged(int checkIn) throws JsonException {
            List<String> ids = new ArrayList<>();
            for (Fields ack : checkIns.get(checkIn).objects("acks")) {
                ids.add(ack.text("commandId"));
            }
            return ids;
        }
    }

    @Test
    public void aCommandIsDoneBeforeTheCheckInThatAcknowledgesIt() throws Exception {
        Streaming service = new Streaming();
        service.hears(": padding " + String.join("", Collections.nCopies(2000, "x")) + "\n\n" + service.event("k1", "c1"));
        assertEquals("commands", service.wakeHeader);
        assertEquals(Arrays.asList("LAUNCH_APP c1"), service.did);
        assertEquals(Arrays.asList("c1"), service.acknowledged(0));
    }

    @Test
    public void linesMayEndWithCarriageReturns() throws Exception {
        Streaming service = new Streaming();
        service.hears(service.event("k1", "c1").replace("\n", "\r\n"));
        assertEquals(Arrays.asList("LAUNCH_APP c1"), service.did);
    }

    @Test
    public void twiceOnTheStreamIsOnce() throws Exception {
        Streaming service = new Streaming();
        service.hears(service.event("k1", "c1") + service.event("k1", "c1"));
        assertEquals(Arrays.asList("LAUNCH_APP c1"), service.did);
    }

    @Test
    public void whatIsNoCommandIsAHint() throws Exception {
        Streaming service = new Streaming();
        String command = Json.write(service.order("k1", "c1", Command.LAUNCH).json());
        service.hears("event: command\ndata: {\"payload\n\n" // cut off
                + "data: " + command + "\n\n" // of no type
                + "event: command\n\ndata: " + command + "\n\n" // the type is of the event before
                + "event: command\ndata: " + command.substring(0, command.length() - 1) + ",\"x\":\""
                + String.join("", Collections.nCopies(70 << 10, "x")) + "\"}\n\n" // longer than a command
                + "event: command\ndata: " + command); // no end of line
        assertTrue(service.did.toString(), service.did.isEmpty());
        assertEquals("check-ins", 1, service.checkIns.size());
    }

    @Test
    public void anUnknownKeyOrAForgedTextDoesNothing() throws Exception {
        Streaming service = new Streaming();
        Envelope real = service.order("k1", "c1", Command.LAUNCH);
        Envelope forged = new Envelope(real.kind, service.order("k1", "c2", Command.LAUNCH).payload, real.keyId, real.signature);
        service.hears(service.event("k2", "c3") + "event: command\ndata: " + Json.write(forged.json()) + "\n\n");
        assertTrue(service.did.toString(), service.did.isEmpty());
        assertFalse("acknowledged", service.acknowledged(0).contains("c2"));
    }

    @Test
    public void whatWaitsIsBounded() throws Exception {
        Streaming service = new Streaming();
        StringBuilder many = new StringBuilder();
        for (int i = 0; i < 30; i++) {
            many.append(service.event("k1", "c" + i));
        }
        service.hears(many.toString());
        assertEquals(20, service.did.size());
    }

    /** A clock that was set since the last check-in says nothing about a command: the check-in corrects it first. */
    @Test
    public void whatSeemsLateWaitsForTheCheckIn() throws Exception {
        Streaming service = new Streaming();
        Envelope command = service.order("k1", "c1", Command.LAUNCH, service.now + 600_000);
        service.now += 400L * 24 * 3_600_000;
        service.away = true;
        try (Agent agent = service.open()) {
            agent.offered.add(command);
            for (int i = 0; i < 2; i++) {
                assertThrows(ExchangeException.class, agent::once);
                assertTrue("it is judged", agent.journal.entry("c1").is(Entry.RECEIVED));
            }
            service.away = false;
            service.now -= 400L * 24 * 3_600_000; // as a refusal for the clock corrects it
            agent.once();
        }
        assertEquals(Arrays.asList("LAUNCH_APP c1"), service.did);
    }
}

package dev.muster.agent.core;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNotSame;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.net.HttpURLConnection;
import java.net.URL;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.Test;

/** Unforeseen errors: they end no thread for good, and the service gets them. */
public final class BreakTest {
    private static List<String> errors(Fixture fixture) throws JsonException {
        List<String> all = new ArrayList<>();
        for (Fields one : fixture.checkIns) {
            Fields status = one.object("status");
            if (status != null) {
                all.addAll(status.object("values").texts("agentErrors"));
            }
        }
        return all;
    }

    @Test
    public void aWakeStreamThatBreaksIsOpenedAgainAndReported() throws Exception {
        final CountDownLatch opened = new CountDownLatch(2);
        Fixture fixture = new Fixture() {
            @Override
            public Answer send(String method, String url, Map<String, String> headers, byte[] body, int silence) throws IOException {
                if (url.endsWith("/wake")) {
                    opened.countDown();
                    throw new IllegalStateException("closed by another thread");
                }
                return super.send(method, url, headers, body, silence);
            }
        };
        try (Agent agent = fixture.open()) {
            Backoff backoff = new Backoff(new Random(1));
            backoff.answered();
            WakeStream stream = new WakeStream(agent, backoff);
            stream.start();
            for (int i = 0; i < 500 && !agent.reports.unreported(); i++) {
                Thread.sleep(10); // the stream's thread is a real one
            }
            stream.moved(); // ends the pause
            assertTrue("it was opened once", opened.await(10, TimeUnit.SECONDS));
            stream.stop();
            agent.once();
        }
        assertEquals(errors(fixture).toString(), 1, errors(fixture).size());
        assertTrue(errors(fixture).get(0), errors(fixture).get(0)
                .startsWith("the wake stream broke: java.lang.IllegalStateException: closed by another thread at "));
    }

    /** A connection that breaks when its time is over does not end the timer that all requests share. */
    @Test
    public void aConnectionThatCannotBeEndedEndsNoTimer() throws Exception {
        final Timer timer = new Timer(true);
        timer.schedule(HttpTransport.ends(new HttpURLConnection(new URL("http://example.com")) {
            @Override
            public void disconnect() {
                throw new NoSuchMethodError("close");
            }

            @Override
            public boolean usingProxy() {
                return false;
            }

            @Override
            public void connect() {}
        }), 0);
        final CountDownLatch later = new CountDownLatch(1);
        timer.schedule(new TimerTask() {
            @Override
            public void run() {
                later.countDown();
            }
        }, 1);
        assertTrue("the next request has its deadline", later.await(10, TimeUnit.SECONDS));
    }

    @Test
    public void whatEndedTheProcessBeforeIsReported() throws Exception {
        Fixture fixture = new Fixture();
        Options o = new Options();
        o.directory = fixture.directory;
        o.device = fixture;
        o.keys = fixture;
        o.transport = fixture;
        o.clock = fixture;
        o.log = fixture;
        o.crash = "the thread main: java.lang.OutOfMemoryError";
        try (Agent agent = new Agent(o)) {
            agent.once();
        }
        assertTrue(errors(fixture).toString(), errors(fixture)
                .contains("the process before this one broke: the thread main: java.lang.OutOfMemoryError"));
    }

    /** A full disk does not keep the device from what the service signed: a wipe is obeyed, too. */
    @Test
    public void aTimeThatCannotBeWrittenDownHoldsBackNothing() throws Exception {
        Fixture fixture = new Fixture();
        try (Agent agent = fixture.open()) {
            File identity = new File(fixture.directory, Store.IDENTITY); // no file can take a folder's place
            assertTrue(identity.delete() && identity.mkdir());
            long later = fixture.now + 48 * 3_600_000;
            agent.link.trust.keepTime(later);
            assertEquals(later, agent.link.identity().latest);
        }
    }

    /**
     * A command that was carried out is not again, and not forgotten, if the disk is full when its end is to be written
     * down. The agent stays in touch as usual, and says what became of the command once there is room.
     */
    @Test
    public void aFullDiskForgetsNoCommandThatWasCarriedOut() throws Exception {
        final RandomAccessFile[] before = new RandomAccessFile[1];
        final Agent[] running = new Agent[1];
        Fixture fixture = new Fixture() {
            @Override
            public String act(Action action) throws DeviceException {
                try {
                    Journal journal = running[0].journal;
                    assertNull("it acts twice", before[0]);
                    before[0] = journal.file;
                    journal.file = new RandomAccessFile("/dev/full", "rw");
                } catch (IOException e) {
                    throw DeviceException.failed(e.getMessage());
                }
                return super.act(action);
            }
        };
        try (Agent agent = fixture.open()) {
            running[0] = agent;
            CheckIn.accept(agent, Collections.singletonList(fixture.order("k1", "c1", "LAUNCH_APP")));
            assertEquals(900_000, agent.once());
            assertEquals(900_000, agent.once());
            assertEquals("told while the disk is full", "[]", agent.acks().toString());
            agent.journal.file.close();
            agent.journal.file = before[0];
            agent.once();
            List<Fields> acks = fixture.checkIns.get(fixture.checkIns.size() - 1).objects("acks");
            assertEquals("DONE", acks.get(0).text("state"));
        }
    }

    /** A device whose disk is full stays in touch, whatever its commands have come to, and goes on once there is room. */
    @Test
    public void aFullDiskHoldsBackNoCheckIn() throws Exception {
        for (String stage : new String[] {"RECEIVED", "STARTED", "DONE", "offered"}) {
            Fixture fixture = new Fixture();
            Entry e = Entry.received(new Command("d1", "c1", stage.equals("DONE") ? Command.STATUS : Command.LAUNCH, null, fixture.now, 0),
                    fixture.now);
            try (Agent before = fixture.open()) {
                if (!stage.equals("offered")) {
                    before.journal.write(e);
                }
                if (stage.equals("STARTED") || stage.equals("DONE")) {
                    before.journal.write(e = e.started("boot-1", fixture.now));
                }
                if (stage.equals("DONE")) {
                    before.journal.write(e.done(Entry.DONE, "", fixture.now));
                }
            }
            try (Agent agent = fixture.open(); RandomAccessFile room = agent.journal.file) {
                agent.journal.file = new RandomAccessFile("/dev/full", "rw");
                if (stage.equals("offered")) {
                    agent.offered.add(fixture.order("k1", "c1", Command.LAUNCH));
                }
                try {
                    agent.once();
                } catch (IOException full) {
                    assertTrue(stage + ": " + full, full.getMessage().startsWith("cannot write the journal"));
                }
                assertEquals(stage + ": " + fixture.log, 1, fixture.checkIns.size());
                agent.journal.file.close();
                agent.journal.file = room;
                agent.offered.add(fixture.order("k1", "c1", Command.LAUNCH)); // the service has it still
                agent.once();
                assertTrue(stage, agent.journal.entry("c1").is(Entry.CONFIRMED));
            }
        }
    }

    /** A restart that does not come is looked for every second for a minute, and then every minute; a wipe every 30 seconds. */
    @Test
    public void aRestartThatDoesNotComeIsLookedForEveryMinute() throws Exception {
        long[][] cases = {{1, 1}, {59, 1}, {61, 60}, {540, 60}}; // seconds after it was ordered, and until the next check-in
        for (long[] one : cases) {
            Fixture fixture = new Fixture();
            try (Agent agent = fixture.open()) {
                Entry e = Entry.received(new Command("d1", "c1", Command.REBOOT, null, fixture.now, 0), fixture.now);
                agent.journal.write(e.again());
                agent.once();
                fixture.now += one[0] * 1000;
                assertEquals("after " + one[0], one[1] * 1000, agent.once());
                agent.journal.write(Entry.received(new Command("d1", "c2", Command.WIPE, null, fixture.now, 0), fixture.now).again()
                        .started("boot-1", fixture.now));
                assertTrue("beside a wipe", agent.executor.looksAgain(agent.journal.entry("c2")) == Eraser.RETRY_INTERVAL);
            }
        }
    }

    /** A device whose disk is full when a setting of connectivity is to be set again stays in touch. */
    @Test
    public void aFullDiskThatHoldsBackARepairHoldsBackNoCheckIn() throws Exception {
        Fixture fixture = new Fixture();
        fixture.holds("WIFI_STATE", "DISABLED");
        fixture.shows.put("WIFI_STATE", "ENABLED");
        try (Agent agent = fixture.open()) {
            agent.policy.applied.settings.set(0, new SettingReport("WIFI_STATE", SettingReport.FAILED, "no"));
            File applied = new File(fixture.directory, Store.APPLIED); // no file can take a folder's place
            assertTrue(applied.delete() && applied.mkdir());
            fixture.elapsed += 7 * 3_600_000;
            agent.once();
            agent.once();
        }
        assertEquals("check-ins", 2, fixture.checkIns.size());
        assertEquals("it is not set before it is noted", "ENABLED", fixture.shows.get("WIFI_STATE"));
    }

    /** A command for which the system lacks a method fails. It does not break the agent at each start. */
    @Test
    public void aMethodThatTheSystemLacksCostsOneCommand() throws Exception {
        Fixture fixture = new Fixture() {
            @Override
            public String act(Action action) {
                throw new NoSuchMethodError("lockNow");
            }
        };
        try (Agent agent = fixture.open()) {
            agent.offered.add(fixture.order("k1", "c1", Command.LAUNCH));
            agent.once();
            Entry e = agent.journal.entry("c1");
            assertEquals("CONFIRMED FAILED the system refused: java.lang.NoSuchMethodError: lockNow",
                    e.stage + " " + e.result + " " + e.outcome);
        }
    }

    /** What still runs of an agent that was closed does not bring back the identity of before. */
    @Test
    public void aClosedAgentChangesNoIdentity() throws Exception {
        Fixture fixture = new Fixture();
        Agent closed = fixture.open();
        closed.close();
        try (Agent agent = fixture.open()) {
            agent.rotate();
        }
        closed.link.trust.keepTime(fixture.now + 48 * 3_600_000);
        assertThrows(IOException.class, closed.link::take);
        assertEquals("device-b", new Store(fixture.directory).identity().key);
    }

    /** A long secret, which an answer may hold that is not the service's, does not break the thread that logs it. */
    @Test
    public void aLongSecretCanBeLogged() {
        assertEquals("password=[redacted]!", LogFile.clean("password=\"" + String.join("", Collections.nCopies(100_000, "x\\\"")) + "\"!"));
    }

    /** A new key that the service has is the device's, also if that cannot be written down. */
    @Test
    public void aFullDiskKeepsTheKeyThatTheServiceHas() throws Exception {
        Fixture fixture = new Fixture() {
            @Override
            public Answer send(String method, String url, Map<String, String> headers, byte[] body, int silence) throws IOException {
                File identity = new File(directory, Store.IDENTITY); // no file can take a folder's place
                assertTrue(url, url.endsWith("/rotate") && identity.delete() && identity.mkdir());
                return super.send(method, url, headers, body, silence);
            }
        };
        try (Agent agent = fixture.open()) {
            DeviceKey old = agent.link.key();
            assertThrows(IOException.class, agent::rotate);
            assertNotSame("the service has another", old, agent.link.key());
        }
    }

    @Test
    public void troublesAreBounded() throws Exception {
        Fixture fixture = new Fixture();
        try (Agent agent = fixture.open()) {
            for (int i = 0; i < 100; i++) {
                agent.reports.trouble("one " + i % 50);
            }
            agent.once();
        }
        assertEquals(8, errors(fixture).size());
    }

    /** The device stays awake for a check-in, and no longer. */
    @Test
    public void awakeWhileItChecksIn() throws Exception {
        final int[] held = new int[2];
        final List<Integer> during = new ArrayList<>();
        final Runner[] running = new Runner[1];
        Fixture fixture = new Fixture() {
            @Override
            public Answer send(String method, String url, Map<String, String> headers, byte[] body, int silence) throws IOException {
                during.add(held[0]);
                running[0].stop();
                return super.send(method, url, headers, body, silence);
            }
        };
        Options o = new Options();
        o.directory = fixture.directory;
        o.device = fixture;
        o.keys = fixture;
        o.transport = fixture;
        o.clock = fixture;
        o.log = fixture;
        o.awake = most -> {
            held[0]++;
            assertTrue(most + " ms", most <= 3 * 60_000);
            return () -> held[0]--;
        };
        try (Agent agent = new Agent(o)) {
            running[0] = new Runner(agent);
            running[0].run();
        }
        assertEquals(Integer.valueOf(1), during.get(0));
        assertEquals(0, held[0]);
    }

    /** A system that makes no key for the yearly change, whatever it throws, holds back neither check-ins nor the stream. */
    @Test
    public void aKeyThatCannotBeMadeHoldsBackNothing() throws Exception {
        final CountDownLatch opened = new CountDownLatch(1);
        Fixture fixture = new Fixture() {
            @Override
            public Answer send(String method, String url, Map<String, String> headers, byte[] body, int silence) throws IOException {
                if (url.endsWith("/wake")) {
                    opened.countDown();
                    throw new IOException("no stream");
                }
                return super.send(method, url, headers, body, silence);
            }

            @Override
            public DeviceKey create(String name) {
                throw new IllegalArgumentException("invalid date string");
            }
        };
        fixture.now += 400L * 24 * 3_600_000;
        try (Agent agent = fixture.open()) {
            Runner runner = new Runner(agent);
            Thread stops = new Thread(() -> {
                try {
                    opened.await(10, TimeUnit.SECONDS);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
                runner.stop();
            });
            stops.start();
            runner.run();
            stops.join();
        }
        assertEquals("the stream was opened", 0, opened.getCount());
        assertTrue(errors(fixture).toString(), errors(fixture).get(0).startsWith("the change of the key broke: "));
    }
}

package dev.muster.agent.core;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;
import static org.junit.Assert.fail;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.Test;

/** Updates of a device that is away for long, that are not higher, and that arrive in pieces. */
public final class UpdatesTest {
    private static final int MIB = 1 << 20;
    private static final long WEEK = 7L * 24 * 3_600_000;

    private static byte[] program() {
        byte[] file = new byte[2 * MIB + 1000];
        new Random(1).nextBytes(file);
        return file;
    }

    /** settle has the device check in until it restarts, or ten times. */
    private static void settle(Fixture fixture) throws IOException {
        for (int i = 0; i < 10 && fixture.installed.isEmpty(); i++) {
            try {
                fixture.once();
            } catch (RestartException e) {
                return;
            }
        }
    }

    private static List<String> states(Fixture fixture) throws JsonException {
        List<String> all = new ArrayList<>();
        for (Fields one : fixture.checkIns) {
            Fields update = one.object("update");
            if (update != null) {
                all.add(update.text("state"));
            }
        }
        return all;
    }

    /** No check-in of a command has the service forget which version runs. */
    @Test
    public void eachCheckInSaysWhichVersionRuns() throws Exception {
        Fixture fixture = new Fixture();
        try (Agent agent = fixture.open()) {
            agent.journal.write(Entry.received(new Command("d1", "c1", Command.SYNC_POLICY, null, fixture.now, 0), fixture.now));
            agent.once();
        }
        assertEquals("check-ins", 3, fixture.checkIns.size());
        for (Fields one : fixture.checkIns) {
            assertEquals(1, one.object("build").number("code"));
        }
    }

    /** Away for a week in the middle of a download, and again before it could say that the new version runs. */
    @Test
    public void awayForAWeek() throws Exception {
        final List<Long> offsets = new ArrayList<>();
        final boolean[] cut = {true};
        Fixture fixture = new Fixture() {
            @Override
            Answer range(long from, long to) throws IOException {
                offsets.add(from);
                if (cut[0] && from > 0) {
                    away = true;
                    throw new IOException("no network");
                }
                return super.range(from, to);
            }
        };
        fixture.offers(2, program());
        fixture.once();
        away(fixture);
        cut[0] = false;
        offsets.clear();
        settle(fixture);
        assertEquals("it goes on where it was", Long.valueOf(MIB), offsets.get(0));
        assertEquals(Collections.singletonList("2"), fixture.installed);
        fixture.away = true;
        away(fixture);
        fixture.once();
        fixture.once();
        assertEquals("it says once that the new version runs", 1, Collections.frequency(states(fixture), "installed"));
        assertFalse("what was downloaded is gone", new File(fixture.directory, "update").exists());
    }

    private static void away(Fixture fixture) {
        assertTrue(fixture.away);
        fixture.now += WEEK;
        fixture.elapsed += WEEK;
        try {
            fixture.once();
            fail("it is out of touch");
        } catch (IOException e) {
            fixture.away = false;
        }
    }

    @Test
    public void anotherVersionIsNamedMeanwhile() throws Exception {
        Fixture fixture = new Fixture() {
            @Override
            Answer range(long from, long to) throws IOException {
                if (installed.isEmpty() && code == 1 && update.get("code").equals(2L) && from > 0) {
                    throw new IOException("no network");
                }
                return super.range(from, to);
            }
        };
        fixture.offers(2, program());
        fixture.once();
        byte[] newer = program();
        newer[0]++;
        fixture.offers(3, newer);
        settle(fixture);
        assertEquals(Collections.singletonList("3"), fixture.installed);
    }

    @Test
    public void aVersionThatIsNotHigherIsRefused() throws Exception {
        final List<Long> offsets = new ArrayList<>();
        Fixture fixture = new Fixture() {
            @Override
            Answer range(long from, long to) throws IOException {
                offsets.add(from);
                return super.range(from, to);
            }
        };
        fixture.code = 5;
        for (long version : new long[] {5, 4, 0, -1}) {
            fixture.offers(version, program());
            settle(fixture);
        }
        assertTrue(offsets.isEmpty() && fixture.installed.isEmpty());
        assertFalse(new File(fixture.directory, "update.json").exists());
        assertTrue(fixture.log.toString(), fixture.log.toString().contains("is not higher than what runs"));
        fixture.offers(6, program());
        settle(fixture);
        assertEquals("a higher one is taken after that", Collections.singletonList("6"), fixture.installed);
    }

    /** fetch gets the file into a folder, and says what hindered it. */
    private static String fetch(Fixture fixture, File to, Download.Source source) {
        try {
            Download.fetch(to, Text.hex(Text.sha256(fixture.file)), fixture.file.length, source, Steps.NONE, fixture);
            return "";
        } catch (IOException e) {
            return e.getMessage();
        }
    }

    /** An answer that says that it is another range is dropped; one that lies is found by the hash. Then the truth is taken. */
    @Test
    public void aReorderedDownload() throws Exception {
        final Fixture fixture = new Fixture();
        fixture.file = program();
        File to = new File(fixture.directory, "update");
        final Download.Source truth = fixture::range;
        assertTrue(fetch(fixture, to, (from, last) -> fixture.range(from == 0 ? MIB : 0, from == 0 ? 2 * MIB - 1 : MIB - 1))
                .contains("another range"));
        assertEquals("nothing of it is kept", 0, Download.part(to).length());
        Download.Source lies = (from, last) -> {
            long other = from == 0 ? MIB : from == MIB ? 0 : from;
            return fixture.part(from, last, from, last,
                    new java.io.ByteArrayInputStream(fixture.file, (int) other, (int) (last - from) + 1));
        };
        assertTrue(fetch(fixture, to, lies).contains("not the one that the service signed"));
        assertFalse(to.exists() || Download.part(to).exists());
        assertEquals("", fetch(fixture, to, truth));
        assertArrayEquals(fixture.file, Files.readAllBytes(to.toPath()));
    }

    /** One exchange takes two minutes at most, however steadily it drips; what has come is kept. */
    @Test
    public void aDownloadThatDrips() throws Exception {
        final Fixture fixture = new Fixture();
        fixture.file = program();
        File to = new File(fixture.directory, "update");
        Download.Source drips = (from, last) -> fixture.part(from, last, from, last, new InputStream() {
            private int at = (int) from;

            @Override
            public int read() {
                return fixture.file[at++] & 255;
            }

            @Override
            public int read(byte[] data, int offset, int size) {
                fixture.elapsed += 3000;
                data[offset] = fixture.file[at++];
                return 1;
            }
        });
        long began = fixture.elapsed;
        assertTrue(fetch(fixture, to, drips).contains("takes too long"));
        assertEquals("two minutes, and the byte after", 123_000, fixture.elapsed - began);
        assertEquals(40, Download.part(to).length());
        assertTrue(fetch(fixture, to, drips).contains("takes too long"));
        assertEquals(80, Download.part(to).length());
        assertArrayEquals(Arrays.copyOf(fixture.file, 80), Files.readAllBytes(Download.part(to).toPath()));
    }

    /** A download that could not be had goes on with the next regular check-in, and asks for none before. */
    @Test
    public void aDownloadThatFailedWaitsForTheNextCheckIn() throws Exception {
        final BlockingQueue<Thread> downloads = new LinkedBlockingQueue<>();
        Fixture fixture = new Fixture() {
            @Override
            Answer range(long from, long to) throws IOException {
                downloads.add(Thread.currentThread());
                Thread.currentThread().interrupt(); // it makes no further attempt
                throw new IOException("no network");
            }
        };
        fixture.offers(2, program());
        try (Agent agent = fixture.open()) {
            agent.gate.open();
            agent.once();
            downloads.take().join();
            long began = System.nanoTime();
            agent.woken().await(200);
            assertTrue("no check-in is asked for", System.nanoTime() - began >= 200_000_000);
            agent.once();
            downloads.take().join();
        }
    }

    /** An installation whose beginning cannot be written down, because the disk is full, begins later. */
    @Test
    public void anInstallationThatCannotBeNotedIsTriedAgain() throws Exception {
        final int[] checks = new int[1];
        Fixture fixture = new Fixture() {
            @Override
            public void check(File what, Update named) {
                File note = new File(directory, Store.UPDATE); // no file can take a folder's place
                assertTrue(++checks[0] != 2 || note.delete() && note.mkdir());
            }
        };
        fixture.offers(2, program());
        try (Agent agent = fixture.open()) {
            agent.once();
            assertEquals(2, checks[0]);
            assertTrue(new File(fixture.directory, Store.UPDATE).delete());
            assertThrows(RestartException.class, agent::once);
        }
        assertEquals(Collections.singletonList("2"), fixture.installed);
    }

    /** That the service has the report of an update is noted at a later check-in if the disk is full. Commands are carried out. */
    @Test
    public void aDeliveryThatCannotBeNotedHoldsBackNothing() throws Exception {
        Fixture fixture = new Fixture();
        fixture.offers(2, program());
        settle(fixture);
        try (Agent agent = fixture.open()) {
            File note = new File(fixture.directory, Store.UPDATE); // no file can take a folder's place
            assertTrue(note.delete() && note.mkdir());
            CheckIn.accept(agent, Collections.singletonList(fixture.order("k1", "c1", Command.LAUNCH)));
            agent.once();
            assertEquals(Entry.CONFIRMED, agent.journal.entry("c1").stage);
            assertTrue(note.delete());
            agent.once();
            int reports = states(fixture).size();
            agent.once();
            assertEquals("it reports what was noted", reports, states(fixture).size());
        }
        Fields noted = new Store(fixture.directory).load(Store.UPDATE);
        assertEquals("over installed true", noted.text("stage") + " " + noted.text("state") + " " + noted.flag("told"));
    }

    /** An update that failed rests for a day. A time that a wrong clock has noted, which is farther away, holds back nothing. */
    @Test
    public void anUpdateThatFailedRestsForADay() throws Exception {
        Fixture fixture = new Fixture();
        fixture.offers(2, program());
        for (long rest : new long[] {20 * 3_600_000, WEEK}) {
            assertEquals(Collections.emptyList(), fixture.installed);
            new Store(fixture.directory).save(Store.UPDATE, Fields.members("want", fixture.update, "stage", "over", "state", "failed",
                    "told", true, "until", fixture.now + rest));
            settle(fixture);
        }
        assertEquals(Collections.singletonList("2"), fixture.installed);
    }

    /** A log that a proxy refuses holds back neither the policy nor an update, and is tried again. */
    @Test
    public void aCommandThatCannotReachTheServiceHoldsBackNothingElse() throws Exception {
        Fixture fixture = new Fixture() {
            @Override
            public Answer send(String method, String url, Map<String, String> headers, byte[] body, int silence) throws IOException {
                if (url.endsWith(Link.LOG + "c1")) {
                    throw new IOException("refused in between");
                }
                return super.send(method, url, headers, body, silence);
            }
        };
        fixture.offers(2, program());
        try (Agent agent = fixture.open()) {
            agent.options.kept = () -> Text.bytes("a line");
            Command c = new Command("d1", "c1", Command.UPLOAD_LOG, null, fixture.now, 0);
            agent.journal.write(Entry.received(c, fixture.now));
            ExchangeException e = assertThrows(ExchangeException.class, agent::once);
            assertTrue(e.getMessage(), e.getMessage().contains("refused in between"));
            assertEquals("it stays open", 1, agent.journal.entries(Entry.RECEIVED).size());
        }
        assertTrue(fixture.log.toString(), fixture.log.toString().contains("did not sign which policy"));
        assertArrayEquals(fixture.file, Files.readAllBytes(new File(fixture.directory, "update").toPath()));
    }
}

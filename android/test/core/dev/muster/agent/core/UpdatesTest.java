package dev.muster.agent.core;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
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
import java.util.Random;
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
    private static void settle(Rig rig) throws IOException {
        for (int i = 0; i < 10 && rig.installed.isEmpty(); i++) {
            try {
                rig.once();
            } catch (RestartException e) {
                return;
            }
        }
    }

    private static List<String> states(Rig rig) throws JsonException {
        List<String> all = new ArrayList<>();
        for (Fields one : rig.told) {
            Fields update = one.object("update");
            if (update != null) {
                all.add(update.text("state"));
            }
        }
        return all;
    }

    /** Away for a week in the middle of a download, and again before it could say that the new version runs. */
    @Test
    public void awayForAWeek() throws Exception {
        final List<Long> asked = new ArrayList<>();
        final boolean[] cut = {true};
        Rig rig = new Rig() {
            @Override
            Answer range(long from, long to) throws IOException {
                asked.add(from);
                if (cut[0] && from > 0) {
                    away = true;
                    throw new IOException("no network");
                }
                return super.range(from, to);
            }
        };
        rig.offers(2, program());
        rig.once();
        away(rig);
        cut[0] = false;
        asked.clear();
        settle(rig);
        assertEquals("it goes on where it was", Long.valueOf(MIB), asked.get(0));
        assertEquals(Collections.singletonList("2"), rig.installed);
        rig.away = true;
        away(rig);
        rig.once();
        assertTrue(states(rig).toString(), states(rig).contains("installed"));
        assertFalse("what was downloaded is gone", new File(rig.directory, "update").exists());
    }

    private static void away(Rig rig) {
        assertTrue(rig.away);
        rig.now += WEEK;
        rig.elapsed += WEEK;
        try {
            rig.once();
            fail("it is out of touch");
        } catch (IOException e) {
            rig.away = false;
        }
    }

    @Test
    public void anotherVersionIsNamedMeanwhile() throws Exception {
        Rig rig = new Rig() {
            @Override
            Answer range(long from, long to) throws IOException {
                if (installed.isEmpty() && code == 1 && update.get("code").equals(2L) && from > 0) {
                    throw new IOException("no network");
                }
                return super.range(from, to);
            }
        };
        rig.offers(2, program());
        rig.once();
        byte[] newer = program();
        newer[0]++;
        rig.offers(3, newer);
        settle(rig);
        assertEquals(Collections.singletonList("3"), rig.installed);
    }

    @Test
    public void aVersionThatIsNotHigherIsRefused() throws Exception {
        final List<Long> asked = new ArrayList<>();
        Rig rig = new Rig() {
            @Override
            Answer range(long from, long to) throws IOException {
                asked.add(from);
                return super.range(from, to);
            }
        };
        rig.code = 5;
        for (long version : new long[] {5, 4, 0, -1}) {
            rig.offers(version, program());
            settle(rig);
        }
        assertTrue(asked.isEmpty() && rig.installed.isEmpty());
        assertFalse(new File(rig.directory, "update.json").exists());
        assertTrue(rig.log.toString(), rig.log.toString().contains("is not higher than what runs"));
        rig.offers(6, program());
        settle(rig);
        assertEquals("a higher one is taken after that", Collections.singletonList("6"), rig.installed);
    }

    /** fetch gets the file into a folder, and says what hindered it. */
    private static String fetch(Rig rig, File to, Download.Source source) {
        try {
            Download.fetch(to, Text.hex(Text.sha256(rig.file)), rig.file.length, source, Steps.NONE, rig);
            return "";
        } catch (IOException e) {
            return e.getMessage();
        }
    }

    /** An answer that says that it is another range is dropped; one that lies is found by the hash. Then the truth is taken. */
    @Test
    public void aReorderedDownload() throws Exception {
        final Rig rig = new Rig();
        rig.file = program();
        File to = new File(rig.directory, "update");
        final Download.Source truth = rig::range;
        assertTrue(fetch(rig, to, (from, last) -> rig.range(from == 0 ? MIB : 0, from == 0 ? 2 * MIB - 1 : MIB - 1))
                .contains("another range"));
        assertEquals("nothing of it is kept", 0, Download.part(to).length());
        Download.Source lies = (from, last) -> {
            long other = from == 0 ? MIB : from == MIB ? 0 : from;
            return rig.part(from, last, from, last, new java.io.ByteArrayInputStream(rig.file, (int) other, (int) (last - from) + 1));
        };
        assertTrue(fetch(rig, to, lies).contains("not the one that the service signed"));
        assertFalse(to.exists() || Download.part(to).exists());
        assertEquals("", fetch(rig, to, truth));
        assertArrayEquals(rig.file, Files.readAllBytes(to.toPath()));
    }

    /** One exchange takes two minutes at most, however steadily it drips; what has come is kept. */
    @Test
    public void aDownloadThatDrips() throws Exception {
        final Rig rig = new Rig();
        rig.file = program();
        File to = new File(rig.directory, "update");
        Download.Source drips = (from, last) -> rig.part(from, last, from, last, new InputStream() {
            private int at = (int) from;

            @Override
            public int read() {
                return rig.file[at++] & 255;
            }

            @Override
            public int read(byte[] data, int offset, int size) {
                rig.elapsed += 3000;
                data[offset] = rig.file[at++];
                return 1;
            }
        });
        long began = rig.elapsed;
        assertTrue(fetch(rig, to, drips).contains("takes too long"));
        assertEquals("two minutes, and the byte after", 123_000, rig.elapsed - began);
        assertEquals(40, Download.part(to).length());
        assertTrue(fetch(rig, to, drips).contains("takes too long"));
        assertEquals(80, Download.part(to).length());
        assertArrayEquals(Arrays.copyOf(rig.file, 80), Files.readAllBytes(Download.part(to).toPath()));
    }
}

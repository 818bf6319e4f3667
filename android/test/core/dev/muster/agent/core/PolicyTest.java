package dev.muster.agent.core;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;
import static org.junit.Assert.fail;

import java.io.IOException;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.Test;

/** When the device is compared with its policy, and when connectivity is taken back, whatever its clock says. */
public final class PolicyTest {
    private static final long HOUR = 3_600_000;
    private static final long YEAR = 365L * 24 * HOUR;

    private static String state(Agent agent) {
        SettingReport s = agent.policy.applied.settings.get(0);
        return s.state + " " + s.detail;
    }

    /** What cannot be seen before the first unlock stays as it was, and is looked at again with each check-in. */
    @Test
    public void aPasswordIsNotJudgedBeforeTheFirstUnlock() throws Exception {
        Fixture fixture = new Fixture();
        fixture.holds("ENCRYPTION_POLICY", "ENABLED_WITH_PASSWORD");
        fixture.boot = "boot-2";
        fixture.elapsed = 1000;
        fixture.locked = true;
        try (Agent agent = fixture.open()) {
            agent.policy.restore(fixture.boot);
            assertEquals("applied ", state(agent));
            assertTrue("nothing is left to report", agent.policy.applied.reported);
            fixture.locked = false;
            fixture.shows.put("ENCRYPTION_POLICY", ""); // the user has taken it away
            agent.policy.restore(fixture.boot);
            assertEquals("pending the device does not show it yet", state(agent));
            assertFalse(agent.policy.applied.reported);
        }
    }

    @Test
    public void aPolicyThatComesBeforeTheFirstUnlockIsLookedAtAfterIt() throws Exception {
        Fixture fixture = new Fixture();
        fixture.shows.put("ENCRYPTION_POLICY", "ENABLED_WITH_PASSWORD");
        fixture.locked = true;
        try (Agent agent = fixture.open()) {
            LinkedHashMap<String, String> want = new LinkedHashMap<>();
            want.put("ENCRYPTION_POLICY", "ENABLED_WITH_PASSWORD");
            agent.policy.converge(new PolicyRef("p1", 2), want);
            assertEquals("pending the device was not unlocked since its start", state(agent));
            fixture.locked = false;
            agent.policy.restore(fixture.boot);
            assertEquals("applied ", state(agent));
        }
    }

    @Test
    public void driftIsLookedForByTheTimeThatHasElapsed() throws Exception {
        Fixture fixture = new Fixture();
        fixture.holds("CAMERA", "BLOCK");
        fixture.shows.put("CAMERA", "");
        try (Agent agent = fixture.open()) {
            for (long wrong : new long[] {YEAR, -2 * YEAR}) {
                fixture.now += wrong;
                agent.policy.restore(fixture.boot);
                assertEquals("", fixture.shows.get("CAMERA"));
            }
            fixture.elapsed += 6 * HOUR + 1;
            agent.policy.restore(fixture.boot);
            assertEquals("BLOCK", fixture.shows.get("CAMERA"));
        }
    }

    /** What an agent before has noted is Unix time, which is far away: it counts as over. */
    @Test
    public void driftIsLookedForWhereTheNoteIsNoMomentOfThisStart() throws Exception {
        Fixture fixture = new Fixture();
        fixture.holds("CAMERA", "BLOCK");
        fixture.shows.put("CAMERA", "");
        try (Agent agent = fixture.open()) {
            agent.policy.applied.checkAt = fixture.now;
            agent.policy.restore(fixture.boot);
            assertEquals("BLOCK", fixture.shows.get("CAMERA"));
        }
    }

    @Test
    public void theGuardCountsWhatHasElapsedAndAnewAfterARestart() throws Exception {
        Fixture fixture = new Fixture();
        fixture.shows.put("WIFI_STATE", "ENABLED");
        LinkedHashMap<String, String> want = new LinkedHashMap<>();
        want.put("WIFI_STATE", "DISABLED");
        try (Agent agent = fixture.open()) {
            agent.policy.converge(new PolicyRef("p1", 1), want);
        }
        long[][] steps = {{YEAR, 0, 0}, {-2 * YEAR, 4, 0}, {0, 0, 1}, {0, 4, 0}, {0, 2, 0}};
        for (int i = 0; i < steps.length; i++) {
            assertEquals("before step " + i, "DISABLED", fixture.shows.get("WIFI_STATE"));
            fixture.now += steps[i][0];
            fixture.elapsed += steps[i][1] * 60_000;
            if (steps[i][2] == 1) {
                fixture.boot = "boot-2";
                fixture.elapsed = 10_000;
            }
            try (Agent agent = fixture.open()) { // the process may have died
                agent.policy.restore(fixture.boot);
                assertTrue(agent.guarded(Long.MAX_VALUE, false) <= 5 * 60_000 || i == steps.length - 1);
            }
        }
        assertEquals("ENABLED", fixture.shows.get("WIFI_STATE"));
    }

    /**
     * A check-in that was answered before the radio went down proves nothing; one that begins later does. A setting that
     * cannot be read, and that no policy sets, holds back nothing.
     */
    @Test
    public void aCheckInRightAfterTheChangeDoesNotEndTheGuard() throws Exception {
        long[][] cases = {{0, 0}, {1000, 0}, {1000, 1}, {20_000, 0}}; // when the next check-in is, and whether a policy came before it
        for (long[] one : cases) {
            Fixture fixture = new Fixture();
            fixture.shows.put("WIFI_STATE", "ENABLED");
            fixture.mute = "AIRPLANE_MODE";
            try (Agent agent = fixture.open()) {
                agent.gate.open();
                agent.policy.converge(new PolicyRef("p1", 1), settings("WIFI_STATE", "DISABLED"));
                agent.once();
                assertEquals(20_000, agent.guarded(Long.MAX_VALUE, true));
                fixture.elapsed += one[0];
                if (one[1] == 1) {
                    agent.policy.converge(new PolicyRef("p1", 2), settings("WIFI_STATE", "DISABLED"));
                }
                agent.once();
                fixture.away = true;
                fixture.elapsed += 6 * 60_000;
                assertThrows(ExchangeException.class, agent::once);
            }
            assertEquals("case " + one[0] + " " + one[1], one[0] < 20_000 ? "ENABLED" : "DISABLED", fixture.shows.get("WIFI_STATE"));
        }
    }

    /**
     * A device that slept after the change, or whose process died, asks the service before it takes anything back. A check-in
     * that fails has it taken back only if it began after the five minutes; one that began before is repeated at once.
     */
    @Test
    public void sleepProvesNothing() throws Exception {
        int[][] cases = {{15, 0, 0, 0}, {15, 0, 0, 1}, {15, 0, 1, 0}, {15, 0, 1, 1}, {4, 2, 1, 0}}; // until the check-in, its minutes,
        for (int[] one : cases) { // whether the service is away, and whether the process died
            Fixture fixture = new Fixture() {
                @Override
                public Answer send(String method, String url, Map<String, String> headers, byte[] body, int silence) throws IOException {
                    elapsed += away ? one[1] * 60_000 : 0;
                    return super.send(method, url, headers, body, silence);
                }
            };
            fixture.shows.put("WIFI_STATE", "ENABLED");
            Agent agent = fixture.open();
            agent.gate.open();
            agent.policy.converge(new PolicyRef("p1", 1), settings("WIFI_STATE", "DISABLED"));
            agent.once();
            if (one[3] == 1) {
                agent.close();
                agent = fixture.open();
                agent.gate.open();
            }
            fixture.elapsed += one[0] * 60_000;
            fixture.away = one[2] == 1;
            String name = Arrays.toString(one);
            if (fixture.away) {
                assertThrows(name, ExchangeException.class, agent::once);
                long began = System.nanoTime();
                agent.woken().await(60_000);
                assertTrue("the next check-in waits", System.nanoTime() - began < 30_000_000_000L);
            } else {
                agent.once();
            }
            assertEquals(name, fixture.away && one[1] == 0 ? "ENABLED" : "DISABLED", fixture.shows.get("WIFI_STATE"));
            if (one[1] > 0) {
                assertThrows(name, ExchangeException.class, agent::once);
                assertEquals(name, "ENABLED", fixture.shows.get("WIFI_STATE"));
            }
            assertNull(name, agent.policy.applied.guard);
            agent.close();
        }
    }

    /** What fails before a check-in, once the guard's time is over, is not repeated without a pause. */
    @Test
    public void aGuardThatIsOverEndsNoPause() throws Exception {
        Fixture fixture = new Fixture();
        try (Agent agent = fixture.open()) {
            agent.policy.applied.guard = new Applied.Guard("boot-1", fixture.elapsed - 1, new LinkedHashMap<String, String>());
            assertEquals(9000, agent.guarded(9000, false));
            assertEquals(0, agent.guarded(9000, true));
        }
    }

    /**
     * A setting of connectivity that cannot be read is not set and is reported as failed, and the rest of the policy is
     * applied. As soon as it can be read it is set, with a guard.
     */
    @Test
    public void aSettingThatCannotBeReadHoldsBackNoPolicy() throws Exception {
        Fixture fixture = new Fixture();
        fixture.shows.put("WIFI_STATE", "ENABLED");
        fixture.mute = "WIFI_STATE";
        try (Agent agent = fixture.open()) {
            agent.policy.converge(new PolicyRef("p1", 1), settings("CAMERA", "BLOCK", "WIFI_STATE", "DISABLED"));
            assertTrue(agent.policy.has(new PolicyRef("p1", 1)));
            assertEquals("{WIFI_STATE=ENABLED, CAMERA=BLOCK}", fixture.shows.toString());
        }
        Applied failed = Applied.read(new Store(fixture.directory).load(Store.APPLIED));
        assertEquals("failed", failed.settings.get(1).state);
        fixture.mute = "";
        fixture.elapsed += 7 * 3_600_000;
        try (Agent agent = fixture.open()) {
            agent.policy.restore(fixture.boot);
        }
        assertEquals("DISABLED", fixture.shows.get("WIFI_STATE"));
        Applied applied = Applied.read(new Store(fixture.directory).load(Store.APPLIED));
        assertEquals("applied", applied.settings.get(1).state);
        assertEquals("{WIFI_STATE=ENABLED}", applied.guard.before.toString());
    }

    private static LinkedHashMap<String, String> settings(String... namesAndValues) {
        LinkedHashMap<String, String> all = new LinkedHashMap<>();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            all.put(namesAndValues[i], namesAndValues[i + 1]);
        }
        return all;
    }

    /** halfApplied is a device with CAMERA of its policy, and SMS of the next one, in which the process ended. */
    private static Fixture halfApplied() throws Exception {
        Fixture fixture = new Fixture();
        fixture.holds("CAMERA", "BLOCK");
        fixture.dies = "TETHERING";
        try (Agent agent = fixture.open()) {
            agent.policy.converge(new PolicyRef("p2", 1), settings("SMS", "BLOCK", "TETHERING", "BLOCK"));
            fail("the process went on");
        } catch (ThreadDeath killed) {
            assertEquals("BLOCK", fixture.shows.get("SMS"));
        }
        fixture.dies = "";
        return fixture;
    }

    @Test
    public void whatAHalfAppliedPolicySetIsTakenBackByTheNext() throws Exception {
        Fixture fixture = halfApplied();
        try (Agent agent = fixture.open()) {
            assertFalse("the policy before is to be applied again", agent.policy.has(new PolicyRef("p1", 1)));
            agent.policy.converge(new PolicyRef("p3", 1), settings("CAMERA", "BLOCK"));
        }
        assertEquals("SMS", "", fixture.shows.get("SMS"));
        assertEquals("CAMERA", "BLOCK", fixture.shows.get("CAMERA"));
        try (Agent agent = fixture.open()) {
            fixture.shows.put("SMS", "the user's");
            agent.policy.converge(new PolicyRef("p4", 1), settings());
        }
        assertEquals("it is taken back once", "the user's", fixture.shows.get("SMS"));
    }

    /** The process ends in a policy that names nothing new, and the device is given the one before again. */
    @Test
    public void whatAHalfAppliedPolicyChangedIsSetAgain() throws Exception {
        Fixture fixture = new Fixture();
        fixture.holds("CAMERA", "BLOCK");
        fixture.dies = "SMS";
        try (Agent agent = fixture.open()) {
            agent.policy.applied.wanted.put("SMS", "BLOCK");
            agent.policy.converge(new PolicyRef("p2", 1), settings("CAMERA", "ALLOW", "SMS", "ALLOW"));
            fail("the process went on");
        } catch (ThreadDeath killed) {
            assertEquals("ALLOW", fixture.shows.get("CAMERA"));
        }
        fixture.dies = "";
        try (Agent agent = fixture.open()) {
            assertFalse("the policy before is to be applied again", agent.policy.has(new PolicyRef("p1", 1)));
            agent.policy.converge(new PolicyRef("p1", 1), settings("CAMERA", "BLOCK"));
            assertTrue(agent.policy.has(new PolicyRef("p1", 1)));
        }
        assertEquals("BLOCK", fixture.shows.get("CAMERA"));
    }

    @Test
    public void whatAHalfAppliedPolicySetIsReleased() throws Exception {
        Fixture fixture = halfApplied();
        try (Agent agent = fixture.open()) {
            agent.policy.release();
        }
        assertEquals("SMS", "", fixture.shows.get("SMS"));
    }

    @Test
    public void whatCannotBeTakenBackIsTriedWithEveryPolicy() throws Exception {
        Fixture fixture = new Fixture();
        fixture.holds("CAMERA", "BLOCK");
        fixture.fixed = "CAMERA";
        for (int version = 2; version <= 3; version++) {
            try (Agent agent = fixture.open()) {
                agent.policy.converge(new PolicyRef("p1", version), settings());
                assertEquals("with version " + version, 1, agent.policy.applied.settings.size());
                assertEquals("failed it is fixed", state(agent));
            }
        }
        fixture.fixed = "";
        try (Agent agent = fixture.open()) {
            agent.policy.converge(new PolicyRef("p1", 4), settings());
            assertTrue(agent.policy.applied.settings.isEmpty());
        }
        assertEquals("", fixture.shows.get("CAMERA"));
    }

    /** What a relinquish or a wipe took back before it failed is applied again at once, also if its time is over. */
    @Test
    public void aDeviceThatStaysManagedHasItsPolicy() throws Exception {
        for (String type : new String[] {Command.RELINQUISH, Command.WIPE}) {
            for (boolean late : new boolean[] {false, true}) {
                Fixture fixture = new Fixture();
                fixture.holds("CAMERA", "BLOCK");
                fixture.stays = true;
                if (late) {
                    fixture.shows.put("CAMERA", ""); // by a process before, which was killed
                }
                Command c = new Command("d1", "c1", type, null, fixture.now, late ? 1 : 0);
                try (Agent agent = fixture.open()) {
                    agent.journal.write(Entry.received(c, fixture.now).again());
                    agent.executor.execute(true);
                    Entry done = agent.journal.entries(Entry.DONE).get(0);
                    assertEquals(type, Entry.FAILED, done.result);
                    assertEquals(type, late ? "expired before the device could run it" : "it stays managed", done.outcome);
                }
                assertEquals(type, "BLOCK", fixture.shows.get("CAMERA"));
            }
        }
    }

    /** What only the policy before had is set again with the rest, is reported, and is taken back by the next policy. */
    @Test
    public void whatTheGuardRestoresOfTheFormerPolicyIsReportedAndTakenBack() throws Exception {
        Fixture fixture = new Fixture();
        fixture.holds("AIRPLANE_MODE", "BLOCK");
        try (Agent agent = fixture.open()) {
            agent.policy.converge(new PolicyRef("p2", 1), settings("CAMERA", "BLOCK"));
            assertEquals("", fixture.shows.get("AIRPLANE_MODE"));
            fixture.elapsed += 6 * 60_000;
            agent.policy.restore(fixture.boot);
        }
        assertEquals("BLOCK", fixture.shows.get("AIRPLANE_MODE"));
        try (Agent agent = fixture.open()) {
            assertFalse(agent.policy.applied.reported);
            assertEquals(2, agent.policy.applied.settings.size());
            SettingReport back = agent.policy.applied.settings.get(1);
            assertEquals("AIRPLANE_MODE rolled_back it cut the device off", back.id + " " + back.state + " " + back.detail);
            fixture.elapsed += 7 * HOUR;
            agent.policy.restore(fixture.boot);
            assertEquals("no repair changes it", "BLOCK", fixture.shows.get("AIRPLANE_MODE"));
            agent.policy.converge(new PolicyRef("p3", 1), settings("CAMERA", "BLOCK"));
            assertEquals("", fixture.shows.get("AIRPLANE_MODE"));
            assertEquals(1, agent.policy.applied.settings.size());
        }
    }
}

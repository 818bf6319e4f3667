package dev.muster.agent.core;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.Test;

/** Check-ins that are larger than the service takes, or refused for their form: the device stays managed. */
public final class FitTest {
    /** Crowded is a device with many apps, whose service takes no body that is too large, and no report where it refuses reports. */
    private static final class Crowded extends Fixture {
        boolean refuses;
        int refused;

        Crowded() throws Exception {}

        @Override
        public Report report(Reporting groups) {
            Report r = new Report();
            List<Object> apps = new ArrayList<>();
            for (int i = 0; i < 1200; i++) {
                apps.add(Fields.members("packageName", "com.example." + repeat("x", 210) + i, "versionCode", (long) i));
            }
            r.values.put("applications", apps);
            return r;
        }

        @Override
        public Answer send(String method, String url, Map<String, String> headers, byte[] body, int silence) throws IOException {
            boolean reports = Json.object(new String(body, Text.UTF_8)).has("status");
            if (body.length > 256 << 10 || refuses && reports) {
                refused++;
                return new JsonAnswer(400, Fields.members("error", Refusal.MALFORMED));
            }
            return super.send(method, url, headers, body, silence);
        }

        /** ackAfter has the agent check in with a command, and returns what it acknowledged. */
        String ackAfter(String type) throws IOException {
            try (Agent agent = open()) {
                agent.offered.add(order("k1", "c1", type));
                agent.once();
                Entry e = agent.journal.entry("c1");
                return e.stage + " " + e.result + " " + e.outcome;
            }
        }
    }

    private static String repeat(String text, int times) {
        return String.join("", Collections.nCopies(times, text));
    }

    @Test
    public void aReportThatIsTooLargeHasFewerAppsAndSaysSo() throws Exception {
        Crowded device = new Crowded();
        assertEquals("CONFIRMED DONE status reported", device.ackAfter(Command.STATUS));
        Fields values = device.checkIns.get(0).object("status").object("values");
        int apps = values.objects("applications").size();
        assertTrue(apps + " apps", apps >= 800 && apps < 1200);
        assertEquals(Collections.singletonList("the report lists " + apps + " of 1200 apps: a check-in has no room for more"),
                values.texts("agentErrors"));
    }

    @Test
    public void aReportThatIsRefusedAsMalformedIsNotSentAgain() throws Exception {
        String[][] acks = {{Command.LAUNCH, "CONFIRMED DONE did"},
            {Command.STATUS, "CONFIRMED FAILED the service does not take the report"}};
        for (String[] ack : acks) {
            Crowded device = new Crowded();
            device.holds("CAMERA", "BLOCK");
            Store store = new Store(device.directory);
            Applied applied = Applied.read(store.load(Store.APPLIED));
            applied.reported = false;
            applied.settings.set(0, new SettingReport("CAMERA", SettingReport.FAILED, "no"));
            store.save(Store.APPLIED, applied.json());
            device.refuses = true;
            assertEquals(ack[1], device.ackAfter(ack[0]));
            Fields policy = device.checkIns.get(0).object("policy");
            assertEquals(SettingReport.FAILED, policy.objects("settings").get(0).text("state"));
            device.refused = 0;
            device.once();
            assertEquals("refused again", 0, device.refused);
        }
    }

    @Test
    public void manyAcksAreSentInSeveralCheckIns() throws Exception {
        Crowded device = new Crowded();
        try (Journal journal = Journal.open(new Store(device.directory).path(Store.JOURNAL), device.now)) {
            for (int i = 0; i < 250; i++) {
                journal.write(Entry.received(new Command("d1", "c" + i, Command.LAUNCH, null, device.now, 0), device.now)
                        .done(Entry.FAILED, repeat("\u20ac", 1000), device.now));
            }
        }
        device.once();
        Set<String> acked = new HashSet<>();
        for (Fields checkIn : device.checkIns) {
            for (Fields ack : checkIn.objects("acks")) {
                acked.add(ack.text("commandId"));
            }
        }
        assertEquals(250, acked.size());
    }
}

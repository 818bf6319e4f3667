package dev.muster.agent;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import android.content.Intent;
import android.content.pm.ActivityInfo;
import android.content.pm.ApplicationInfo;
import android.content.pm.ResolveInfo;
import android.os.Build;
import dev.muster.agent.core.Parity;
import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.junit.Test;
import org.robolectric.Shadows;

/**
 * Every setting with every value comes to the same in both agents, on four kinds of devices: the Go
 * agent's model wrote settings.tsv. What differs is in differences.tsv with its reason, and nothing else.
 */
public final class ParityTest extends Client {
    private static final File TESTS = new File(System.getProperty("muster.tests"));

    /** read returns "setting=value machine" to "state detail". A line has four columns: setting=value, state, detail, machines. */
    private static Map<String, String> read(String name) throws Exception {
        Map<String, String> all = new HashMap<>();
        for (String line : Files.readAllLines(new File(TESTS, name).toPath(), StandardCharsets.UTF_8)) {
            if (line.startsWith("#") || line.isEmpty()) {
                continue;
            }
            String[] cells = line.split("\t", -1);
            for (String machine : cells[3].split(" ")) {
                all.put(cells[0] + " " + machine, cells[1] + " " + cells[2]);
            }
        }
        return all;
    }

    /** pretend gives the device the system features and the package verifier of its kind. */
    private void pretend(String kind) {
        Shadows.shadowOf(app.getPackageManager()).setSystemFeature(Rules.TELEPHONY, kind.equals("phone") || kind.equals("noverifier"));
        Shadows.shadowOf(app.getPackageManager()).setSystemFeature(Rules.WIFI, true);
        Shadows.shadowOf(app.getPackageManager()).setSystemFeature(Rules.HEADSET, kind.equals("headset"));
        Intent asks = new Intent("android.intent.action.PACKAGE_NEEDS_VERIFICATION").setType("application/vnd.android.package-archive");
        Shadows.shadowOf(app.getPackageManager()).removeResolveInfosForIntent(asks, "com.example.verifier");
        if (!kind.equals("noverifier")) {
            ResolveInfo verifier = new ResolveInfo();
            verifier.activityInfo = new ActivityInfo();
            verifier.activityInfo.applicationInfo = new ApplicationInfo();
            verifier.activityInfo.packageName = verifier.activityInfo.applicationInfo.packageName = "com.example.verifier";
            verifier.activityInfo.name = "com.example.verifier.Verifier";
            Shadows.shadowOf(app.getPackageManager()).addResolveInfoForIntent(asks, verifier);
        }
    }

    @Test
    public void everySettingAndValue() throws Exception {
        Map<String, String> wanted = read("settings.tsv");
        Map<String, String> differences = read("differences.tsv");
        AndroidDevice device = new AndroidDevice(new Owner(app), files);
        Set<String> unexpected = new TreeSet<>();
        int compared = 0;
        for (String kind : new String[] {"phone", "tablet", "headset", "noverifier"}) {
            pretend(kind);
            String machine = " " + kind + Build.VERSION.SDK_INT;
            for (Map.Entry<String, String> e : wanted.entrySet()) {
                if (!e.getKey().endsWith(machine)) {
                    continue;
                }
                compared++;
                String[] pair = e.getKey().substring(0, e.getKey().indexOf(' ')).split("=", -1);
                boolean can = pair[0].equals("CAPABILITIES");
                String[] r = can ? new String[] {String.join(" ", device.capabilities()), ""} : Parity.apply(device, pair[0], pair[1]);
                String want = differences.getOrDefault(e.getKey(), e.getValue());
                if (!want.equals(r[0] + " " + r[1])) {
                    unexpected.add(e.getKey() + ": got " + r[0] + " " + r[1] + ", want " + want);
                }
                if (differences.containsKey(e.getKey()) && want.equals(e.getValue())) {
                    unexpected.add(e.getKey() + " is no difference");
                }
                if (!can) {
                    Parity.apply(device, pair[0], "");
                }
            }
        }
        assertEquals(String.join("\n", unexpected), 0, unexpected.size());
        assertTrue(compared + " compared", compared > 400);
    }
}

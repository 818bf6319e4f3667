package dev.muster.agent;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;
import static org.junit.Assert.fail;

import android.app.Notification;
import android.app.NotificationManager;
import android.content.ComponentName;
import android.content.Context;
import android.content.Intent;
import android.content.IntentFilter;
import android.content.pm.PackageInfo;
import android.location.Location;
import android.location.LocationManager;
import android.os.Build;
import android.os.SystemClock;
import android.provider.Settings;
import dev.muster.agent.core.Action;
import dev.muster.agent.core.Command;
import dev.muster.agent.core.DeviceException;
import dev.muster.agent.core.Report;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.junit.Before;
import org.junit.Test;
import org.robolectric.Shadows;
import org.robolectric.shadow.api.Shadow;
import org.robolectric.shadows.ShadowContextImpl;
import org.robolectric.shadows.ShadowNotificationManager;

/** What commands make the device do, and what it reports. */
public final class DeviceTest extends Client {
    private AndroidDevice device;

    @Before
    public void device() {
        device = new AndroidDevice(new Owner(app), files);
    }

    private static Action action(String type, String... namesAndValues) {
        Map<String, Object> args = new HashMap<>();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            args.put(namesAndValues[i], namesAndValues[i + 1]);
        }
        return new Action(type, "c1", args);
    }

    private String refusal(Action a) {
        try {
            return "it answered " + device.act(a);
        } catch (DeviceException e) {
            return e.kind + ": " + e.getMessage();
        }
    }

    @Test
    public void messageIsShownOnceAsText() throws Exception {
        Action a = action(Command.MESSAGE, "title", "<b>Title</b>", "body", "intent:#Intent;end %s");
        assertEquals("shown", device.act(a));
        assertEquals("shown", device.act(a)); // delivered twice
        ShadowNotificationManager shown = Shadows.shadowOf(app.getSystemService(NotificationManager.class));
        assertEquals(1, shown.size());
        Notification n = shown.getNotification("c1", 1);
        assertEquals("<b>Title</b>", n.extras.getCharSequence(Notification.EXTRA_TITLE).toString());
        assertEquals("intent:#Intent;end %s", n.extras.getCharSequence(Notification.EXTRA_TEXT).toString());
        assertNull("a text of the service must not open anything", n.contentIntent);
        boolean asks = Build.VERSION.SDK_INT >= 33;
        assertEquals(asks, fake.took().contains("setPermissionGrantState android.permission.POST_NOTIFICATIONS 1"));
        shown.setNotificationsEnabled(false);
        assertTrue(refusal(a), refusal(a).contains("switched off"));
    }

    /** Android drops an app's 51st notification, and the app is told nothing. */
    @Test
    public void theOldestMessagesMakeRoomForNewOnes() throws Exception {
        ShadowNotificationManager shown = Shadows.shadowOf(app.getSystemService(NotificationManager.class));
        Map<String, Object> args = new HashMap<>();
        args.put("title", "T");
        args.put("body", "B");
        for (int i = 1; i <= 60; i++) {
            SystemClock.setCurrentTimeMillis(SystemClock.uptimeMillis() + 10);
            assertEquals("shown", device.act(new Action(Command.MESSAGE, "m" + i, args)));
        }
        assertEquals("shown", device.act(new Action(Command.MESSAGE, "m60", args))); // delivered twice
        assertEquals("messages", 40, shown.size());
        assertNull("the oldest are gone", shown.getNotification("m20", 1));
        assertNotNull(shown.getNotification("m21", 1));
        assertNotNull(shown.getNotification("m60", 1));
    }

    @Test
    public void launchOpensAnAppOrNamesWhatIsMissing() throws Exception {
        Action evil = action(Command.LAUNCH, "packageName", "../../evil;rm");
        assertTrue(refusal(evil), refusal(evil).startsWith("FAILED: NOT_INSTALLED"));
        String name = "com.example.app";
        Action a = action(Command.LAUNCH, "packageName", name);
        PackageInfo there = new PackageInfo();
        there.packageName = name;
        Shadows.shadowOf(app.getPackageManager()).installPackage(there);
        assertTrue(refusal(a), refusal(a).contains("nothing to open"));
        ComponentName main = new ComponentName(name, name + ".Main");
        Shadows.shadowOf(app.getPackageManager()).addActivityIfNotPresent(main);
        IntentFilter launcher = new IntentFilter(Intent.ACTION_MAIN);
        launcher.addCategory(Intent.CATEGORY_LAUNCHER);
        Shadows.shadowOf(app.getPackageManager()).addIntentFilterForActivity(main, launcher);
        assertEquals("Android was asked to open it", device.act(a));
        assertEquals(main, Shadows.shadowOf(app).getNextStartedActivity().getComponent());
    }

    @Test
    public void restart() throws Exception {
        assertEquals("restarting", device.act(action(Command.REBOOT)));
        assertEquals(Arrays.asList("reboot"), fake.took());
        fake.inCall = true;
        assertEquals("FAILED: Android does not restart during a call", refusal(action(Command.REBOOT)));
    }

    @Test
    public void switchingOffIsUnsupported() {
        assertTrue(refusal(action(Command.SHUTDOWN)).startsWith("UNSUPPORTED"));
    }

    @Test
    public void eraseLiftsItsOwnLockAndIsOnlyOrdered() throws Exception {
        device.apply("FACTORY_RESET", "BLOCK");
        fake.took();
        Action a = action(Command.WIPE);
        assertTrue(refusal(a), refusal(a).startsWith("ORDERED"));
        assertEquals("setUserRestriction no_factory_reset false", fake.took().get(0));
        a.again = true;
        assertTrue(refusal(a), refusal(a).startsWith("ORDERED"));
        String last = fake.took().get(1);
        assertTrue(last, last.startsWith("wipeDataWithReason 0"));
    }

    @Test
    public void eraseAsksForCardAndProtectionDataFirst() {
        refusal(action(Command.WIPE));
        String call = fake.took().get(1);
        assertTrue(call, call.startsWith("wipeDataWithReason 3"));
    }

    @Test
    public void letGoLiftsEveryRestriction() throws Exception {
        fake.restrictions.addAll(Arrays.asList("no_sms", "no_config_wifi", "no_debugging_features"));
        Shadows.shadowOf(app.getPackageManager()).setSystemFeature(Rules.TELEPHONY, true);
        device.apply("CAMERA", "BLOCK");
        assertEquals("released", device.act(action(Command.RELINQUISH)));
        assertTrue(fake.restrictions.toString(), fake.restrictions.isEmpty());
        assertEquals("", device.read("CAMERA"));
        assertTrue("the ownership goes once the service knows", files.leaving());
        assertTrue(fake.owner);
    }

    @Test
    public void aDeviceWithoutWifiTakesPoliciesAndIsReleased() throws Exception {
        Shadows.shadowOf(app.getPackageManager()).setSystemFeature(Rules.WIFI, false);
        ShadowContextImpl context = Shadow.extract(app.getBaseContext());
        context.removeSystemService(Context.WIFI_SERVICE);
        try {
            fail("WIFI_STATE reads as " + device.read("WIFI_STATE"));
        } catch (DeviceException e) { // the agent applies no policy where another kind of refusal comes
            assertEquals(DeviceException.Kind.NOT_APPLICABLE, e.kind);
            assertEquals("this has no meaning on this device: it has no Wi-Fi", e.getMessage());
        }
        assertEquals("released", device.act(action(Command.RELINQUISH)));
    }

    @Test
    public void letGoGoesOnWhereAndroidRefuses() throws Exception {
        fake.restrictions.addAll(Arrays.asList("no_install_apps", "no_debugging_features"));
        fake.refused = "no_install_apps"; // of the first setting
        assertEquals("released", device.act(action(Command.RELINQUISH)));
        assertEquals("[no_install_apps]", fake.restrictions.toString());
    }

    @Test
    public void factsAndCapabilities() throws Exception {
        Settings.Global.putInt(app.getContentResolver(), Settings.Global.BOOT_COUNT, 7);
        assertEquals("boot-7", device.bootId());
        assertEquals((long) Build.VERSION.SDK_INT, device.facts().get("sdk"));
        assertEquals(Build.VERSION.RELEASE, device.facts().get("osVersion"));
        assertTrue(device.capabilities().contains("owner_api"));
        assertFalse("no app can switch a device off", device.capabilities().contains("shutdown"));
    }

    @Test
    public void locationIsFreshOrNone() throws Exception {
        LocationManager manager = app.getSystemService(LocationManager.class);
        Shadows.shadowOf(manager).setLocationEnabled(false);
        assertNull(new Locator(new Owner(app)).report().location);
        assertFalse("nothing is granted for nothing", fake.took().toString().contains("LOCATION"));
        Shadows.shadowOf(manager).setLocationEnabled(true);
        for (String provider : manager.getAllProviders()) {
            Shadows.shadowOf(manager).setProviderEnabled(provider, false);
        }
        Location known = new Location(LocationManager.GPS_PROVIDER);
        known.setLatitude(52.5);
        known.setTime(9_000_000_000_000L); // by the satellites: the device's clock is years off
        known.setElapsedRealtimeNanos(SystemClock.elapsedRealtimeNanos() - 30_000_000_000L);
        Location older = new Location(LocationManager.NETWORK_PROVIDER);
        older.setTime(9_000_000_100_000L);
        older.setElapsedRealtimeNanos(known.getElapsedRealtimeNanos() - 1_000_000_000L);
        Shadows.shadowOf(manager).setLastKnownLocation(LocationManager.NETWORK_PROVIDER, older);
        Shadows.shadowOf(manager).setLastKnownLocation(LocationManager.GPS_PROVIDER, known);
        long before = System.currentTimeMillis();
        Report r = new Locator(new Owner(app)).report();
        long after = System.currentTimeMillis();
        assertNotNull(r.location);
        assertTrue("it is not fresh", r.location.stale);
        assertEquals("the newest", 52.5, r.location.latitude, 0);
        assertTrue("half a minute old", r.location.at >= before - 30_000 && r.location.at <= after - 30_000);
        fake.grants = false;
        try {
            new Locator(new Owner(app)).report();
            fail("without the permission");
        } catch (DeviceException e) {
            assertTrue(e.getMessage(), e.getMessage().contains("declined"));
        }
    }
}

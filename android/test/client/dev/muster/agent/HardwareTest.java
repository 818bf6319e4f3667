package dev.muster.agent;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertTrue;
import static org.junit.Assert.fail;

import android.app.Activity;
import android.app.ActivityManager;
import android.app.AlarmManager;
import android.app.KeyguardManager;
import android.app.NotificationChannel;
import android.app.NotificationManager;
import android.content.ComponentName;
import android.content.Intent;
import android.content.IntentFilter;
import android.content.pm.PackageInfo;
import android.location.LocationManager;
import android.os.Build;
import android.os.PowerManager;
import android.os.SystemClock;
import android.os.UserManager;
import android.provider.Settings;
import android.view.View;
import dev.muster.agent.core.Action;
import dev.muster.agent.core.Command;
import dev.muster.agent.core.DeviceException;
import dev.muster.agent.core.DeviceKey;
import dev.muster.agent.core.KeyStore;
import java.util.HashMap;
import java.util.Map;
import org.junit.After;
import org.junit.Test;
import org.robolectric.Robolectric;
import org.robolectric.Shadows;
import org.robolectric.shadows.ShadowPowerManager;
import org.robolectric.shadows.ShadowUserManager;

/** What real devices do that a test would not think of: crashes, locks, users who said no, screens that are not there. */
public final class HardwareTest extends Client {
    private static final Intent BATTERY = new Intent(Settings.ACTION_REQUEST_IGNORE_BATTERY_OPTIMIZATIONS);

    private AndroidDevice device() {
        return new AndroidDevice(new Owner(app), files);
    }

    private static Action message() {
        Map<String, Object> args = new HashMap<>();
        args.put("title", "T");
        args.put("body", "B");
        return new Action(Command.MESSAGE, "c1", args);
    }

    private static String refusal(AndroidDevice device, Action a) {
        try {
            return device.act(a);
        } catch (DeviceException e) {
            return e.kind + ": " + e.getMessage();
        }
    }

    private void unlocked(boolean is) {
        fake.locked = !is;
        Shadows.shadowOf(app.getSystemService(UserManager.class)).setUserUnlocked(is);
    }

    @After
    public void screen() {
        ShadowUserManager.setHeadlessSystemUserMode(false);
    }

    @Test
    public void aCrashIsKeptAndAnAlarmStartsTheAgentAgain() throws Exception {
        Thread.UncaughtExceptionHandler crashes = Thread.getDefaultUncaughtExceptionHandler();
        assertTrue(String.valueOf(crashes), crashes instanceof Crashes);
        Alarms.schedule(app);
        crashes.uncaughtException(new Thread("okhttp"), new IllegalStateException("closed\nunder it"));
        assertTrue(files.crash(), files.crash().startsWith("the thread okhttp: java.lang.IllegalStateException: closed under it at "));
        assertTrue(alarm() + " ms", alarm() <= 60_000);
        fake.owner = false; // given back: nothing is to be started
        Alarms.schedule(app);
        crashes.uncaughtException(new Thread("main"), new OutOfMemoryError());
        assertTrue(alarm() + " ms", alarm() > 60_000);
    }

    /** alarm is when the next one is due, in milliseconds from now. */
    private long alarm() {
        return Shadows.shadowOf(app.getSystemService(AlarmManager.class)).peekNextScheduledAlarm()
                .triggerAtTime - SystemClock.elapsedRealtime();
    }

    @Test
    public void anErrorDoesNotEndTheAgentsThread() throws Exception {
        enrolled(app);
        final int[] attempts = new int[1];
        Keeper keeper = new Keeper(app, new KeyStore() {
            @Override
            public DeviceKey key(String name) {
                attempts[0]++;
                throw new StackOverflowError("of the Keystore");
            }

            @Override
            public DeviceKey create(String name) {
                return null;
            }

            @Override
            public void delete(String name) {}
        });
        keeper.start();
        until(() -> {
            keeper.hint();
            return attempts[0] >= 2 && !files.crash().isEmpty();
        });
        assertTrue(attempts[0] + " times", attempts[0] >= 2);
        assertTrue(files.crash(), files.crash().startsWith("the agent: java.lang.StackOverflowError: of the Keystore"));
    }

    @Test
    public void aPasswordCannotBeReadBeforeTheFirstUnlock() throws Exception {
        AndroidDevice device = device();
        fake.passwordSet = true;
        device.apply("ENCRYPTION_POLICY", "ENABLED_WITH_PASSWORD");
        assertEquals("ENABLED_WITH_PASSWORD", device.read("ENCRYPTION_POLICY"));
        unlocked(false);
        try {
            device.read("ENCRYPTION_POLICY");
            fail("it was read");
        } catch (DeviceException e) {
            assertEquals(DeviceException.Kind.LOCKED, e.kind);
        }
        device.apply("ENCRYPTION_POLICY", ""); // nothing is demanded: there is nothing to wait for
        assertEquals("ENABLED_WITHOUT_PASSWORD", device.read("ENCRYPTION_POLICY"));
    }

    @Test
    public void theOwnershipGoesAfterTheFirstUnlock() throws Exception {
        unlocked(false);
        files.beginLeaving();
        Keeper keeper = new Keeper(app, new Keys());
        keeper.start();
        until(() -> !keeper.trouble().isEmpty());
        assertEquals("the device was not unlocked since its start", keeper.trouble());
        assertTrue(fake.owner && files.leaving());
        unlocked(true);
        until(() -> {
            keeper.hint();
            return !fake.owner && !files.leaving();
        });
        assertFalse(fake.owner || files.leaving());
    }

    @Test
    public void anAlarmKeepsTheDeviceAwakeUntilTheAgentDoes() {
        ShadowPowerManager.clearWakeLocks();
        new WakeReceiver().onReceive(app, new Intent(WakeReceiver.WAKE));
        PowerManager.WakeLock lock = ShadowPowerManager.getLatestWakeLock();
        assertNotNull(lock);
        assertTrue(lock.isHeld());
        WakeLocks.Held held = new WakeLocks(app).hold(1000);
        PowerManager.WakeLock work = ShadowPowerManager.getLatestWakeLock();
        assertTrue(work.isHeld());
        held.close();
        held.close();
        assertFalse(work.isHeld());
    }

    @Test
    public void aMessageIsShownOnlyWhereItIsShown() throws Exception {
        NotificationManager manager = app.getSystemService(NotificationManager.class);
        assertEquals("shown", refusal(device(), message()));
        Shadows.shadowOf(app.getSystemService(ActivityManager.class)).setLockTaskModeState(ActivityManager.LOCK_TASK_MODE_LOCKED);
        assertEquals("posted; a kiosk may not show it", refusal(device(), message()));
        Shadows.shadowOf(app.getSystemService(ActivityManager.class)).setLockTaskModeState(ActivityManager.LOCK_TASK_MODE_NONE);
        Shadows.shadowOf(app.getPackageManager()).setSystemFeature(Rules.HEADSET, true);
        assertEquals("posted; a headset may not show it", refusal(device(), message()));
        manager.deleteNotificationChannel("messages");
        manager.createNotificationChannel(new NotificationChannel("messages", "M", NotificationManager.IMPORTANCE_NONE));
        assertEquals("FAILED: messages of this app are switched off on the device", refusal(device(), message()));
    }

    @Test
    public void anAppIsAskedForAndNotSaidToBeOpen() throws Exception {
        String name = "com.example.app";
        PackageInfo there = new PackageInfo();
        there.packageName = name;
        Shadows.shadowOf(app.getPackageManager()).installPackage(there);
        ComponentName main = new ComponentName(name, name + ".Main");
        Shadows.shadowOf(app.getPackageManager()).addActivityIfNotPresent(main);
        IntentFilter launcher = new IntentFilter(Intent.ACTION_MAIN);
        launcher.addCategory(Intent.CATEGORY_LAUNCHER);
        Shadows.shadowOf(app.getPackageManager()).addIntentFilterForActivity(main, launcher);
        Action open = new Action(Command.LAUNCH, "c1", new HashMap<>(java.util.Collections.singletonMap("packageName", name)));
        assertEquals("Android was asked to open it", refusal(device(), open));
        Shadows.shadowOf(app.getSystemService(KeyguardManager.class)).setKeyguardLocked(true);
        assertEquals("Android was asked to open it; the screen is locked", refusal(device(), open));
    }

    @Test
    public void theBatteryButtonIsThereOnlyWithItsScreen() throws Exception {
        enrolled(app);
        Shadows.shadowOf(app).checkActivities(true);
        assertFalse(Battery.canAsk(app));
        StatusActivity screen = Robolectric.buildActivity(StatusActivity.class).setup().get();
        assertEquals(View.GONE, screen.findViewById(R.id.battery).getVisibility());
        screen.findViewById(R.id.battery).performClick(); // it was there a moment ago
        assertFalse(screen.isFinishing());
        Activity last = Robolectric.buildActivity(ComplianceActivity.class, new Intent()).create().get();
        assertTrue("the setup goes on", last.isFinishing());
    }

    @Test
    public void theSetupAsksForTheExemptionOnce() throws Exception {
        ComponentName settings = new ComponentName("com.android.settings", "Exemption");
        Shadows.shadowOf(app.getPackageManager()).addActivityIfNotPresent(settings);
        IntentFilter asks = new IntentFilter(BATTERY.getAction());
        asks.addDataScheme("package");
        asks.addCategory(Intent.CATEGORY_DEFAULT);
        Shadows.shadowOf(app.getPackageManager()).addIntentFilterForActivity(settings, asks);
        Activity last = Robolectric.buildActivity(ComplianceActivity.class, new Intent()).create().get();
        assertFalse("it waits for the answer", last.isFinishing());
        Intent request = Shadows.shadowOf(last).getNextStartedActivity();
        assertEquals(BATTERY.getAction(), request.getAction());
        assertEquals("package:dev.muster.agent", request.getDataString());
        Shadows.shadowOf(last).receiveResult(request, Activity.RESULT_CANCELED, null);
        assertTrue("whatever the answer is", last.isFinishing());
        assertEquals(Activity.RESULT_OK, Shadows.shadowOf(last).getResultCode());
    }

    @Test
    public void aLocationThatWasDeclinedAtSetupIsSeenOnceTheUserAllowsIt() throws Exception {
        Shadows.shadowOf(app.getSystemService(LocationManager.class)).setLocationEnabled(true);
        fake.grants = false; // from API 34 on Android throws, before it says no
        try {
            new Locator(new Owner(app)).report();
            fail("without the permission");
        } catch (DeviceException e) {
            assertTrue(e.getMessage(), e.getMessage().contains("declined at setup"));
        }
        Shadows.shadowOf(app).grantPermissions("android.permission.ACCESS_FINE_LOCATION", "android.permission.ACCESS_BACKGROUND_LOCATION");
        for (String provider : app.getSystemService(LocationManager.class).getAllProviders()) {
            Shadows.shadowOf(app.getSystemService(LocationManager.class)).setProviderEnabled(provider, false);
        }
        fake.took();
        assertNotNull(new Locator(new Owner(app)).report());
        assertTrue("nothing is asked for that is there", fake.took().isEmpty());
    }

    /** Where the first user has no screen, the app manages the device and does not claim to show anything. */
    @Test
    public void aUserWithoutScreenHasNoMessages() throws Exception {
        ShadowUserManager.setHeadlessSystemUserMode(true);
        boolean headless = Build.VERSION.SDK_INT >= 31;
        assertEquals(!headless, device().capabilities().contains("notify"));
        assertEquals(!headless, device().capabilities().contains("launch"));
        assertTrue(device().capabilities().contains("reboot"));
        assertEquals(headless, refusal(device(), message()).startsWith("UNSUPPORTED"));
    }
}

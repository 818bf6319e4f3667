package dev.muster.agent;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;

import android.app.Activity;
import android.app.AlarmManager;
import android.app.admin.DeviceAdminReceiver;
import android.app.admin.DevicePolicyManager;
import android.content.ComponentName;
import android.content.Intent;
import android.os.PersistableBundle;
import java.util.ArrayList;
import java.util.Arrays;
import org.junit.Test;
import org.robolectric.Robolectric;
import org.robolectric.Shadows;

/** The steps of Android's setup wizard, each with the code and in any order. */
public final class ProvisioningTest extends Client {
    private static Intent step(String action) {
        PersistableBundle extras = new PersistableBundle();
        extras.putString("dev.muster.agent.SERVER_URL", "https://muster.example");
        extras.putString("dev.muster.agent.ENROLLMENT_TOKEN", "met_secret");
        extras.putInt("another", 1);
        return new Intent(action).putExtra(DevicePolicyManager.EXTRA_PROVISIONING_ADMIN_EXTRAS_BUNDLE, extras);
    }

    private void kept() throws Exception {
        assertEquals("https://muster.example", files.code().server);
        assertEquals("met_secret", files.code().token);
    }

    @Test
    public void modeIsFullyManaged() throws Exception {
        fake.owner = false; // not yet
        Intent request = step(DevicePolicyManager.ACTION_GET_PROVISIONING_MODE)
                .putIntegerArrayListExtra(DevicePolicyManager.EXTRA_PROVISIONING_ALLOWED_PROVISIONING_MODES,
                new ArrayList<>(Arrays.asList(2, 1)));
        Activity a = Robolectric.buildActivity(ModeActivity.class, request).create().get();
        assertEquals(Activity.RESULT_OK, Shadows.shadowOf(a).getResultCode());
        assertEquals(1, Shadows.shadowOf(a).getResultIntent().getIntExtra(DevicePolicyManager.EXTRA_PROVISIONING_MODE, 0));
        assertTrue(a.isFinishing());
        kept();
    }

    @Test
    public void anotherModeIsDeclined() throws Exception {
        Intent request = step(DevicePolicyManager.ACTION_GET_PROVISIONING_MODE)
                .putIntegerArrayListExtra(DevicePolicyManager.EXTRA_PROVISIONING_ALLOWED_PROVISIONING_MODES,
                new ArrayList<>(Arrays.asList(2)));
        Activity a = Robolectric.buildActivity(ModeActivity.class, request).create().get();
        assertEquals(Activity.RESULT_CANCELED, Shadows.shadowOf(a).getResultCode());
        assertNull(files.code());
    }

    @Test
    public void complianceStartsTheAgent() throws Exception {
        fake.owner = false;
        Activity a = Robolectric.buildActivity(ComplianceActivity.class, step(DevicePolicyManager.ACTION_ADMIN_POLICY_COMPLIANCE))
                .create().get();
        done(a);
    }

    @Test
    public void olderAndroidEndsWithProvisioned() throws Exception {
        fake.owner = false;
        Activity a = Robolectric.buildActivity(ProvisionedActivity.class, step(DevicePolicyManager.ACTION_PROVISIONING_SUCCESSFUL))
                .create().get();
        done(a);
    }

    private void done(Activity a) throws Exception {
        assertEquals(Activity.RESULT_OK, Shadows.shadowOf(a).getResultCode());
        assertTrue(a.isFinishing());
        kept();
        assertNotNull("no alarm is set", Shadows.shadowOf(app.getSystemService(AlarmManager.class)).peekNextScheduledAlarm());
    }

    @Test
    public void receiverTakesTheCodeToo() throws Exception {
        fake.owner = false;
        Intent complete = step(DeviceAdminReceiver.ACTION_PROFILE_PROVISIONING_COMPLETE)
                .setComponent(new ComponentName(app, AdminReceiver.class));
        app.sendBroadcast(complete);
        Shadows.shadowOf(app.getMainLooper()).idle();
        kept();
    }

    @Test
    public void withoutCodeTheOwnerWaits() throws Exception {
        new AdminReceiver().onEnabled(app, new Intent());
        assertNull(files.code());
        assertEquals(Keeper.State.WAITING, MusterApp.keeper(app).state());
    }

    @Test
    public void anEnrolledDeviceTakesNoOtherCode() throws Exception {
        enrolled(app);
        Provisioning.take(app, step(DevicePolicyManager.ACTION_GET_PROVISIONING_MODE));
        assertNull(files.code());
    }
}

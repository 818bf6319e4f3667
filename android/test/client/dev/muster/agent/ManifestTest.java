package dev.muster.agent;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertTrue;

import android.app.admin.DeviceAdminInfo;
import android.content.ComponentName;
import android.content.Intent;
import android.content.pm.ApplicationInfo;
import android.content.pm.PackageManager;
import android.content.pm.ProviderInfo;
import android.content.pm.ResolveInfo;
import android.os.Build;
import java.util.List;
import org.junit.Test;

/** The app's own manifest as the framework reads it. */
public final class ManifestTest extends Client {
    @Test
    public void theAdminAsksForFourPolicies() throws Exception {
        Intent enabled = new Intent("android.app.action.DEVICE_ADMIN_ENABLED").setComponent(new ComponentName(app, AdminReceiver.class));
        List<ResolveInfo> found = app.getPackageManager().queryBroadcastReceivers(enabled, PackageManager.GET_META_DATA);
        assertEquals(1, found.size());
        assertEquals("android.permission.BIND_DEVICE_ADMIN", found.get(0).activityInfo.permission);
        DeviceAdminInfo info = new DeviceAdminInfo(app, found.get(0));
        assertTrue(info.usesPolicy(DeviceAdminInfo.USES_POLICY_WIPE_DATA));
        assertTrue(info.usesPolicy(DeviceAdminInfo.USES_POLICY_LIMIT_PASSWORD));
        assertTrue(info.usesPolicy(DeviceAdminInfo.USES_POLICY_FORCE_LOCK));
        assertTrue(info.usesPolicy(DeviceAdminInfo.USES_POLICY_DISABLE_CAMERA));
        assertEquals("no other policy", 4, info.getUsedPolicies().size());
        if (Build.VERSION.SDK_INT >= 34) {
            assertEquals(DeviceAdminInfo.HEADLESS_DEVICE_OWNER_MODE_AFFILIATED, info.getHeadlessDeviceOwnerMode());
        }
    }

    @Test
    public void theWizardFindsItsSteps() {
        for (String action : new String[] {"GET_PROVISIONING_MODE", "ADMIN_POLICY_COMPLIANCE", "PROVISIONING_SUCCESSFUL"}) {
            List<ResolveInfo> found = app.getPackageManager().queryIntentActivities(
                    new Intent("android.app.action." + action).addCategory(Intent.CATEGORY_DEFAULT).setPackage(app.getPackageName()), 0);
            assertEquals(action, 1, found.size());
            assertEquals("android.permission.BIND_DEVICE_ADMIN", found.get(0).activityInfo.permission);
        }
    }

    @Test
    public void theProcessWorksBeforeTheFirstUnlock() throws Exception {
        ApplicationInfo info = app.getApplicationInfo();
        assertEquals(35, info.targetSdkVersion);
        assertEquals(0, info.flags
                & (ApplicationInfo.FLAG_ALLOW_BACKUP | ApplicationInfo.FLAG_DEBUGGABLE | ApplicationInfo.FLAG_TEST_ONLY));
        ProviderInfo provider = app.getPackageManager().resolveContentProvider("dev.muster.agent.enroll", 0);
        assertNotNull(provider);
        assertEquals("android.permission.DUMP", provider.writePermission);
        assertEquals("android.permission.DUMP", provider.readPermission);
        assertFalse(files.log.getPath().isEmpty());
    }
}

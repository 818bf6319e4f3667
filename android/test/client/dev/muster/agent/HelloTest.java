package dev.muster.agent;

import static org.junit.Assert.assertEquals;

import android.app.admin.DevicePolicyManager;
import android.content.ComponentName;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.annotation.Config;

@RunWith(RobolectricTestRunner.class)
@Config(sdk = {28, 33, 35}, shadows = RealDevicePolicyManager.class)
public final class HelloTest {
    @Test
    public void cameraCallReachesTheService() throws Exception {
        FakeDpms fake = FakeDpms.install();
        DevicePolicyManager dpm = RuntimeEnvironment.getApplication().getSystemService(DevicePolicyManager.class);
        dpm.setCameraDisabled(new ComponentName("dev.muster.agent", "dev.muster.agent.AdminReceiver"), true);
        assertEquals(1, fake.calls.size());
    }
}

package dev.muster.agent;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;
import static org.junit.Assert.fail;

import android.content.Context;
import android.net.wifi.WifiManager;
import dev.muster.agent.core.Action;
import dev.muster.agent.core.Command;
import dev.muster.agent.core.DeviceException;
import java.util.HashMap;
import org.junit.Before;
import org.junit.Test;
import org.robolectric.Shadows;
import org.robolectric.annotation.Config;

/** Who switches Wi-Fi: the policy, its user, or Android, which refuses in airplane mode and for a hotspot. */
@Config(shadows = FixedWifi.class)
public final class WifiTest extends Client {
    private AndroidDevice device;
    private WifiManager wifi;

    @Before
    public void device() {
        Shadows.shadowOf(app.getPackageManager()).setSystemFeature("android.hardware.wifi", true);
        Shadows.shadowOf(app.getPackageManager()).setSystemFeature(Rules.TELEPHONY, true);
        device = new AndroidDevice(new Owner(app), files);
        wifi = (WifiManager) app.getSystemService(Context.WIFI_SERVICE);
        FixedWifi.fixed = false;
    }

    private String release() throws DeviceException {
        FixedWifi.asked = 0;
        return device.act(new Action(Command.RELINQUISH, "c1", new HashMap<>()));
    }

    @Test
    public void theUsersWifiStaysAsItIs() throws Exception {
        wifi.setWifiEnabled(false);
        assertEquals("released", release());
        device.apply("WIFI_STATE", "DISABLED"); // as it was
        assertEquals("released", release());
        assertFalse(wifi.isWifiEnabled());
        assertEquals("times asked", 0, FixedWifi.asked);
    }

    @Test
    public void whatThePolicySwitchedOffIsSwitchedOn() throws Exception {
        wifi.setWifiEnabled(true);
        device.apply("WIFI_STATE", "DISABLED");
        device = new AndroidDevice(new Owner(app), files); // of another process
        device.apply("WIFI_STATE", "DISABLED"); // again, as a repair does
        assertFalse(wifi.isWifiEnabled());
        assertEquals("released", release());
        assertTrue(wifi.isWifiEnabled());
        wifi.setWifiEnabled(false); // by the user
        assertEquals("released", release());
        assertFalse(wifi.isWifiEnabled());
    }

    @Test
    public void aRefusalHoldsBackNoRelease() throws Exception {
        wifi.setWifiEnabled(true);
        device.apply("WIFI_STATE", "DISABLED");
        FixedWifi.fixed = true;
        assertEquals("released", release());
        assertEquals("times asked", 1, FixedWifi.asked);
        try {
            device.apply("WIFI_STATE", "ENABLED");
            fail("it was not switched on");
        } catch (DeviceException e) {
            assertEquals("Android did not switch Wi-Fi", e.getMessage());
        }
    }
}

package dev.muster.agent;

import android.net.wifi.WifiManager;
import org.robolectric.annotation.Implementation;
import org.robolectric.annotation.Implements;
import org.robolectric.shadows.ShadowWifiManager;

/** FixedWifi does not switch Wi-Fi while it is fixed, as Android does not in airplane mode. */
@Implements(WifiManager.class)
public final class FixedWifi extends ShadowWifiManager {
    static boolean fixed;
    static int asked; // how often it was to be switched

    @Override
    @Implementation
    protected boolean setWifiEnabled(boolean on) {
        asked++;
        return !fixed && super.setWifiEnabled(on);
    }
}

package dev.muster.agent;

import android.app.admin.DevicePolicyManager;

/** Since33 makes the calls that Android has from API 33 (Android 13) on. */
final class Since33 {
    private Since33() {}

    static void setPersonalWifi(DevicePolicyManager dpm, boolean demand) {
        dpm.setMinimumRequiredWifiSecurityLevel(
                demand ? DevicePolicyManager.WIFI_SECURITY_PERSONAL : DevicePolicyManager.WIFI_SECURITY_OPEN);
    }

    static boolean personalWifi(DevicePolicyManager dpm) {
        return dpm.getMinimumRequiredWifiSecurityLevel() >= DevicePolicyManager.WIFI_SECURITY_PERSONAL;
    }
}

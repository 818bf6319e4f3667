package dev.muster.agent;

import android.app.admin.DevicePolicyManager;

/** Since33 makes the calls that Android has from API 33 (Android 13) on. */
final class Since33 {
    private Since33() {}

    /** setPersonalWifi sets whether the device joins only Wi-Fi networks with a password or better security. */
    static void setPersonalWifi(DevicePolicyManager dpm, boolean required) {
        dpm.setMinimumRequiredWifiSecurityLevel(
                required ? DevicePolicyManager.WIFI_SECURITY_PERSONAL : DevicePolicyManager.WIFI_SECURITY_OPEN);
    }

    /** personalWifi reports whether setPersonalWifi is in effect. Enterprise security counts as well. */
    static boolean personalWifi(DevicePolicyManager dpm) {
        return dpm.getMinimumRequiredWifiSecurityLevel() >= DevicePolicyManager.WIFI_SECURITY_PERSONAL;
    }
}

package dev.muster.agent;

import android.app.admin.DevicePolicyManager;

/** Since34 makes the calls that Android has from API 34 (Android 14) on. */
final class Since34 {
    private Since34() {}

    /** wipe erases the device. From API 34 on, Android refuses wipeData to a device owner. */
    static void wipe(DevicePolicyManager dpm, int flags) {
        dpm.wipeDevice(flags);
    }
}

package dev.muster.agent;

import android.app.admin.DevicePolicyManager;

/** Since34 makes the calls that Android has from API 34 (Android 14) on. */
final class Since34 {
    private Since34() {}

    /** wipe erases the device. wipeData is refused from this level on. */
    static void wipe(DevicePolicyManager dpm, int flags) {
        dpm.wipeDevice(flags);
    }
}

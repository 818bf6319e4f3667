package dev.muster.agent;

import android.app.admin.DevicePolicyManager;
import android.os.UserManager;

/** Since31 makes the calls that Android has from API 31 (Android 12) on. */
final class Since31 {
    private Since31() {}

    static void demandPassword(DevicePolicyManager dpm, boolean demand) {
        dpm.setRequiredPasswordComplexity(
                demand ? DevicePolicyManager.PASSWORD_COMPLEXITY_LOW : DevicePolicyManager.PASSWORD_COMPLEXITY_NONE);
    }

    static boolean headless() {
        return UserManager.isHeadlessSystemUserMode();
    }

    static boolean passwordDemanded(DevicePolicyManager dpm) {
        return dpm.getRequiredPasswordComplexity() != DevicePolicyManager.PASSWORD_COMPLEXITY_NONE;
    }
}

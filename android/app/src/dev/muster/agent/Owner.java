package dev.muster.agent;

import android.app.admin.DevicePolicyManager;
import android.content.ComponentName;
import android.content.Context;
import android.content.pm.PackageManager;
import android.os.Build;
import android.os.Bundle;
import android.os.UserManager;
import android.provider.Settings;
import dev.muster.agent.core.DeviceException;

/** Owner is the device owner's access to the framework. */
final class Owner {
    final Context context;
    final DevicePolicyManager dpm;
    final ComponentName admin;
    /** sdk is the device's API level. */
    final int sdk = Build.VERSION.SDK_INT;

    Owner(Context context) {
        this.context = context;
        dpm = context.getSystemService(DevicePolicyManager.class);
        admin = new ComponentName(context, AdminReceiver.class);
    }

    /** owns reports whether this app is the device owner. */
    boolean owns() {
        return dpm.isDeviceOwnerApp(context.getPackageName());
    }

    /** has reports whether the device has one of Android's system features. */
    boolean has(String feature) {
        return context.getPackageManager().hasSystemFeature(feature);
    }

    /** restrict sets or lifts a user restriction. */
    void restrict(String key, boolean on) {
        if (on) {
            dpm.addUserRestriction(admin, key);
        } else {
            dpm.clearUserRestriction(admin, key);
        }
    }

    /** restricted reports whether this app has set the user restriction. */
    boolean restricted(String key) {
        Bundle set = dpm.getUserRestrictions(admin);
        return set != null && set.getBoolean(key);
    }

    /** global reads one of Android's global settings that is a number. */
    int global(String name) {
        return Settings.Global.getInt(context.getContentResolver(), name, 0);
    }

    /**
     * grant gives this app one of its own permissions, and reports whether it has it. Android refuses an owner
     * what the user declined at setup; below API 34 it says no, from there on it throws. The user may have granted
     * it since.
     */
    boolean grant(String permission) {
        if (context.checkSelfPermission(permission) == PackageManager.PERMISSION_GRANTED) {
            return true;
        }
        try {
            return dpm.setPermissionGrantState(admin, context.getPackageName(), permission,
                    DevicePolicyManager.PERMISSION_GRANT_STATE_GRANTED);
        } catch (SecurityException declined) {
            return false;
        }
    }

    /** unlocked reports whether the user has unlocked the device since its start. */
    boolean unlocked() {
        return context.getSystemService(UserManager.class).isUserUnlocked();
    }

    /** headless reports whether Android runs this app in a user that has no screen. */
    boolean headless() {
        return sdk >= 31 && Since31.headless();
    }

    /** giveUp ends the ownership, and with it all that only an owner may hold. Android refuses that before the first unlock. */
    @SuppressWarnings("deprecation") // there is no other way out but a factory reset
    void giveUp() throws DeviceException {
        if (!unlocked()) {
            throw DeviceException.locked();
        }
        dpm.clearDeviceOwnerApp(context.getPackageName());
    }
}

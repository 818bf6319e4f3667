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

/** Owner calls Android as its device owner. */
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

    /** restrict sets or lifts a user restriction: key is the value of a constant UserManager.DISALLOW_*. */
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

    /** global reads a number of Settings.Global; 0 where it is not set. */
    int global(String name) {
        return Settings.Global.getInt(context.getContentResolver(), name, 0);
    }

    /**
     * grant gives this app one of its own permissions, and reports whether the app has it. Android refuses the owner
     * a permission that the user declined at setup: below API 34 by returning false, from there on by an exception.
     * The user can grant it later in the device's settings.
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

    /**
     * giveUp ends the ownership; Android then lifts all restrictions. Before the first unlock Android refuses that, and
     * giveUp throws DeviceException.locked.
     */
    @SuppressWarnings("deprecation") // a factory reset is the only other way
    void giveUp() throws DeviceException {
        if (!unlocked()) {
            throw DeviceException.locked();
        }
        dpm.clearDeviceOwnerApp(context.getPackageName());
    }
}

package dev.muster.agent;

import android.app.admin.DevicePolicyManager;
import android.content.ComponentName;
import android.content.Context;
import android.os.Build;
import android.os.Bundle;
import android.provider.Settings;

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

    /** grant gives this app one of its own permissions, and reports whether it has it. */
    boolean grant(String permission) {
        return dpm.setPermissionGrantState(admin, context.getPackageName(), permission, DevicePolicyManager.PERMISSION_GRANT_STATE_GRANTED);
    }

    /** giveUp ends the ownership, and with it all that only an owner may hold. */
    @SuppressWarnings("deprecation") // there is no other way out but a factory reset
    void giveUp() {
        dpm.clearDeviceOwnerApp(context.getPackageName());
    }
}

package dev.muster.agent;

import android.app.admin.DeviceAdminReceiver;
import android.content.Context;
import android.content.Intent;

/** AdminReceiver receives what Android reports to the device owner. */
public final class AdminReceiver extends DeviceAdminReceiver {
    /** onEnabled comes once this app is the owner, also by adb, where there is no code yet. */
    @Override
    public void onEnabled(Context context, Intent intent) {
        MusterApp.keeper(context).start();
        Alarms.schedule(context);
    }

    @Override
    public void onProfileProvisioningComplete(Context context, Intent intent) {
        Provisioning.take(context, intent);
        MusterApp.keeper(context).start();
        Alarms.schedule(context);
    }
}

package dev.muster.agent;

import android.app.admin.DeviceAdminReceiver;

/** AdminReceiver receives what Android tells the device owner. */
public final class AdminReceiver extends DeviceAdminReceiver {
}

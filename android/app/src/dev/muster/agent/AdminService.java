package dev.muster.agent;

import android.app.admin.DeviceAdminService;

/**
 * AdminService has Android keep the process: it binds to the owner's service, and again after a crash.
 * That is what the wake stream lives on; there is no notification and no foreground service.
 */
public final class AdminService extends DeviceAdminService {
    @Override
    public void onCreate() {
        super.onCreate();
        MusterApp.keeper(this).start();
        Alarms.schedule(this);
    }
}

package dev.muster.agent;

import android.app.ActivityManager;
import android.app.KeyguardManager;
import android.app.Notification;
import android.app.NotificationChannel;
import android.app.NotificationManager;
import android.app.admin.DevicePolicyManager;
import android.content.ActivityNotFoundException;
import android.content.Intent;
import android.content.pm.PackageManager;
import android.service.notification.StatusBarNotification;
import dev.muster.agent.core.Action;
import dev.muster.agent.core.Command;
import dev.muster.agent.core.DeviceException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;

/** Actions does what commands make the device do. Text of the service is shown or looked up, never parsed. */
final class Actions {
    private static final String CHANNEL = "messages";
    private static final int MESSAGE = 1;
    /** MAX_SHOWN is how many messages are shown at once: Android drops an app's 51st notification without an error. */
    private static final int MAX_SHOWN = 40;

    private final Owner owner;
    private final AndroidDevice device;
    private final StateFiles files;

    Actions(Owner owner, AndroidDevice device, StateFiles files) {
        this.owner = owner;
        this.device = device;
        this.files = files;
    }

    String act(Action a) throws DeviceException {
        switch (a.type) {
            case Command.MESSAGE:
                return show(a);
            case Command.LAUNCH:
                return open(a.text("packageName"));
            case Command.REBOOT:
                return restart();
            case Command.WIPE:
                throw erase(a.again);
            case Command.RELINQUISH:
                return letGo();
            default: // Android offers a device owner no way to switch off
                throw DeviceException.unsupported("");
        }
    }

    /** show posts a notification. Its tag is the command's id: a second delivery replaces the first. */
    private String show(Action a) throws DeviceException {
        if (owner.headless()) {
            throw DeviceException.unsupported("the app runs in a user that has no screen");
        }
        String title = a.text("title");
        String body = a.text("body");
        if (owner.sdk >= 33) {
            owner.grant("android.permission.POST_NOTIFICATIONS");
        }
        NotificationManager manager = owner.context.getSystemService(NotificationManager.class);
        manager.createNotificationChannel(new NotificationChannel(CHANNEL, owner.context.getString(R.string.messages),
                NotificationManager.IMPORTANCE_HIGH));
        if (!manager.areNotificationsEnabled()) {
            throw DeviceException.failed("notifications of this app are switched off on the device");
        }
        if (manager.getNotificationChannel(CHANNEL).getImportance() == NotificationManager.IMPORTANCE_NONE) {
            throw DeviceException.failed("messages of this app are switched off on the device");
        }
        makeRoom(manager, a.commandId);
        manager.notify(a.commandId, MESSAGE, new Notification.Builder(owner.context, CHANNEL).setSmallIcon(R.drawable.icon)
                .setContentTitle(title).setContentText(body).setStyle(new Notification.BigTextStyle().bigText(body))
                .setAutoCancel(true).build());
        return posted();
    }

    /** makeRoom removes the oldest messages where the one of a command would be one too many. */
    private static void makeRoom(NotificationManager manager, String commandId) {
        List<StatusBarNotification> shown = new ArrayList<>();
        for (StatusBarNotification n : manager.getActiveNotifications()) {
            if (n.getId() == MESSAGE && n.getTag() != null && !n.getTag().equals(commandId)) {
                shown.add(n);
            }
        }
        Collections.sort(shown, new Comparator<StatusBarNotification>() {
            @Override
            public int compare(StatusBarNotification one, StatusBarNotification other) {
                return Long.compare(one.getPostTime(), other.getPostTime());
            }
        });
        for (int i = 0; i <= shown.size() - MAX_SHOWN; i++) {
            manager.cancel(shown.get(i).getTag(), MESSAGE);
        }
    }

    /** posted is what is known of a message that Android has taken: not every device shows notifications. */
    private String posted() {
        if (owner.context.getSystemService(ActivityManager.class).getLockTaskModeState() != ActivityManager.LOCK_TASK_MODE_NONE) {
            return "posted; a kiosk may not show it";
        }
        return owner.has(Rules.HEADSET) ? "posted; a headset may not show it" : "shown";
    }

    /** open asks Android to open an app. Whether it does, an app is not told: some makers drop what comes from the background. */
    private String open(String name) throws DeviceException {
        if (owner.headless()) {
            throw DeviceException.unsupported("the app runs in a user that has no screen");
        }
        PackageManager packages = owner.context.getPackageManager();
        try {
            packages.getPackageInfo(name, 0);
        } catch (PackageManager.NameNotFoundException e) {
            throw DeviceException.failed("NOT_INSTALLED: " + Collector.oneLine(name) + " is not installed");
        }
        Intent start = packages.getLaunchIntentForPackage(name);
        if (start == null) {
            throw DeviceException.failed(name + " has nothing to open");
        }
        try {
            owner.context.startActivity(start.addFlags(Intent.FLAG_ACTIVITY_NEW_TASK));
        } catch (ActivityNotFoundException e) {
            throw DeviceException.failed("cannot open " + name + ": its activity is gone");
        } catch (SecurityException e) {
            throw DeviceException.failed("cannot open " + name + ": it does not let other apps open it");
        }
        boolean locked = owner.context.getSystemService(KeyguardManager.class).isKeyguardLocked();
        return locked ? "Android was asked to open it; the screen is locked" : "Android was asked to open it";
    }

    private String restart() throws DeviceException {
        try {
            owner.dpm.reboot(owner.admin);
        } catch (IllegalStateException e) {
            throw DeviceException.failed("Android does not restart during a call");
        }
        return "restarting";
    }

    /**
     * erase orders a factory reset. That Android takes the order proves nothing, so what it returns is never
     * that the device is erased. The second time it asks for less: a card or the protection data may be what
     * could not be erased.
     */
    private DeviceException erase(boolean again) {
        owner.restrict("no_factory_reset", false);
        int flags = again ? 0 : DevicePolicyManager.WIPE_EXTERNAL_STORAGE | DevicePolicyManager.WIPE_RESET_PROTECTION_DATA;
        if (owner.sdk >= 34) {
            Since34.wipe(owner.dpm, flags);
        } else {
            owner.dpm.wipeData(flags);
        }
        return DeviceException.ordered();
    }

    /**
     * letGo lifts every restriction there is, known or not. What Android does not let it lift holds back nothing else:
     * the agent asks again for what the policy set, and Android lifts the rest with the ownership. The ownership goes once
     * the service knows: see Keeper.
     */
    private String letGo() throws DeviceException {
        files.beginLeaving();
        DeviceException failed = null;
        for (String setting : device.settings()) {
            try {
                device.apply(setting, "");
            } catch (DeviceException e) {
                failed = e.forGood() ? failed : e;
            } catch (RuntimeException refused) {
                continue;
            }
        }
        if (failed != null) {
            throw failed;
        }
        return "released";
    }
}

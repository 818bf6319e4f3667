package dev.muster.agent;

import android.content.BroadcastReceiver;
import android.content.Context;
import android.content.Intent;
import android.os.PowerManager;

/** WakeReceiver has the agent check in: at an alarm, at the device's start, and after an update of the app. */
public final class WakeReceiver extends BroadcastReceiver {
    static final String WAKE = "dev.muster.agent.WAKE";
    /** AWAKE is how long the device stays awake for a check-in, in milliseconds. */
    private static final long AWAKE = 20_000;

    @Override
    public void onReceive(Context context, Intent intent) {
        Keeper keeper = MusterApp.keeper(context);
        if (!keeper.owner.owns()) {
            return; // the device was given back
        }
        Alarms.schedule(context);
        PowerManager power = context.getSystemService(PowerManager.class);
        power.newWakeLock(PowerManager.PARTIAL_WAKE_LOCK, "muster:checkin").acquire(AWAKE);
        keeper.start();
    }
}

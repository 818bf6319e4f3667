package dev.muster.agent;

import android.content.BroadcastReceiver;
import android.content.Context;
import android.content.Intent;

/** WakeReceiver has the agent check in: at an alarm, at the device's start, and after an update of the app. */
public final class WakeReceiver extends BroadcastReceiver {
    static final String WAKE = "dev.muster.agent.WAKE";

    @Override
    public void onReceive(Context context, Intent intent) {
        Keeper keeper = MusterApp.keeper(context);
        if (!keeper.owner.owns()) {
            return; // the device was given back
        }
        Alarms.schedule(context);
        keeper.awake.bridge();
        keeper.start();
    }
}

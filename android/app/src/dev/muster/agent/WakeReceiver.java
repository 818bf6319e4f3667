package dev.muster.agent;

import android.content.BroadcastReceiver;
import android.content.Context;
import android.content.Intent;

/** WakeReceiver makes the agent check in at an alarm, when the device starts, and after an update of the app. */
public final class WakeReceiver extends BroadcastReceiver {
    static final String WAKE = "dev.muster.agent.WAKE";

    @Override
    public void onReceive(Context context, Intent intent) {
        Keeper keeper = MusterApp.keeper(context);
        if (!keeper.owner.owns()) {
            return; // this app is no longer the device owner: the management has ended
        }
        Alarms.schedule(context);
        keeper.awake.bridge(); // the device stays awake until the agent's thread holds its own wake lock
        keeper.start();
    }
}

package dev.muster.agent;

import android.app.AlarmManager;
import android.app.PendingIntent;
import android.content.Context;
import android.content.Intent;
import android.os.SystemClock;

/**
 * Alarms starts WakeReceiver, which has the agent check in, also while the device sleeps. In Doze, Android cuts off the
 * network and so the wake stream; an app then gets an alarm about every nine minutes at most.
 */
final class Alarms {
    /** EVERY is how often the agent checks in without being woken, in milliseconds. */
    static final long EVERY = 15 * 60_000;

    /** SOON is when the agent is started again after a crash, in milliseconds. */
    static final long SOON = 60_000;

    private Alarms() {}

    /** schedule sets the alarm for the next check-in. It replaces an alarm that is set. */
    static void schedule(Context context) {
        set(context, EVERY);
    }

    /** soon sets the alarm after a crash. It replaces an alarm that is set. */
    static void soon(Context context) {
        set(context, SOON);
    }

    private static void set(Context context, long wait) {
        Intent wake = new Intent(context, WakeReceiver.class).setAction(WakeReceiver.WAKE);
        PendingIntent due = PendingIntent.getBroadcast(context, 0, wake, PendingIntent.FLAG_UPDATE_CURRENT | PendingIntent.FLAG_IMMUTABLE);
        context.getSystemService(AlarmManager.class)
                .setAndAllowWhileIdle(AlarmManager.ELAPSED_REALTIME_WAKEUP, SystemClock.elapsedRealtime() + wait, due);
    }
}

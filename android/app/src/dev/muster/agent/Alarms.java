package dev.muster.agent;

import android.app.AlarmManager;
import android.app.PendingIntent;
import android.content.Context;
import android.content.Intent;
import android.os.SystemClock;

/**
 * Alarms are the backstop where Doze has cut the network, and with it the wake stream: Android allows
 * such an alarm about every nine minutes.
 */
final class Alarms {
    /** EVERY is how often the agent checks in without being woken, in milliseconds. */
    static final long EVERY = 15 * 60_000;

    /** SOON is when the agent is started again after a crash, in milliseconds. */
    static final long SOON = 60_000;

    private Alarms() {}

    /** schedule sets the next alarm, in the place of one that is set. */
    static void schedule(Context context) {
        in(context, EVERY);
    }

    /** soon sets an earlier one. */
    static void soon(Context context) {
        in(context, SOON);
    }

    private static void in(Context context, long wait) {
        Intent wake = new Intent(context, WakeReceiver.class).setAction(WakeReceiver.WAKE);
        PendingIntent due = PendingIntent.getBroadcast(context, 0, wake, PendingIntent.FLAG_UPDATE_CURRENT | PendingIntent.FLAG_IMMUTABLE);
        context.getSystemService(AlarmManager.class)
                .setAndAllowWhileIdle(AlarmManager.ELAPSED_REALTIME_WAKEUP, SystemClock.elapsedRealtime() + wait, due);
    }
}

package dev.muster.agent;

import android.content.Context;

/**
 * Crashes keeps what ends the process, for the log and the service, and sets an alarm that starts the agent
 * again: Android itself binds the owner's service again only after an hour, and after each crash later.
 */
final class Crashes implements Thread.UncaughtExceptionHandler {
    private final Context context;
    private final Thread.UncaughtExceptionHandler next;

    private Crashes(Context context, Thread.UncaughtExceptionHandler next) {
        this.context = context;
        this.next = next;
    }

    /** keep has every crash of this process kept, and then treated as before. */
    static void keep(Context context) {
        Thread.UncaughtExceptionHandler last = Thread.getDefaultUncaughtExceptionHandler();
        Thread.setDefaultUncaughtExceptionHandler(new Crashes(context, last instanceof Crashes ? ((Crashes) last).next : last));
    }

    @Override
    public void uncaughtException(Thread thread, Throwable e) {
        try {
            Keeper keeper = MusterApp.keeper(context);
            keeper.broke("the thread " + thread.getName(), e);
            if (keeper.owner.owns()) {
                Alarms.soon(context);
            }
        } catch (RuntimeException | Error worse) {
            // The process ends all the same, with the error that it ended with.
        } finally {
            if (next != null) {
                next.uncaughtException(thread, e);
            }
        }
    }
}

package dev.muster.agent;

import android.app.Application;
import android.content.Context;

/** MusterApp is the process. It has one Keeper, which every component finds here. */
public final class MusterApp extends Application {
    private Keeper keeper;

    @Override
    public void onCreate() {
        super.onCreate();
        Crashes.keep(this);
    }

    /** keeper returns the one that runs this process's agent. */
    synchronized Keeper keeper() {
        if (keeper == null) {
            keeper = new Keeper(this);
        }
        return keeper;
    }

    static Keeper keeper(Context context) {
        return ((MusterApp) context.getApplicationContext()).keeper();
    }
}

package dev.muster.agent;

import android.app.Application;
import android.content.Context;

/** MusterApp is the app's process. It makes the one Keeper, which activities, services and receivers share. */
public final class MusterApp extends Application {
    private Keeper keeper;

    @Override
    public void onCreate() {
        super.onCreate();
        Crashes.keep(this);
    }

    private synchronized Keeper keeper() {
        if (keeper == null) {
            keeper = new Keeper(this);
        }
        return keeper;
    }

    /** keeper returns the Keeper of this process. */
    static Keeper keeper(Context context) {
        return ((MusterApp) context.getApplicationContext()).keeper();
    }
}

package dev.muster.agent;

import android.location.Location;
import android.location.LocationManager;
import android.os.CancellationSignal;
import java.util.concurrent.Executor;
import java.util.function.Consumer;

/** Since30 makes the calls that Android has from API 30 (Android 11) on. */
final class Since30 {
    private Since30() {}

    static void setLocationEnabled(Owner o, boolean on) {
        o.dpm.setLocationEnabled(o.admin, on);
    }

    /** setAutoTime switches automatic time and automatic time zone on. */
    static void setAutoTime(Owner o) {
        o.dpm.setAutoTimeEnabled(o.admin, true);
        o.dpm.setAutoTimeZoneEnabled(o.admin, true);
    }

    /** locate asks a provider once. It calls result on the executor, with null where no location was found. */
    static void locate(LocationManager manager, String provider, CancellationSignal stop, Executor executor, Consumer<Location> result) {
        manager.getCurrentLocation(provider, stop, executor, result);
    }
}

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

    static void setAutoTime(Owner o) {
        o.dpm.setAutoTimeEnabled(o.admin, true);
        o.dpm.setAutoTimeZoneEnabled(o.admin, true);
    }

    static void locate(LocationManager manager, String provider, CancellationSignal stop, Executor on, Consumer<Location> found) {
        manager.getCurrentLocation(provider, stop, on, found);
    }
}

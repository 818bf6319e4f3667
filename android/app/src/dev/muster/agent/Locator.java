package dev.muster.agent;

import android.location.Location;
import android.location.LocationListener;
import android.location.LocationManager;
import android.os.Bundle;
import android.os.CancellationSignal;
import android.os.Looper;
import android.os.SystemClock;
import dev.muster.agent.core.DeviceException;
import dev.muster.agent.core.Report;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/** Locator finds out where the device is: only when a command asks. */
final class Locator {
    /** PATIENCE is how long a fix may take, in seconds. */
    private static final int PATIENCE = 60;

    private final Owner owner;
    private final LocationManager manager;
    private final BlockingQueue<Location> found = new ArrayBlockingQueue<>(8);

    Locator(Owner owner) {
        this.owner = owner;
        manager = owner.context.getSystemService(LocationManager.class);
    }

    /** report returns a report with a fresh fix, the last known place, or none. */
    Report report() throws DeviceException {
        Report report = new Report();
        if (manager == null || !manager.isLocationEnabled()) {
            return report;
        }
        boolean may = owner.grant("android.permission.ACCESS_FINE_LOCATION");
        if (owner.sdk >= 29) {
            may &= owner.grant("android.permission.ACCESS_BACKGROUND_LOCATION");
        }
        if (!may) {
            throw DeviceException.failed("Android does not let this app see the location: it was declined at setup, "
                    + "and can be allowed in the device's settings");
        }
        List<String> providers = manager.getProviders(true);
        providers.remove(LocationManager.PASSIVE_PROVIDER);
        Location fresh = providers.isEmpty() ? null : owner.sdk >= 30 ? current(providers) : updated(providers);
        Location best = fresh == null ? lastKnown() : fresh;
        if (best != null) {
            report.location = new dev.muster.agent.core.Location(best.getLatitude(), best.getLongitude(), best.getAccuracy(),
                    at(best), fresh == null);
        }
        return report;
    }

    /**
     * at is when a place was fixed, by the device's clock. The time that a place itself names is of the satellites, and
     * off by as much as the device's clock is.
     */
    private static long at(Location fix) {
        long age = SystemClock.elapsedRealtimeNanos() - fix.getElapsedRealtimeNanos();
        return System.currentTimeMillis() - TimeUnit.NANOSECONDS.toMillis(Math.max(0, age));
    }

    private Location await() {
        try {
            return found.poll(PATIENCE, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return null;
        }
    }

    private Location current(List<String> providers) {
        CancellationSignal stop = new CancellationSignal();
        Executor here =
                new Executor() {
                    @Override
                    public void execute(Runnable work) {
                        work.run();
                    }
                };
        Consumer<Location> take =
                new Consumer<Location>() {
                    @Override
                    public void accept(Location fix) {
                        if (fix != null) {
                            found.offer(fix);
                        }
                    }
                };
        for (String provider : providers) {
            Since30.locate(manager, provider, stop, here, take);
        }
        try {
            return await();
        } finally {
            stop.cancel();
        }
    }

    @SuppressWarnings("deprecation") // below API 30 there is no other way
    private Location updated(List<String> providers) {
        LocationListener listener =
                new LocationListener() {
                    @Override
                    public void onLocationChanged(Location fix) {
                        found.offer(fix);
                    }

                    @Override
                    public void onStatusChanged(String provider, int status, Bundle extras) {}

                    @Override
                    public void onProviderEnabled(String provider) {}

                    @Override
                    public void onProviderDisabled(String provider) {}
                };
        for (String provider : providers) {
            manager.requestSingleUpdate(provider, listener, Looper.getMainLooper());
        }
        try {
            return await();
        } finally {
            manager.removeUpdates(listener);
        }
    }

    private Location lastKnown() {
        Location best = null;
        for (String provider : manager.getAllProviders()) {
            Location fix = manager.getLastKnownLocation(provider);
            if (fix != null && (best == null || fix.getElapsedRealtimeNanos() > best.getElapsedRealtimeNanos())) {
                best = fix;
            }
        }
        return best;
    }
}

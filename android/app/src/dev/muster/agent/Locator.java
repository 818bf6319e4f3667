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

/** Locator finds out where the device is, for one command: each command makes its own. */
final class Locator {
    /** FIX_TIMEOUT is how long all providers together may take for a fix, in seconds. */
    private static final int FIX_TIMEOUT = 60;

    private final Owner owner;
    private final LocationManager manager;
    private final BlockingQueue<Location> fixes = new ArrayBlockingQueue<>(8);

    Locator(Owner owner) {
        this.owner = owner;
        manager = owner.context.getSystemService(LocationManager.class);
    }

    /**
     * report returns a report with a fresh fix, else the last known location, else without a location. It waits up to
     * FIX_TIMEOUT, and fails if the user declined the permission.
     */
    Report report() throws DeviceException {
        Report report = new Report();
        if (manager == null || !manager.isLocationEnabled()) {
            return report;
        }
        boolean granted = owner.grant("android.permission.ACCESS_FINE_LOCATION");
        if (owner.sdk >= 29) {
            granted &= owner.grant("android.permission.ACCESS_BACKGROUND_LOCATION");
        }
        if (!granted) {
            throw DeviceException.failed("Android does not let this app see the location: it was declined at setup, "
                    + "and can be allowed in the device's settings");
        }
        List<String> providers = manager.getProviders(true);
        providers.remove(LocationManager.PASSIVE_PROVIDER);
        Location fresh = providers.isEmpty() ? null : owner.sdk >= 30 ? currentLocation(providers) : singleUpdate(providers);
        Location best = fresh == null ? lastKnown() : fresh;
        if (best != null) {
            report.location = new dev.muster.agent.core.Location(best.getLatitude(), best.getLongitude(), best.getAccuracy(),
                    fixedAt(best), fresh == null);
        }
        return report;
    }

    /**
     * fixedAt is when a location was fixed, in Unix milliseconds by the device's clock, like all times of a report.
     * Location.getTime is by the clock of the satellites, which may differ.
     */
    private static long fixedAt(Location fix) {
        long age = SystemClock.elapsedRealtimeNanos() - fix.getElapsedRealtimeNanos();
        return System.currentTimeMillis() - TimeUnit.NANOSECONDS.toMillis(Math.max(0, age));
    }

    /** await returns the first fix, or null if none comes in time. */
    private Location await() {
        try {
            return fixes.poll(FIX_TIMEOUT, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return null;
        }
    }

    private Location currentLocation(List<String> providers) {
        CancellationSignal stop = new CancellationSignal();
        Executor sameThread =
                new Executor() {
                    @Override
                    public void execute(Runnable work) {
                        work.run();
                    }
                };
        Consumer<Location> keep =
                new Consumer<Location>() {
                    @Override
                    public void accept(Location fix) {
                        if (fix != null) {
                            fixes.offer(fix);
                        }
                    }
                };
        for (String provider : providers) {
            Since30.locate(manager, provider, stop, sameThread, keep);
        }
        try {
            return await();
        } finally {
            stop.cancel();
        }
    }

    @SuppressWarnings("deprecation") // below API 30 there is no other way
    private Location singleUpdate(List<String> providers) {
        LocationListener listener =
                new LocationListener() {
                    @Override
                    public void onLocationChanged(Location fix) {
                        fixes.offer(fix);
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

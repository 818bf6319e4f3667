package dev.muster.agent;

import android.content.Context;
import android.net.ConnectivityManager;
import android.net.Network;

/** Networks runs a callback when the device's default network changes, on a thread of Android. */
final class Networks extends ConnectivityManager.NetworkCallback {
    private final ConnectivityManager manager;
    private final Runnable changed;
    private Network last;

    /**
     * Networks begins to watch. The network that is active now does not count as a change. It throws a
     * RuntimeException if Android does not let the app watch networks.
     */
    Networks(Context context, Runnable changed) {
        manager = context.getSystemService(ConnectivityManager.class);
        this.changed = changed;
        last = manager.getActiveNetwork();
        manager.registerDefaultNetworkCallback(this);
    }

    /** end stops watching. */
    void end() {
        manager.unregisterNetworkCallback(this);
    }

    @Override
    public void onAvailable(Network network) {
        boolean other;
        synchronized (this) {
            other = !network.equals(last);
            last = network;
        }
        if (other) {
            changed.run();
        }
    }

    @Override
    public synchronized void onLost(Network network) {
        last = null;
    }
}

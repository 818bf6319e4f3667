package dev.muster.agent;

import android.content.Context;
import android.net.ConnectivityManager;
import android.net.Network;

/** Networks tells when the device's default network is another one than before. */
final class Networks extends ConnectivityManager.NetworkCallback {
    private final ConnectivityManager manager;
    private final Runnable changed;
    private Network last;

    /** The network of now is no change. A device that may not watch its networks throws a RuntimeException. */
    Networks(Context context, Runnable changed) {
        manager = context.getSystemService(ConnectivityManager.class);
        this.changed = changed;
        last = manager.getActiveNetwork();
        manager.registerDefaultNetworkCallback(this);
    }

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

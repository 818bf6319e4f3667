package dev.muster.agent;

import static org.junit.Assert.assertEquals;

import android.net.ConnectivityManager;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.Test;
import org.robolectric.Shadows;
import org.robolectric.shadows.ShadowConnectivityManager;
import org.robolectric.shadows.ShadowNetwork;

/** A change of network is reported once; the network of now is none. */
public final class NetworksTest extends Client {
    @Test
    public void tellsOfChanges() {
        final AtomicInteger changes = new AtomicInteger();
        Networks networks = new Networks(app, new Runnable() {
            @Override
            public void run() {
                changes.incrementAndGet();
            }
        });
        ConnectivityManager manager = app.getSystemService(ConnectivityManager.class);
        ShadowConnectivityManager connectivity = Shadows.shadowOf(manager);
        assertEquals(1, connectivity.getNetworkCallbacks().size());
        ConnectivityManager.NetworkCallback callback = connectivity.getNetworkCallbacks().iterator().next();
        callback.onAvailable(manager.getActiveNetwork());
        assertEquals(0, changes.get());
        callback.onAvailable(ShadowNetwork.newInstance(77));
        callback.onAvailable(ShadowNetwork.newInstance(77));
        assertEquals(1, changes.get());
        callback.onLost(ShadowNetwork.newInstance(77));
        callback.onAvailable(ShadowNetwork.newInstance(77));
        assertEquals(2, changes.get());
        networks.end();
        assertEquals(0, connectivity.getNetworkCallbacks().size());
    }
}

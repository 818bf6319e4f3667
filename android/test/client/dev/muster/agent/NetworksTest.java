package dev.muster.agent;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

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
        // A thread of the app may watch networks, too.
        assertTrue(connectivity.getNetworkCallbacks().contains(networks));
        networks.onAvailable(manager.getActiveNetwork());
        assertEquals(0, changes.get());
        networks.onAvailable(ShadowNetwork.newInstance(77));
        networks.onAvailable(ShadowNetwork.newInstance(77));
        assertEquals(1, changes.get());
        networks.onLost(ShadowNetwork.newInstance(77));
        networks.onAvailable(ShadowNetwork.newInstance(77));
        assertEquals(2, changes.get());
        networks.end();
        assertFalse(connectivity.getNetworkCallbacks().contains(networks));
    }
}

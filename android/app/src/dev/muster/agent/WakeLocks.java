package dev.muster.agent;

import android.content.Context;
import android.os.PowerManager;
import dev.muster.agent.core.Awake;

/** WakeLocks keep the processor awake for as long as there is work. */
final class WakeLocks implements Awake {
    private static final String NAME = "muster:work";
    /** HANDOVER is how long it takes at most until the agent's thread holds a lock of its own, in milliseconds. */
    private static final long HANDOVER = 10_000;

    private final PowerManager power;

    WakeLocks(Context context) {
        power = context.getSystemService(PowerManager.class);
    }

    /** bridge keeps the device awake from an alarm on, until the agent's thread has taken over. */
    void bridge() {
        power.newWakeLock(PowerManager.PARTIAL_WAKE_LOCK, NAME).acquire(HANDOVER);
    }

    @Override
    public Held hold(long most) {
        final PowerManager.WakeLock lock = power.newWakeLock(PowerManager.PARTIAL_WAKE_LOCK, NAME);
        lock.setReferenceCounted(false); // its time may be over before it is released
        lock.acquire(most);
        return new Held() {
            @Override
            public void close() {
                lock.release();
            }
        };
    }
}

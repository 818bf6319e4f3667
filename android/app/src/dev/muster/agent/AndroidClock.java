package dev.muster.agent;

import android.os.SystemClock;
import dev.muster.agent.core.Clock;

/** AndroidClock is the device's clock, in milliseconds. What has elapsed since the start includes the time that the device slept. */
final class AndroidClock implements Clock {
    @Override
    public long now() {
        return System.currentTimeMillis();
    }

    @Override
    public long elapsed() {
        return SystemClock.elapsedRealtime();
    }
}

package dev.muster.agent.core;

import java.util.Map;

/** Location is where the device is or was. */
public final class Location {
    public final double latitude;
    public final double longitude;
    public final double accuracyMeters;
    /** at is when the place was fixed: Unix milliseconds by the device's own clock. */
    public final long at;
    /** stale says that this is a last known place. */
    public final boolean stale;

    public Location(double latitude, double longitude, double accuracyMeters, long at, boolean stale) {
        this.latitude = latitude;
        this.longitude = longitude;
        this.accuracyMeters = accuracyMeters;
        this.at = at;
        this.stale = stale;
    }

    /** by returns the same place with its time by another clock. */
    Location by(long offset) {
        return new Location(latitude, longitude, accuracyMeters, at + offset, stale);
    }

    Map<String, Object> json() {
        return Fields.members("latitude", latitude, "longitude", longitude, "accuracyMeters", accuracyMeters, "at", at,
                "stale", stale ? Boolean.TRUE : null);
    }
}

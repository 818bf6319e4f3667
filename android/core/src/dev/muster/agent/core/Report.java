package dev.muster.agent.core;

import java.util.LinkedHashMap;
import java.util.Map;

/** Report is what a device reports. */
public final class Report {
    /** values are members of the asset's status report. */
    public final Map<String, Object> values = new LinkedHashMap<>();

    public final Map<String, String> specifications = new LinkedHashMap<>();
    /** location is null where the device has none. */
    public Location location;
}

package dev.muster.agent.core;

import java.util.Map;

/**
 * Reporting says which groups a report may hold: those that the policy turned on. What is off is
 * not collected.
 */
public final class Reporting {
    /** applications is the value of APPLICATION_REPORT_LEVEL, or "". */
    public final String applications;

    public final boolean deviceSettings;
    public final boolean display;
    public final boolean hardware;
    public final boolean memory;
    public final boolean network;
    public final boolean power;
    public final boolean software;
    public final boolean properties;
    /** location asks for a fix. Only a command does. */
    public final boolean location;

    Reporting(Map<String, String> wanted, boolean location) {
        String level = wanted.get("APPLICATION_REPORT_LEVEL");
        applications = level == null ? "" : level;
        deviceSettings = on(wanted, "REPORT_DEVICE_SETTINGS");
        display = on(wanted, "REPORT_DISPLAY_INFO");
        hardware = on(wanted, "REPORT_HARDWARE_STATUS");
        memory = on(wanted, "REPORT_MEMORY_INFO");
        network = on(wanted, "REPORT_NETWORK_INFO");
        power = on(wanted, "REPORT_POWER_EVENTS");
        software = on(wanted, "REPORT_SOFTWARE_INFO");
        properties = on(wanted, "REPORT_SYSTEM_PROPERTIES");
        this.location = location;
    }

    private static boolean on(Map<String, String> wanted, String setting) {
        return "ENABLED".equals(wanted.get(setting));
    }
}

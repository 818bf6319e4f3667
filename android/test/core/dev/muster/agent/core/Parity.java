package dev.muster.agent.core;

/** Parity applies one setting to a device and reads it back, as converging does. */
public final class Parity {
    private Parity() {}

    /** apply returns the state and the detail of the report. */
    public static String[] apply(Device device, String setting, String value) {
        SettingReport r = Settings.apply(new SafeDevice(device), setting, value);
        return new String[] {r.state, r.detail};
    }
}

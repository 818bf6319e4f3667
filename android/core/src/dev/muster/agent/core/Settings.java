package dev.muster.agent.core;

import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** Settings sets single settings of a device and compares what it shows. */
final class Settings {
    /** OPEN are values that a device cannot tell from never having been asked. */
    private static final List<String> OPEN =
            Arrays.asList("ALLOW", "PROMPT", "BLACKLIST", "OPEN_NETWORK", "USER_CHOICE", "UNSPECIFIED");

    private Settings() {}

    /**
     * contradicts reports whether a setting of a policy undoes another one of it. On Android, to block
     * LOCATION_SHARING switches location off.
     */
    static boolean contradicts(Map<String, String> policy, String id) {
        return id.equals("LOCATION_SHARING") && "BLOCK".equals(policy.get(id)) && "ENFORCED".equals(policy.get("LOCATION_MODE"));
    }

    /** applyOf sets one setting of a policy. One that contradicts another is refused, and taken back where it was set. */
    static SettingReport applyOf(Device device, Map<String, String> policy, String id) {
        if (contradicts(policy, id)) {
            SettingReport back = apply(device, id, "");
            return back.is(SettingReport.APPLIED)
                    ? SettingReport.refused(id, DeviceException.unsupported("BLOCK switches location off, and LOCATION_MODE is ENFORCED"))
                    : back;
        }
        return apply(device, id, policy.get(id));
    }

    /** apply sets one setting and reads it back. */
    static SettingReport apply(Device device, String id, String value) {
        SettingReport applied = new SettingReport(id, SettingReport.APPLIED, "");
        if (steersAgent(id)) {
            return applied;
        }
        try {
            device.apply(id, value);
            if (value.isEmpty() || settled(value, device.read(id))) {
                return applied; // what the device shows after "" is its user's
            }
        } catch (DeviceException e) {
            return SettingReport.refused(id, e);
        }
        return new SettingReport(id, SettingReport.PENDING, "the device does not show it yet");
    }

    /** holds reports whether the device shows what was asked for. It throws where that cannot be seen yet (LOCKED). */
    static boolean holds(Device device, String id, String want) throws DeviceException {
        try {
            return settled(want, device.read(id));
        } catch (DeviceException e) {
            if (e.kind == DeviceException.Kind.LOCKED) {
                throw e;
            }
            return false;
        }
    }

    /**
     * steersAgent reports the settings that say what the agent itself may tell: the device below has no
     * part in them.
     */
    static boolean steersAgent(String id) {
        return id.startsWith("REPORT_") || id.equals("APPLICATION_REPORT_LEVEL");
    }

    /**
     * settled reports whether what a device shows is what was asked for. A device does not know whether
     * something was allowed or never forbidden, and what is the user's to choose may read as anything.
     */
    static boolean settled(String want, String got) {
        return want.equals("USER_CHOICE") || want.equals("UNSPECIFIED") || same(want, got);
    }

    static boolean same(String one, String other) {
        return canonical(one).equals(canonical(other));
    }

    /** canonical is the one value for those that a device cannot tell apart. */
    private static String canonical(String value) {
        if (OPEN.contains(value)) {
            return "";
        }
        // There is no personal profile.
        return value.equals("ALLOW_INSTALL_IN_PERSONAL_PROFILE_ONLY") ? "DISALLOW_INSTALL" : value;
    }
}

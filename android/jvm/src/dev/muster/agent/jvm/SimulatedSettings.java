package dev.muster.agent.jvm;

import dev.muster.agent.core.DeviceException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** SimulatedSettings says which settings a simulated device owner can hold, as internal/agent/simulated does. */
final class SimulatedSettings {
    /** SINCE is the API level from which a setting exists. */
    private static final Map<String, Integer> SINCE = new HashMap<>();

    private static final List<String> PHONE = Arrays.asList("OUTGOING_CALLS", "SMS", "DATA_ROAMING");

    static {
        since(18, "UNINSTALL_APPS", "ACCOUNT_MODIFICATION", "REMOVE_USER", "USB_DATA_ACCESS", "LOCATION_SHARING", "CONFIGURE_WIFI");
        since(21, "UNTRUSTED_APPS_POLICY", "VENDOR_PROTECT", "SCREEN_CAPTURE", "FACTORY_RESET", "ADD_USER", "DEVELOPER_SETTINGS",
                "OUTGOING_CALLS", "SMS", "VPN_CONFIGURATION", "TETHERING", "WIFI_STATE", "AUTO_DATE_TIME", "ENCRYPTION_POLICY");
        since(23, "DEFAULT_PERMISSION_POLICY", "NETWORK_RESET");
        since(24, "VENDOR_STORE_MODE", "CAMERA", "DATA_ROAMING");
        since(26, "BLUETOOTH");
        since(28, "LOCATION_MODE", "AIRPLANE_MODE");
        since(33, "WIFI_DIRECT", "MINIMUM_WIFI_SECURITY");
    }

    private SimulatedSettings() {}

    private static void since(int sdk, String... settings) {
        for (String setting : settings) {
            SINCE.put(setting, sdk);
        }
    }

    /** all lists every setting that a device may be asked for, apart from those that steer the agent. */
    static List<String> all() {
        List<String> all = new ArrayList<>(SINCE.keySet());
        Collections.sort(all);
        return all;
    }

    /** check refuses a setting that the device cannot hold. */
    static void check(String setting, long sdk, boolean telephony) throws DeviceException {
        if (setting.equals("APP_AUTO_UPDATE_POLICY")) {
            throw DeviceException.notApplicable("the agent installs no apps");
        }
        if (setting.startsWith("REPORT_") || setting.equals("APPLICATION_REPORT_LEVEL")) {
            return;
        }
        Integer since = SINCE.get(setting);
        if (since == null) {
            throw DeviceException.unsupported("unknown setting");
        }
        if (PHONE.contains(setting) && !telephony) {
            throw DeviceException.notApplicable("it has no telephony");
        }
        if (sdk < since) {
            throw DeviceException.unsupported("it takes API level " + since + ", the device has " + sdk);
        }
    }

    /** checkValue refuses a value that this device cannot take. */
    static void checkValue(String setting, String value, boolean telephony, boolean headset, boolean noVerifier)
            throws DeviceException {
        if (noVerifier && setting.equals("VENDOR_PROTECT") && value.equals("ENABLED")) {
            throw DeviceException.unsupported("no app on it verifies packages");
        }
        if (headset && setting.equals("BLUETOOTH") && value.equals("BLOCK")) {
            throw DeviceException.unsupported("the controllers of a headset are Bluetooth");
        }
        if (!telephony && setting.equals("WIFI_STATE") && value.equals("DISABLED")) {
            throw DeviceException.unsupported("Wi-Fi is this device's only way to the service");
        }
    }
}

package dev.muster.agent;

import android.app.admin.DevicePolicyManager;
import android.content.Intent;
import android.provider.Settings;
import dev.muster.agent.core.DeviceException;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/** Rules has a rule for each setting of the policy catalog: how the device owner reads and applies it. */
final class Rules {
    static final String TELEPHONY = "android.hardware.telephony";
    static final String WIFI = "android.hardware.wifi";
    static final String HEADSET = "android.hardware.vr.headtracking";

    private Rules() {}

    /**
     * all returns the rules by the settings' ids, in the catalog's order, without the settings of the agent itself. A
     * user restriction is named by the value of its constant UserManager.DISALLOW_*, with the API level that brought it.
     */
    static Map<String, Rule> all() {
        Map<String, Rule> all = new LinkedHashMap<>();
        all.put("VENDOR_STORE_MODE", new Restriction(24, "WHITELIST").with("no_install_apps", 18));
        all.put("DEFAULT_PERMISSION_POLICY", permissions());
        all.put("UNTRUSTED_APPS_POLICY",
                new Restriction(21, "DISALLOW_INSTALL", "ALLOW_INSTALL_IN_PERSONAL_PROFILE_ONLY")
                        .with("no_install_unknown_sources", 21)
                        .with("no_install_unknown_sources_globally", 29));
        all.put("VENDOR_PROTECT", verification());
        all.put("SCREEN_CAPTURE", screenCapture());
        all.put("CAMERA", camera());
        all.put("FACTORY_RESET", Restriction.blocks(21, "no_factory_reset"));
        all.put("UNINSTALL_APPS", Restriction.blocks(18, "no_uninstall_apps"));
        all.put("ACCOUNT_MODIFICATION", Restriction.blocks(18, "no_modify_accounts"));
        all.put("ADD_USER", Restriction.blocks(21, "no_add_user"));
        all.put("REMOVE_USER", Restriction.blocks(18, "no_remove_user"));
        all.put("DEVELOPER_SETTINGS", debugging());
        all.put("USB_DATA_ACCESS", Restriction.blocks(18, "no_usb_file_transfer"));
        all.put("LOCATION_MODE", Switches.location());
        all.put("LOCATION_SHARING", Restriction.blocks(18, "no_share_location"));
        all.put("OUTGOING_CALLS", Restriction.blocks(21, "no_outgoing_calls").needs(TELEPHONY, "telephony"));
        all.put("SMS", Restriction.blocks(21, "no_sms").needs(TELEPHONY, "telephony"));
        all.put("BLUETOOTH", bluetooth());
        all.put("DATA_ROAMING", Restriction.blocks(24, "no_data_roaming").needs(TELEPHONY, "telephony"));
        all.put("NETWORK_RESET", Restriction.blocks(23, "no_network_reset"));
        all.put("VPN_CONFIGURATION", Restriction.blocks(21, "no_config_vpn"));
        all.put("CONFIGURE_WIFI", Restriction.blocks(18, "no_config_wifi").with("no_add_wifi_config", 33));
        all.put("WIFI_DIRECT", Restriction.blocks(33, "no_wifi_direct"));
        all.put("TETHERING", Restriction.blocks(21, "no_config_tethering").with("no_wifi_tethering", 33));
        all.put("WIFI_STATE", Switches.wifi());
        all.put("AIRPLANE_MODE", Switches.airplane());
        all.put("MINIMUM_WIFI_SECURITY", wifiSecurity());
        all.put("AUTO_DATE_TIME", Switches.time());
        all.put("ENCRYPTION_POLICY", new Encryption());
        all.put("SYSTEM_UPDATE", new SystemUpdates());
        return Collections.unmodifiableMap(all);
    }

    /** permissions answers the permission requests of apps: DENY without asking the user. */
    private static Rule permissions() {
        return new Rule(23) {
            @Override
            String read(Owner o) {
                return o.dpm.getPermissionPolicy(o.admin) == DevicePolicyManager.PERMISSION_POLICY_AUTO_DENY ? "DENY" : "";
            }

            @Override
            void apply(Owner o, String value) {
                o.dpm.setPermissionPolicy(o.admin, value.equals("DENY") ? DevicePolicyManager.PERMISSION_POLICY_AUTO_DENY
                        : DevicePolicyManager.PERMISSION_POLICY_PROMPT);
            }
        };
    }

    /** verification has the user's package verifier, such as Google Play Protect, check every app. */
    private static Rule verification() {
        return new Restriction(21, "ENABLED") {
            @Override
            void check(Owner o, String value) throws DeviceException {
                Intent verify = new Intent("android.intent.action.PACKAGE_NEEDS_VERIFICATION");
                verify.setType("application/vnd.android.package-archive");
                if (o.context.getPackageManager().queryBroadcastReceivers(verify, 0).isEmpty()) {
                    throw DeviceException.unsupported("no app on it verifies packages");
                }
            }
        }.with("ensure_verify_apps", 21);
    }

    private static Rule screenCapture() {
        return new Rule(21) {
            @Override
            String read(Owner o) {
                return o.dpm.getScreenCaptureDisabled(o.admin) ? "BLOCK" : "";
            }

            @Override
            void apply(Owner o, String value) {
                o.dpm.setScreenCaptureDisabled(o.admin, value.equals("BLOCK"));
            }
        };
    }

    private static Rule camera() {
        return new Rule(24) {
            @Override
            String read(Owner o) {
                return o.dpm.getCameraDisabled(o.admin) ? "BLOCK" : "";
            }

            @Override
            void apply(Owner o, String value) {
                o.dpm.setCameraDisabled(o.admin, value.equals("BLOCK"));
            }
        };
    }

    /** debugging also switches adb off. When the setting is removed from the policy, adb stays off. */
    private static Rule debugging() {
        return new Restriction(21, "BLOCK") {
            @Override
            void change(Owner o, String value) {
                if (value.equals("BLOCK")) {
                    o.dpm.setGlobalSetting(o.admin, Settings.Global.ADB_ENABLED, "0");
                }
            }

            @Override
            String readLocked(Owner o, String locked) {
                return o.global(Settings.Global.ADB_ENABLED) == 0 ? locked : "";
            }
        }.with("no_debugging_features", 21);
    }

    private static Rule bluetooth() {
        return new Restriction(26, "BLOCK") {
            @Override
            void check(Owner o, String value) throws DeviceException {
                if (o.has(HEADSET)) {
                    throw DeviceException.unsupported("the controllers of a headset are Bluetooth");
                }
            }
        }.with("no_bluetooth", 26);
    }

    private static Rule wifiSecurity() {
        return new Rule(33) {
            @Override
            String read(Owner o) {
                return Since33.personalWifi(o.dpm) ? "PERSONAL_NETWORK" : "";
            }

            @Override
            void apply(Owner o, String value) {
                Since33.setPersonalWifi(o.dpm, value.equals("PERSONAL_NETWORK"));
            }
        };
    }
}

package dev.muster.agent;

import android.content.Context;
import android.location.LocationManager;
import android.net.wifi.WifiManager;
import android.provider.Settings;
import dev.muster.agent.core.DeviceException;
import java.io.File;
import java.io.IOException;

/**
 * Switches has the rules that switch location, Wi-Fi, airplane mode and automatic time, and lock each by a user
 * restriction (see Restriction).
 */
final class Switches {
    private Switches() {}

    private static boolean locationOn(Owner o) {
        return o.context.getSystemService(LocationManager.class).isLocationEnabled();
    }

    static Rule location() {
        return new Restriction(28, "ENFORCED", "DISABLED") {
            @Override
            @SuppressWarnings("deprecation") // below API 30 there is no other way
            void change(Owner o, String value) {
                boolean enforced = value.equals("ENFORCED");
                if (!enforced && !value.equals("DISABLED")) {
                    return; // the policy leaves it to the user
                }
                if (o.sdk >= 30) {
                    Since30.setLocationEnabled(o, enforced);
                } else {
                    o.dpm.setSecureSetting(o.admin, Settings.Secure.LOCATION_MODE,
                            String.valueOf(enforced ? Settings.Secure.LOCATION_MODE_HIGH_ACCURACY : Settings.Secure.LOCATION_MODE_OFF));
                }
            }

            @Override
            String readLocked(Owner o, String locked) {
                return locationOn(o) ? "ENFORCED" : "DISABLED";
            }
        }.with("no_config_location", 28);
    }

    /**
     * wifi switches Wi-Fi if its state differs from the policy. When the setting is removed from the policy, wifi
     * switches Wi-Fi on again if it had switched it off. Android may refuse that, such as in airplane mode: wifi ignores
     * it, as the user can switch Wi-Fi on.
     */
    static Rule wifi() {
        return new Restriction(28, "ENABLED", "DISABLED") {
            @Override
            void check(Owner o, String value) throws DeviceException {
                if (value.equals("DISABLED") && !o.has(Rules.TELEPHONY)) {
                    throw DeviceException.unsupported("Wi-Fi is this device's only way to the service");
                }
            }

            @Override
            void change(Owner o, String value) throws DeviceException {
                File switchedOff = new StateFiles(o.context).wifiOff;
                boolean on = manager(o).isWifiEnabled();
                boolean done = true;
                if (value.equals("DISABLED")) {
                    if (on || manager(o).getWifiState() == WifiManager.WIFI_STATE_ENABLING) {
                        create(switchedOff);
                        done = setWifi(o, false);
                    }
                } else {
                    if (value.equals("ENABLED") && !on) {
                        done = setWifi(o, true);
                    } else if (value.isEmpty() && !on && switchedOff.exists()) {
                        setWifi(o, true);
                    }
                    switchedOff.delete();
                }
                if (!done) {
                    throw DeviceException.failed("Android did not switch Wi-Fi");
                }
            }

            private void create(File switchedOff) {
                try {
                    switchedOff.createNewFile();
                } catch (IOException e) {
                    return; // the disk may be full: apply the policy anyway; the user can switch Wi-Fi on later
                }
            }

            @SuppressWarnings("deprecation") // Android still allows it for device owners
            private boolean setWifi(Owner o, boolean on) {
                return manager(o).setWifiEnabled(on);
            }

            @Override
            String readLocked(Owner o, String locked) {
                return manager(o).isWifiEnabled() ? "ENABLED" : "DISABLED";
            }

            private WifiManager manager(Owner o) {
                return (WifiManager) o.context.getApplicationContext().getSystemService(Context.WIFI_SERVICE);
            }
        }.with("no_change_wifi_state", 33).needs(Rules.WIFI, "Wi-Fi");
    }

    /** airplane changes nothing itself: Android switches the mode off when the restriction is set. */
    static Rule airplane() {
        return new Restriction(28, "DISABLED") {
            @Override
            String readLocked(Owner o, String locked) {
                return o.global(Settings.Global.AIRPLANE_MODE_ON) == 0 ? locked : "";
            }
        }.with("no_airplane_mode", 28);
    }

    /** time is automatic time and automatic time zone. */
    static Rule time() {
        return new Restriction(28, "ENFORCED") {
            @Override
            @SuppressWarnings("deprecation") // below API 30 there is no other way
            void change(Owner o, String value) {
                boolean enforced = value.equals("ENFORCED");
                if (o.sdk < 30) {
                    o.dpm.setAutoTimeRequired(o.admin, enforced);
                }
                if (!enforced) {
                    return;
                }
                if (o.sdk >= 30) {
                    Since30.setAutoTime(o);
                } else {
                    o.dpm.setGlobalSetting(o.admin, Settings.Global.AUTO_TIME, "1");
                    o.dpm.setGlobalSetting(o.admin, Settings.Global.AUTO_TIME_ZONE, "1");
                }
            }

            @Override
            String readLocked(Owner o, String locked) {
                return o.global(Settings.Global.AUTO_TIME) == 1 && o.global(Settings.Global.AUTO_TIME_ZONE) == 1 ? locked : "";
            }
        }.with("no_config_date_time", 28);
    }
}

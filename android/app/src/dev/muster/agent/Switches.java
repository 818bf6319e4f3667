package dev.muster.agent;

import android.content.Context;
import android.location.LocationManager;
import android.net.wifi.WifiManager;
import android.provider.Settings;
import dev.muster.agent.core.DeviceException;

/** Switches are the settings that switch something of the device, and lock it where Android can. */
final class Switches {
    private Switches() {}

    private static boolean on(Owner o) {
        return o.context.getSystemService(LocationManager.class).isLocationEnabled();
    }

    static Rule location() {
        return new Restriction(28, "ENFORCED", "DISABLED") {
            @Override
            @SuppressWarnings("deprecation") // below API 30 there is no other way
            void turn(Owner o, String value) {
                boolean enforced = value.equals("ENFORCED");
                if (!enforced && !value.equals("DISABLED")) {
                    return; // it is the user's own
                }
                if (o.sdk >= 30) {
                    Since30.setLocationEnabled(o, enforced);
                } else {
                    o.dpm.setSecureSetting(o.admin, Settings.Secure.LOCATION_MODE,
                            String.valueOf(enforced ? Settings.Secure.LOCATION_MODE_HIGH_ACCURACY : Settings.Secure.LOCATION_MODE_OFF));
                }
            }

            @Override
            String shown(Owner o, String held) {
                return on(o) ? "ENFORCED" : "DISABLED";
            }
        }.with("no_config_location", 28);
    }

    static Rule wifi() {
        return new Restriction(28, "ENABLED", "DISABLED") {
            @Override
            void check(Owner o, String value) throws DeviceException {
                if (value.equals("DISABLED") && !o.has(Rules.TELEPHONY)) {
                    throw DeviceException.unsupported("Wi-Fi is this device's only way to the service");
                }
            }

            @Override
            @SuppressWarnings("deprecation") // device owners may go on using it
            void turn(Owner o, String value) throws DeviceException {
                boolean own = value.equals("USER_CHOICE");
                if (!own && !manager(o).setWifiEnabled(!value.equals("DISABLED"))) {
                    throw DeviceException.failed("Android did not switch Wi-Fi");
                }
            }

            @Override
            String shown(Owner o, String held) {
                return manager(o).isWifiEnabled() ? "ENABLED" : "DISABLED";
            }

            private WifiManager manager(Owner o) {
                return (WifiManager) o.context.getApplicationContext().getSystemService(Context.WIFI_SERVICE);
            }
        }.with("no_change_wifi_state", 33).needs(Rules.WIFI, "Wi-Fi");
    }

    /** airplane: the restriction also switches the mode off. */
    static Rule airplane() {
        return new Restriction(28, "DISABLED") {
            @Override
            String shown(Owner o, String held) {
                return o.global(Settings.Global.AIRPLANE_MODE_ON) == 0 ? held : "";
            }
        }.with("no_airplane_mode", 28);
    }

    static Rule time() {
        return new Restriction(28, "ENFORCED") {
            @Override
            @SuppressWarnings("deprecation") // below API 30 there is no other way
            void turn(Owner o, String value) {
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
            String shown(Owner o, String held) {
                return o.global(Settings.Global.AUTO_TIME) == 1 && o.global(Settings.Global.AUTO_TIME_ZONE) == 1 ? held : "";
            }
        }.with("no_config_date_time", 28);
    }
}

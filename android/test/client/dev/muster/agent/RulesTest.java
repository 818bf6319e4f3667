package dev.muster.agent;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.junit.Assert.fail;

import android.content.Context;
import android.net.wifi.WifiManager;
import android.os.Build;
import dev.muster.agent.core.DeviceException;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.junit.Before;
import org.junit.Test;
import org.robolectric.Shadows;

/** Each setting with each of its values: the calls that arrive, what is read back, and what is refused. */
public final class RulesTest extends Client {
    private AndroidDevice device;

    @Before
    public void device() {
        device = new AndroidDevice(new Owner(app), files);
        phone(true);
        Shadows.shadowOf(app.getPackageManager()).setSystemFeature(Rules.WIFI, true);
    }

    private void phone(boolean has) {
        Shadows.shadowOf(app.getPackageManager()).setSystemFeature(Rules.TELEPHONY, has);
    }

    /** holds applies a value that the device must take, with the calls, and takes it back. */
    private void holds(String setting, String value, List<String> on, List<String> off) throws DeviceException {
        device.apply(setting, value);
        assertEquals(setting + "=" + value, on, fake.took());
        assertEquals(setting, value, device.read(setting));
        device.apply(setting, "");
        assertEquals(setting + " taken back", off, fake.took());
        assertEquals(setting, "", device.read(setting));
    }

    private void restricts(String setting, String value, String... keys) throws DeviceException {
        String[] on = new String[keys.length];
        String[] off = new String[keys.length];
        for (int i = 0; i < keys.length; i++) {
            on[i] = "setUserRestriction " + keys[i] + " true";
            off[i] = "setUserRestriction " + keys[i] + " false";
        }
        holds(setting, value, Arrays.asList(on), Arrays.asList(off));
    }

    @Test
    public void restrictionsAlone() throws Exception {
        restricts("VENDOR_STORE_MODE", "WHITELIST", "no_install_apps");
        restricts("FACTORY_RESET", "BLOCK", "no_factory_reset");
        restricts("UNINSTALL_APPS", "BLOCK", "no_uninstall_apps");
        restricts("ACCOUNT_MODIFICATION", "BLOCK", "no_modify_accounts");
        restricts("ADD_USER", "BLOCK", "no_add_user");
        restricts("REMOVE_USER", "BLOCK", "no_remove_user");
        restricts("USB_DATA_ACCESS", "BLOCK", "no_usb_file_transfer");
        restricts("LOCATION_SHARING", "BLOCK", "no_share_location");
        restricts("OUTGOING_CALLS", "BLOCK", "no_outgoing_calls");
        restricts("SMS", "BLOCK", "no_sms");
        restricts("BLUETOOTH", "BLOCK", "no_bluetooth");
        restricts("DATA_ROAMING", "BLOCK", "no_data_roaming");
        restricts("NETWORK_RESET", "BLOCK", "no_network_reset");
        restricts("VPN_CONFIGURATION", "BLOCK", "no_config_vpn");
        restricts("AIRPLANE_MODE", "DISABLED", "no_airplane_mode");
    }

    @Test
    public void systemUpdates() throws Exception {
        String windowed = "{\"type\":\"WINDOWED\",\"startMinutes\":1380,\"endMinutes\":0,\"freezePeriods\":["
                + "{\"startDate\":{\"month\":11,\"day\":20},\"endDate\":{\"month\":1,\"day\":3}}]}";
        holds("SYSTEM_UPDATE", windowed, Arrays.asList("setSystemUpdatePolicy"), Arrays.asList("setSystemUpdatePolicy"));
        for (String wrong : new String[] {"POSTPONE", "{\"type\":\"LATER\"}",
                "{\"type\":\"WINDOWED\",\"startMinutes\":1440,\"endMinutes\":0}",
            windowed.replace("11,", "13,"), windowed.replace("\"month\":11", "\"month\":8")}) {
            try {
                device.apply("SYSTEM_UPDATE", wrong);
                fail(wrong);
            } catch (DeviceException e) {
                assertEquals(wrong, "", device.read("SYSTEM_UPDATE"));
            }
        }
    }

    @Test
    public void newerRestrictionsWhereAndroidHasThem() throws Exception {
        boolean newer = Build.VERSION.SDK_INT >= 33;
        restricts("UNTRUSTED_APPS_POLICY", "DISALLOW_INSTALL", newer
                ? new String[] {"no_install_unknown_sources", "no_install_unknown_sources_globally"}
                : new String[] {"no_install_unknown_sources"});
        restricts("CONFIGURE_WIFI", "BLOCK", newer ? new String[] {"no_config_wifi", "no_add_wifi_config"}
                : new String[] {"no_config_wifi"});
        restricts("TETHERING", "BLOCK", newer ? new String[] {"no_config_tethering", "no_wifi_tethering"}
                : new String[] {"no_config_tethering"});
    }

    @Test
    public void ownersOwnCalls() throws Exception {
        holds("CAMERA", "BLOCK", Arrays.asList("setCameraDisabled true"), Arrays.asList("setCameraDisabled false"));
        holds("SCREEN_CAPTURE", "BLOCK", Arrays.asList("setScreenCaptureDisabled true"), Arrays.asList("setScreenCaptureDisabled false"));
        holds("DEFAULT_PERMISSION_POLICY", "DENY", Arrays.asList("setPermissionPolicy 2"), Arrays.asList("setPermissionPolicy 0"));
        holds("DEVELOPER_SETTINGS", "BLOCK", Arrays.asList("setGlobalSetting adb_enabled 0",
                "setUserRestriction no_debugging_features true"),
                Arrays.asList("setUserRestriction no_debugging_features false"));
    }

    @Test
    public void locationMode() throws Exception {
        boolean newer = Build.VERSION.SDK_INT >= 30;
        for (String value : Arrays.asList("ENFORCED", "DISABLED")) {
            boolean on = value.equals("ENFORCED");
            holds("LOCATION_MODE", value, Arrays.asList(newer ? "setLocationEnabled " + on : "setSecureSetting location_mode "
                    + (on ? 3 : 0),
                    "setUserRestriction no_config_location true"), Arrays.asList("setUserRestriction no_config_location false"));
        }
        device.apply("LOCATION_MODE", "USER_CHOICE");
        assertEquals(Arrays.asList("setUserRestriction no_config_location false"), fake.took());
    }

    @Test
    public void autoDateTime() throws Exception {
        if (Build.VERSION.SDK_INT >= 30) {
            holds("AUTO_DATE_TIME", "ENFORCED", Arrays.asList("setAutoTimeEnabled true", "setAutoTimeZoneEnabled true",
                    "setUserRestriction no_config_date_time true"), Arrays.asList("setUserRestriction no_config_date_time false"));
        } else {
            holds("AUTO_DATE_TIME", "ENFORCED", Arrays.asList("setAutoTimeRequired true", "setGlobalSetting auto_time 1",
                    "setGlobalSetting auto_time_zone 1", "setUserRestriction no_config_date_time true"),
                    Arrays.asList("setUserRestriction no_config_date_time false", "setAutoTimeRequired false"));
        }
    }

    @Test
    public void wifiStateIsSwitchedAndFrom33Held() throws Exception {
        WifiManager wifi = (WifiManager) app.getSystemService(Context.WIFI_SERVICE);
        boolean held = Build.VERSION.SDK_INT >= 33;
        for (String value : Arrays.asList("DISABLED", "ENABLED")) {
            device.apply("WIFI_STATE", value);
            assertEquals(held ? Arrays.asList("setUserRestriction no_change_wifi_state true") : Collections.emptyList(), fake.took());
            assertEquals(value.equals("ENABLED"), wifi.isWifiEnabled());
            assertEquals(value, device.read("WIFI_STATE"));
        }
        device.apply("WIFI_STATE", "");
        assertEquals(held ? Arrays.asList("setUserRestriction no_change_wifi_state false") : Collections.emptyList(), fake.took());
    }

    @Test
    public void encryptionDemandsPasswordAndWaits() throws Exception {
        device.apply("ENCRYPTION_POLICY", "ENABLED_WITHOUT_PASSWORD");
        assertEquals("ENABLED_WITHOUT_PASSWORD", device.read("ENCRYPTION_POLICY"));
        fake.took();
        device.apply("ENCRYPTION_POLICY", "ENABLED_WITH_PASSWORD");
        assertEquals(Arrays.asList(Build.VERSION.SDK_INT >= 31 ? "setRequiredPasswordComplexity 65536" : "setPasswordQuality 65536"),
                fake.took());
        assertEquals("the user has set none", "", device.read("ENCRYPTION_POLICY"));
        fake.passwordSet = true;
        assertEquals("ENABLED_WITH_PASSWORD", device.read("ENCRYPTION_POLICY"));
    }

    @Test
    public void missingApiLevelIsNamed() throws Exception {
        for (String setting : Arrays.asList("WIFI_DIRECT", "MINIMUM_WIFI_SECURITY")) {
            String value = setting.equals("WIFI_DIRECT") ? "BLOCK" : "PERSONAL_NETWORK";
            if (Build.VERSION.SDK_INT < 33) {
                refused(setting, value, DeviceException.Kind.UNSUPPORTED, "it takes API level 33, the device has 28");
            } else {
                device.apply(setting, value);
                assertEquals(value, device.read(setting));
                assertTrue(fake.took().size() == 1);
            }
        }
    }

    private void refused(String setting, String value, DeviceException.Kind kind, String why) throws DeviceException {
        try {
            device.apply(setting, value);
            fail(setting + "=" + value + " was taken");
        } catch (DeviceException e) {
            assertEquals(setting, kind, e.kind);
            assertTrue(e.getMessage(), e.getMessage().contains(why));
        }
        assertEquals(setting + " changed something", Collections.emptyList(), fake.took());
    }

    @Test
    public void refusals() throws Exception {
        refused("APP_AUTO_UPDATE_POLICY", "NEVER", DeviceException.Kind.NOT_APPLICABLE, "installs no apps");
        refused("NO_SUCH", "BLOCK", DeviceException.Kind.UNSUPPORTED, "unknown setting");
        refused("VENDOR_PROTECT", "ENABLED", DeviceException.Kind.UNSUPPORTED, "no app on it verifies packages");
        phone(false);
        for (String setting : Arrays.asList("SMS", "OUTGOING_CALLS", "DATA_ROAMING")) {
            refused(setting, "BLOCK", DeviceException.Kind.NOT_APPLICABLE, "no telephony");
        }
        refused("WIFI_STATE", "DISABLED", DeviceException.Kind.UNSUPPORTED, "only way to the service");
        Shadows.shadowOf(app.getPackageManager()).setSystemFeature(Rules.HEADSET, true);
        refused("BLUETOOTH", "BLOCK", DeviceException.Kind.UNSUPPORTED, "controllers");
    }

    @Test
    public void withoutOwnershipNothingIsHeld() throws Exception {
        fake.owner = false;
        int refused = 0;
        for (String setting : device.settings()) {
            try {
                device.apply(setting, "BLOCK");
            } catch (SecurityException e) {
                refused++;
            } catch (DeviceException e) {
                // It asks for more than ownership.
            }
        }
        assertTrue(refused + " refused", refused >= 24);
        assertTrue(fake.restrictions.isEmpty());
    }
}

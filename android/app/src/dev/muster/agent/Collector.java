package dev.muster.agent;

import android.app.ActivityManager;
import android.app.admin.DevicePolicyManager;
import android.content.Context;
import android.content.pm.PackageInfo;
import android.hardware.display.DisplayManager;
import android.net.wifi.WifiManager;
import android.os.BatteryManager;
import android.os.Build;
import android.os.HardwarePropertiesManager;
import android.os.StatFs;
import android.provider.Settings;
import android.telephony.TelephonyManager;
import android.util.DisplayMetrics;
import android.view.Display;
import dev.muster.agent.core.Report;
import dev.muster.agent.core.Reporting;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TimeZone;
import java.util.TreeMap;

/** Collector gathers one report, with the names that the Go agent uses. What is off is not asked for. */
final class Collector {
    private static final int MAX_TEXT = 200;
    private static final int MAX_APPS = 2000;
    private static final int MAX_DISPLAYS = 4;

    private final Owner owner;
    private final Context context;
    private final String bootId;

    Collector(Owner owner, String bootId) {
        this.owner = owner;
        this.bootId = bootId;
        context = owner.context;
    }

    /** oneLine makes text of the device fit for a report. */
    static String oneLine(String text) {
        String line = text == null ? "" : text.trim().replaceAll("\\s+", " ");
        return line.length() <= MAX_TEXT ? line : line.substring(0, MAX_TEXT) + "…";
    }

    Report report(Reporting groups) {
        Report r = new Report();
        long battery = context.getSystemService(BatteryManager.class).getIntProperty(BatteryManager.BATTERY_PROPERTY_CAPACITY);
        if (battery >= 0 && battery <= 100) {
            r.values.put("batteryLevel", battery);
        }
        if (groups.applications.startsWith("INSTALLED")) {
            r.values.put("applications", applications());
        }
        if (groups.deviceSettings) {
            r.values.put("deviceSettings", deviceSettings());
        }
        if (groups.display) {
            r.values.put("displays", displays());
        }
        if (groups.hardware) {
            r.values.put("hardwareStatus", Collections.singletonMap("temperatures", temperatures()));
        }
        if (groups.memory) {
            r.values.put("memoryInfo", memory());
        }
        if (groups.network) {
            r.values.put("networkInfo", network());
        }
        if (groups.power) {
            r.values.put("powerEvents", Collections.singletonList(object("type", "BOOT", "bootId", bootId)));
        }
        if (groups.software) {
            r.values.put("softwareInfo", software());
        }
        if (groups.properties) {
            r.values.put("systemProperties", properties());
        }
        r.specifications.put("osVersion", oneLine(Build.VERSION.RELEASE));
        if (groups.software) {
            r.specifications.put("securityPatchLevel", oneLine(Build.VERSION.SECURITY_PATCH));
        }
        return r;
    }

    private static Map<String, Object> object(Object... namesAndValues) {
        Map<String, Object> all = new LinkedHashMap<>();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            all.put((String) namesAndValues[i], namesAndValues[i + 1]);
        }
        return all;
    }

    private List<Object> applications() {
        Map<String, Object> all = new TreeMap<>();
        for (PackageInfo p : context.getPackageManager().getInstalledPackages(0)) {
            all.put(p.packageName, object("packageName", p.packageName, "versionCode", p.getLongVersionCode()));
        }
        return new ArrayList<>(all.values()).subList(0, Math.min(all.size(), MAX_APPS));
    }

    private Map<String, Object> deviceSettings() {
        int encryption = owner.dpm.getStorageEncryptionStatus();
        return object("adbEnabled", owner.global(Settings.Global.ADB_ENABLED) == 1, "developmentSettingsEnabled",
                owner.global(Settings.Global.DEVELOPMENT_SETTINGS_ENABLED) == 1, "encrypted",
                encryption >= DevicePolicyManager.ENCRYPTION_STATUS_ACTIVE);
    }

    @SuppressWarnings("deprecation") // what came after it needs a window
    private List<Object> displays() {
        List<Object> all = new ArrayList<>();
        for (Display d : context.getSystemService(DisplayManager.class).getDisplays()) {
            DisplayMetrics size = new DisplayMetrics();
            d.getRealMetrics(size);
            if (all.size() < MAX_DISPLAYS) {
                all.add(object("width", (long) size.widthPixels, "height", (long) size.heightPixels, "density", (long) size.densityDpi));
            }
        }
        return all;
    }

    private Map<String, Object> temperatures() {
        HardwarePropertiesManager manager = context.getSystemService(HardwarePropertiesManager.class);
        Map<String, Object> all = new LinkedHashMap<>();
        if (manager == null) {
            return all;
        }
        String[] names = {"cpu", "gpu", "battery", "skin"}; // by the numbers of the manager's constants
        for (int type = 0; type < names.length; type++) {
            float[] degrees = manager.getDeviceTemperatures(type, HardwarePropertiesManager.TEMPERATURE_CURRENT);
            for (int i = 0; i < degrees.length && i < 8; i++) {
                if (degrees[i] > -100 && degrees[i] < 200) { // else it is undefined
                    all.put(names[type] + i, (double) degrees[i]);
                }
            }
        }
        return all;
    }

    private Map<String, Object> memory() {
        ActivityManager.MemoryInfo ram = new ActivityManager.MemoryInfo();
        context.getSystemService(ActivityManager.class).getMemoryInfo(ram);
        StatFs disk = new StatFs(context.getFilesDir().getPath());
        return object("totalRam", ram.totalMem, "availableRam", ram.availMem, "totalInternalStorage", disk.getTotalBytes(),
                "freeInternalStorage", disk.getAvailableBytes());
    }

    private Map<String, Object> network() {
        WifiManager wifi = (WifiManager) context.getApplicationContext().getSystemService(Context.WIFI_SERVICE);
        Map<String, Object> all = object("wifiEnabled", wifi != null && wifi.isWifiEnabled());
        TelephonyManager phone = context.getSystemService(TelephonyManager.class);
        all.put("operatorName", phone == null ? "" : oneLine(phone.getNetworkOperatorName()));
        return all;
    }

    private Map<String, Object> software() {
        return object("androidVersion", oneLine(Build.VERSION.RELEASE), "securityPatchLevel", oneLine(Build.VERSION.SECURITY_PATCH),
                "androidBuildNumber", oneLine(Build.DISPLAY), "bootloaderVersion", oneLine(Build.BOOTLOADER), "deviceKernelVersion",
                oneLine(System.getProperty("os.version")));
    }

    /** properties are those that an app may read and that identify neither the device nor its owner. */
    private Map<String, Object> properties() {
        return object("ro.build.type", oneLine(Build.TYPE), "ro.build.version.release", oneLine(Build.VERSION.RELEASE),
                "ro.build.version.sdk", String.valueOf(owner.sdk), "ro.build.version.security_patch",
                oneLine(Build.VERSION.SECURITY_PATCH), "ro.build.version.incremental", oneLine(Build.VERSION.INCREMENTAL),
                "ro.product.cpu.abi", Build.SUPPORTED_ABIS.length == 0 ? "" : oneLine(Build.SUPPORTED_ABIS[0]),
                "persist.sys.timezone", TimeZone.getDefault().getID(), "persist.sys.locale", Locale.getDefault().toLanguageTag());
    }
}

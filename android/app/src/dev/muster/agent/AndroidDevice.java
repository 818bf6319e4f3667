package dev.muster.agent;

import android.os.Build;
import android.provider.Settings;
import dev.muster.agent.core.Action;
import dev.muster.agent.core.Device;
import dev.muster.agent.core.DeviceException;
import dev.muster.agent.core.Report;
import dev.muster.agent.core.Reporting;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** AndroidDevice is this device, held by its device owner. */
final class AndroidDevice implements Device {
    private final Owner owner;
    private final Map<String, Rule> rules = Rules.all();
    private final Actions actions;

    AndroidDevice(Owner owner, StateFiles files) {
        this.owner = owner;
        actions = new Actions(owner, this, files);
    }

    @Override
    public Map<String, Object> facts() {
        Map<String, Object> facts = new LinkedHashMap<>();
        facts.put("serialNumber", serial(owner));
        facts.put("manufacturer", Collector.oneLine(Build.MANUFACTURER));
        facts.put("brand", Collector.oneLine(Build.BRAND));
        facts.put("model", Collector.oneLine(Build.MODEL));
        facts.put("sdk", (long) owner.sdk);
        facts.put("osVersion", Collector.oneLine(Build.VERSION.RELEASE));
        return facts;
    }

    /** serial is the device's serial number, or "" where Android does not tell it. */
    static String serial(Owner owner) {
        try {
            owner.grant("android.permission.READ_PHONE_STATE");
            String serial = Build.getSerial();
            return Build.UNKNOWN.equals(serial) ? "" : Collector.oneLine(serial);
        } catch (SecurityException e) {
            return "";
        }
    }

    @Override
    public List<String> capabilities() {
        List<String> can = new ArrayList<>(
                Arrays.asList("reboot", "notify", "launch", "user_restrictions", "wipe", "owner_api", "fresh_location", "persistence"));
        if (owner.headless()) {
            can.removeAll(Arrays.asList("notify", "launch")); // the app's user has no screen
        }
        return can;
    }

    /** bootId counts the starts of the machine, as Android does. */
    @Override
    public String bootId() {
        return "boot-" + owner.global(Settings.Global.BOOT_COUNT);
    }

    @Override
    public List<String> settings() {
        return new ArrayList<>(rules.keySet());
    }

    /** find returns a setting's rule if this device can follow it. */
    private Rule find(String setting) throws DeviceException {
        if (setting.equals("APP_AUTO_UPDATE_POLICY")) {
            throw DeviceException.notApplicable("the agent installs no apps");
        }
        Rule rule = rules.get(setting);
        if (rule == null) {
            throw DeviceException.unsupported("unknown setting");
        }
        if (!rule.feature.isEmpty() && !owner.has(rule.feature)) {
            throw DeviceException.notApplicable("it has no " + rule.missing);
        }
        if (owner.sdk < rule.since) {
            throw DeviceException.unsupported("it takes API level " + rule.since + ", the device has " + owner.sdk);
        }
        return rule;
    }

    @Override
    public String read(String setting) throws DeviceException {
        return find(setting).read(owner);
    }

    @Override
    public void apply(String setting, String value) throws DeviceException {
        find(setting).apply(owner, value);
    }

    @Override
    public String act(Action action) throws DeviceException {
        return actions.act(action);
    }

    @Override
    public Report report(Reporting groups) throws DeviceException {
        return groups.location ? new Locator(owner).report() : new Collector(owner, bootId()).report(groups);
    }
}

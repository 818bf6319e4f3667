package dev.muster.agent.jvm;

import dev.muster.agent.core.Action;
import dev.muster.agent.core.Command;
import dev.muster.agent.core.Device;
import dev.muster.agent.core.DeviceException;
import dev.muster.agent.core.Json;
import dev.muster.agent.core.Location;
import dev.muster.agent.core.Report;
import dev.muster.agent.core.Reporting;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * SimulatedDevice is a model of an Android device with a device-owner app. Its state is a file of the
 * same form as that of internal/agent/simulated, so that it survives the agent's process as a device
 * does.
 */
final class SimulatedDevice implements Device {
    private final File file;
    private Map<String, Object> state;

    private SimulatedDevice(File file, Map<String, Object> state) {
        this.file = file;
        this.state = state;
    }

    /** open returns the device that a folder keeps, or makes it with the serial number. */
    static SimulatedDevice open(File directory, String serial) throws IOException {
        File file = new File(directory, "device.json");
        if (!file.exists()) {
            Files.createDirectories(directory.toPath());
            SimulatedDevice made = new SimulatedDevice(file, fresh(serial));
            made.save();
            return made;
        }
        String text = new String(Files.readAllBytes(file.toPath()), StandardCharsets.UTF_8);
        SimulatedDevice known = new SimulatedDevice(file, new LinkedHashMap<>(Json.object(text).map()));
        if (Boolean.TRUE.equals(known.state.get("off"))) { // who runs the agent has switched the device on
            known.state.put("off", false);
            known.restart();
            known.save();
        }
        return known;
    }

    private static Map<String, Object> fresh(String serial) {
        Map<String, Object> facts = new LinkedHashMap<>();
        facts.put("serialNumber", serial);
        facts.put("manufacturer", "Simulated");
        facts.put("brand", "simulated");
        facts.put("model", "Sim 1");
        facts.put("sdk", 34L);
        facts.put("osVersion", "14");
        Map<String, Object> fix = new LinkedHashMap<>();
        fix.put("latitude", 52.5163);
        fix.put("longitude", 13.3777);
        fix.put("accuracyMeters", 12.0);
        Map<String, Object> s = new LinkedHashMap<>();
        s.put("facts", facts);
        s.put("form", "owner");
        s.put("boot", 1L);
        s.put("settings", new LinkedHashMap<String, Object>());
        s.put("packages", new ArrayList<Object>(Arrays.asList("com.example.app", "com.android.settings")));
        s.put("shown", new ArrayList<Object>());
        s.put("openApp", "");
        s.put("fix", fix);
        s.put("battery", 80L);
        s.put("off", false);
        s.put("wiped", false);
        s.put("released", false);
        s.put("telephony", true);
        s.put("headset", false);
        return s;
    }

    private void save() throws DeviceException {
        File next = new File(file.getPath() + ".new"); // whole or not at all: the process may be killed here
        try {
            Files.write(next.toPath(), Json.write(state).getBytes(StandardCharsets.UTF_8));
            Files.move(next.toPath(), file.toPath(), StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException e) {
            throw DeviceException.failed("the simulated device cannot be kept: " + e.getMessage());
        }
    }

    private void restart() {
        state.put("boot", number("boot") + 1);
    }

    private long number(String name) {
        return ((Number) state.get(name)).longValue();
    }

    private boolean is(String name) {
        return Boolean.TRUE.equals(state.get(name));
    }

    @SuppressWarnings("unchecked") // the state is JSON of a known form
    private Map<String, Object> object(String name) {
        Map<String, Object> object = (Map<String, Object>) state.get(name);
        return object == null ? new LinkedHashMap<String, Object>() : object;
    }

    @SuppressWarnings("unchecked")
    private List<Object> list(String name) {
        List<Object> list = (List<Object>) state.get(name);
        return list == null ? new ArrayList<>() : list;
    }

    @Override
    public synchronized Map<String, Object> facts() {
        return object("facts");
    }

    @Override
    public List<String> capabilities() {
        return Arrays.asList("reboot", "notify", "launch", "silent_install", "user_restrictions", "wipe", "owner_api",
                "fresh_location", "persistence");
    }

    @Override
    public synchronized String bootId() {
        return "boot-" + number("boot");
    }

    @Override
    public List<String> settings() {
        return SimulatedSettings.all();
    }

    private void check(String setting) throws DeviceException {
        SimulatedSettings.check(setting, ((Number) object("facts").get("sdk")).longValue(), is("telephony"));
    }

    @Override
    public synchronized String read(String setting) throws DeviceException {
        check(setting);
        Object value = object("settings").get(setting);
        return value == null ? "" : (String) value;
    }

    @Override
    public synchronized void apply(String setting, String value) throws DeviceException {
        check(setting);
        boolean noVerifier = Boolean.TRUE.equals(object("platform").get("noVerifier"));
        SimulatedSettings.checkValue(setting, value, is("telephony"), is("headset"), noVerifier);
        Map<String, Object> settings = object("settings");
        if (value.isEmpty()) {
            settings.remove(setting);
        } else {
            settings.put(setting, value);
        }
        state.put("settings", settings);
        save();
    }

    @Override
    public synchronized String act(Action a) throws DeviceException {
        String outcome = perform(a);
        save();
        return outcome;
    }

    private String perform(Action a) throws DeviceException {
        switch (a.type) {
            case Command.MESSAGE:
                show(a);
                return "shown";
            case Command.LAUNCH:
                String name = a.text("packageName");
                if (!list("packages").contains(name)) {
                    throw DeviceException.failed("NOT_INSTALLED: " + name + " is not installed");
                }
                state.put("openApp", name);
                return "opened";
            case Command.REBOOT:
                restart();
                return "restarting";
            case Command.WIPE:
                Map<String, Object> erased = fresh("");
                erased.put("facts", state.get("facts"));
                erased.put("boot", number("boot") + 1);
                erased.put("wiped", true);
                state = erased;
                return "erased";
            case Command.RELINQUISH:
                state.put("released", true);
                return "released";
            default: // Android offers a device owner no way to switch off
                throw DeviceException.unsupported("");
        }
    }

    private void show(Action a) throws DeviceException {
        List<Object> shown = list("shown");
        for (Iterator<Object> all = shown.iterator(); all.hasNext(); ) {
            if (a.commandId.equals(((Map<?, ?>) all.next()).get("tag"))) {
                all.remove();
            }
        }
        Map<String, Object> one = new LinkedHashMap<>();
        one.put("tag", a.commandId);
        one.put("title", a.text("title"));
        one.put("body", a.text("body"));
        shown.add(one);
        state.put("shown", shown);
    }

    @Override
    public synchronized Report report(Reporting groups) {
        Report r = new Report();
        r.values.put("batteryLevel", number("battery"));
        add(r, groups.applications.startsWith("INSTALLED"), "applications", applications());
        add(r, groups.deviceSettings, "deviceSettings", Collections.singletonMap("encrypted", true));
        add(r, groups.display, "displays", Collections.singletonList(Collections.singletonMap("width", 1080)));
        add(r, groups.hardware, "hardwareStatus", Collections.singletonMap("cpuTemperature", 41.5));
        add(r, groups.memory, "memoryInfo", Collections.singletonMap("totalRam", 4L << 30));
        add(r, groups.network, "networkInfo", Collections.singletonMap("wifiConnected", true));
        add(r, groups.power, "powerEvents", Collections.singletonList(Collections.singletonMap("type", "BOOT")));
        add(r, groups.software, "softwareInfo", Collections.singletonMap("androidVersion", object("facts").get("osVersion")));
        add(r, groups.properties, "systemProperties", Collections.singletonMap("ro.build.type", "user"));
        r.specifications.put("osVersion", String.valueOf(object("facts").get("osVersion")));
        Map<String, Object> fix = object("fix");
        if (groups.location && !fix.isEmpty() && !"DISABLED".equals(object("settings").get("LOCATION_MODE"))) {
            r.location = new Location(real(fix, "latitude"), real(fix, "longitude"), real(fix, "accuracyMeters"),
                    Main.CLOCK.now(), false);
        }
        return r;
    }

    private List<Object> applications() {
        List<Object> all = new ArrayList<>();
        for (Object name : list("packages")) {
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("packageName", name);
            one.put("versionCode", 1L);
            all.add(one);
        }
        return all;
    }

    private static double real(Map<String, Object> fix, String name) {
        return ((Number) fix.get(name)).doubleValue();
    }

    private static void add(Report r, boolean on, String name, Object value) {
        if (on) {
            r.values.put(name, value);
        }
    }
}

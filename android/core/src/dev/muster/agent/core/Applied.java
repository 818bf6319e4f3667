package dev.muster.agent.core;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/** Applied is what the device was brought to. */
final class Applied {
    PolicyRef policy = PolicyRef.NONE;
    Map<String, String> wanted = new LinkedHashMap<>();
    /** touched are settings that another policy was about to set: the process ended before it was applied. */
    Set<String> touched = new TreeSet<>();
    List<SettingReport> settings = new ArrayList<>();
    boolean reported; // the service has the report
    String bootId = ""; // when drift was last looked for
    long checkAt; // by the clock of this start of the machine, in milliseconds: look for drift again
    Guard guard; // null: none
    boolean lost; // what was here was damaged

    /**
     * Guard waits for proof that the device is still in touch after its connectivity was changed; else
     * what was before is restored.
     */
    static final class Guard {
        final String bootId; // of the start of the machine whose clock until is by
        final long until; // milliseconds
        final Map<String, String> before; // setting to value

        Guard(String bootId, long until, Map<String, String> before) {
            this.bootId = bootId;
            this.until = until;
            this.before = before;
        }
    }

    static Applied read(Fields f) throws JsonException {
        Applied a = new Applied();
        a.policy = PolicyRef.read(f.object("policy"));
        a.wanted = f.textMap("wanted");
        a.touched.addAll(f.texts("touched"));
        for (Fields s : f.objects("settings")) {
            a.settings.add(SettingReport.read(s));
        }
        a.reported = f.flag("reported");
        a.bootId = f.text("bootId");
        a.checkAt = f.number("checkAt");
        a.lost = f.flag("lost");
        Fields guard = f.object("guard");
        if (guard != null) {
            a.guard = new Guard(guard.text("bootId"), guard.number("until"), guard.textMap("before"));
        }
        return a;
    }

    Map<String, Object> json() {
        return Fields.members("policy", policy.json(), "wanted", wanted,
                "touched", touched.isEmpty() ? null : new ArrayList<>(touched),
                "settings", settingsJson(), "reported", reported, "bootId", bootId, "checkAt", checkAt,
                "guard", guard == null ? null : Fields.members("bootId", guard.bootId, "until", guard.until, "before", guard.before),
                "lost", lost ? Boolean.TRUE : null);
    }

    List<Object> settingsJson() {
        List<Object> all = new ArrayList<>();
        for (SettingReport s : settings) {
            all.add(s.json());
        }
        return all;
    }

    /** unseen reports whether a setting was applied that the device could not show yet. */
    boolean unseen() {
        String locked = DeviceException.locked().getMessage();
        for (SettingReport s : settings) {
            if (s.detail.equals(locked)) {
                return true;
            }
        }
        return false;
    }

    /** damaged is what is known after the record was damaged. */
    static Applied damaged() {
        Applied a = new Applied();
        a.lost = true;
        return a;
    }

    /** unreported reports whether the service does not know yet what is applied. */
    boolean unreported() {
        return !policy.none() && !reported;
    }
}

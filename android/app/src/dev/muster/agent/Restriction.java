package dev.muster.agent;

import dev.muster.agent.core.DeviceException;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Restriction is a rule that sets user restrictions, which keep the user from changing something. A subclass can
 * also change that thing itself: the restrictions are lifted before it, or set after it.
 */
class Restriction extends Rule {
    private final List<String> lockedValues;
    /** levels has the restrictions by key, each with the API level that brought it. */
    private final Map<String, Integer> levels = new LinkedHashMap<>();

    /** Restriction sets the restrictions for the values given, and lifts them for every other value. */
    Restriction(int since, String... lockedValues) {
        super(since);
        this.lockedValues = Arrays.asList(lockedValues);
    }

    /** with adds a restriction, which Android has from an API level on; below that level it is left out. */
    Restriction with(String key, int level) {
        levels.put(key, level);
        return this;
    }

    /** blocks is the rule of a setting ALLOW or BLOCK that consists of one restriction. */
    static Restriction blocks(int since, String key) {
        return new Restriction(since, "BLOCK").with(key, since);
    }

    @Override
    final String read(Owner owner) throws DeviceException {
        for (Map.Entry<String, Integer> restriction : levels.entrySet()) {
            if (owner.sdk >= restriction.getValue() && !owner.restricted(restriction.getKey())) {
                return "";
            }
        }
        return readLocked(owner, lockedValues.get(0));
    }

    @Override
    final void apply(Owner owner, String value) throws DeviceException {
        boolean lock = lockedValues.contains(value);
        if (lock) {
            check(owner, value);
        } else {
            restrict(owner, false);
        }
        change(owner, value);
        if (lock) {
            restrict(owner, true);
        }
    }

    private void restrict(Owner owner, boolean set) {
        for (Map.Entry<String, Integer> restriction : levels.entrySet()) {
            if (owner.sdk >= restriction.getValue()) {
                owner.restrict(restriction.getKey(), set);
            }
        }
    }

    /** check refuses a value that would cut the device off from its user or from the service. */
    void check(Owner owner, String value) throws DeviceException {}

    /** change changes what the restrictions lock. */
    void change(Owner owner, String value) throws DeviceException {}

    /** readLocked reads the setting while all restrictions are set; locked is the value that they stand for. */
    String readLocked(Owner owner, String locked) throws DeviceException {
        return locked;
    }
}

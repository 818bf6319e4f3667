package dev.muster.agent;

import dev.muster.agent.core.DeviceException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Restriction is a rule by user restrictions, which say "the user may not". What they lock may be
 * switched as well: locks come off before and go on after that.
 */
class Restriction extends Rule {
    private final List<String> on;
    private final List<String> keys = new ArrayList<>();
    private final List<Integer> levels = new ArrayList<>();

    /** on are the values that the restrictions mean; every other value lifts them. */
    Restriction(int since, String... on) {
        super(since);
        this.on = Arrays.asList(on);
    }

    /** with adds a restriction that there is from an API level on. */
    Restriction with(String key, int level) {
        keys.add(key);
        levels.add(level);
        return this;
    }

    /** blocks is a setting ALLOW or BLOCK that is user restrictions alone. */
    static Restriction blocks(int since, String... keys) {
        Restriction rule = new Restriction(since, "BLOCK");
        for (String key : keys) {
            rule.with(key, since);
        }
        return rule;
    }

    @Override
    final String read(Owner owner) throws DeviceException {
        for (int i = 0; i < keys.size(); i++) {
            if (owner.sdk >= levels.get(i) && !owner.restricted(keys.get(i))) {
                return "";
            }
        }
        return shown(owner, on.get(0));
    }

    @Override
    final void apply(Owner owner, String value) throws DeviceException {
        boolean hold = on.contains(value);
        if (hold) {
            check(owner, value);
        } else {
            restrict(owner, false);
        }
        turn(owner, value);
        if (hold) {
            restrict(owner, true);
        }
    }

    private void restrict(Owner owner, boolean set) {
        for (int i = 0; i < keys.size(); i++) {
            if (owner.sdk >= levels.get(i)) {
                owner.restrict(keys.get(i), set);
            }
        }
    }

    /** check refuses what would cut the device off from its user or from the service. */
    void check(Owner owner, String value) throws DeviceException {}

    /** turn switches what the restrictions lock. */
    void turn(Owner owner, String value) throws DeviceException {}

    /** shown is what the device shows while the restrictions hold. */
    String shown(Owner owner, String held) throws DeviceException {
        return held;
    }
}

package dev.muster.agent;

import dev.muster.agent.core.DeviceException;

/** Rule is how a device owner brings about one setting of the catalog. */
abstract class Rule {
    /** since is the API level from which the setting can be held. */
    final int since;
    /** feature is what the device must have, or the setting has no meaning there; empty: nothing. */
    String feature = "";
    /** missing is what a device lacks that has not the feature. */
    String missing = "";

    Rule(int since) {
        this.since = since;
    }

    Rule needs(String what, String name) {
        feature = what;
        missing = name;
        return this;
    }

    /** read returns the setting's present value, or "" where the device is left to its default. */
    abstract String read(Owner owner) throws DeviceException;

    /** apply sets the setting; "" takes back what was set before. */
    abstract void apply(Owner owner, String value) throws DeviceException;
}

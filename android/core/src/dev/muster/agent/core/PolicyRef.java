package dev.muster.agent.core;

import java.util.Map;

/** PolicyRef says which policy a device has. */
final class PolicyRef {
    static final PolicyRef NONE = new PolicyRef("", 0);

    final String id;
    final long version;

    PolicyRef(String id, long version) {
        this.id = id;
        this.version = version;
    }

    static PolicyRef read(Fields f) throws JsonException {
        return f == null ? NONE : new PolicyRef(f.text("id"), f.number("version"));
    }

    /** same reports whether the other is this version of the policy. */
    boolean same(PolicyRef other) {
        return id.equals(other.id) && version == other.version;
    }

    boolean none() {
        return id.isEmpty();
    }

    Map<String, Object> json() {
        return Fields.members("id", id, "version", version);
    }
}

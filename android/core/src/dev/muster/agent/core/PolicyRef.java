package dev.muster.agent.core;

import java.util.Map;

/** PolicyRef says which policy a device is to have. */
final class PolicyRef {
    static final PolicyRef NONE = new PolicyRef("", 0, "");

    final String id;
    final long version;
    final String etag;

    PolicyRef(String id, long version, String etag) {
        this.id = id;
        this.version = version;
        this.etag = etag;
    }

    static PolicyRef read(Fields f) throws JsonException {
        return f == null ? NONE : new PolicyRef(f.text("id"), f.number("version"), f.text("etag"));
    }

    /** same reports whether the other is this version of the policy. */
    boolean same(PolicyRef other) {
        return id.equals(other.id) && version == other.version;
    }

    boolean none() {
        return id.isEmpty();
    }

    Map<String, Object> json() {
        return Fields.members("id", id, "version", version, "etag", etag);
    }
}

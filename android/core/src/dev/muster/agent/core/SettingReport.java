package dev.muster.agent.core;

import java.util.Map;

/** SettingReport is the state of one setting, with the reason if it is not applied. */
final class SettingReport {
    static final String APPLIED = "applied";
    static final String PENDING = "pending";
    static final String UNSUPPORTED = "unsupported";
    static final String NOT_APPLICABLE = "not_applicable";
    static final String FAILED = "failed";
    static final String ROLLED_BACK = "rolled_back";

    final String id;
    final String state;
    final String detail;

    SettingReport(String id, String state, String detail) {
        this.id = id;
        this.state = state;
        this.detail = detail;
    }

    static SettingReport refused(String id, DeviceException e) {
        switch (e.kind) {
            case UNSUPPORTED:
                return new SettingReport(id, UNSUPPORTED, e.getMessage());
            case NOT_APPLICABLE:
                return new SettingReport(id, NOT_APPLICABLE, e.getMessage());
            case LOCKED:
                return new SettingReport(id, PENDING, e.getMessage());
            default:
                return new SettingReport(id, FAILED, e.getMessage());
        }
    }

    static SettingReport read(Fields f) throws JsonException {
        return new SettingReport(f.text("id"), f.text("state"), f.text("detail"));
    }

    boolean is(String wanted) {
        return state.equals(wanted);
    }

    boolean same(SettingReport other) {
        return id.equals(other.id) && state.equals(other.state) && detail.equals(other.detail);
    }

    Map<String, Object> json() {
        return Fields.members("id", id, "state", state, "detail", Fields.some(detail));
    }
}

package dev.muster.agent.core;

import java.util.Map;

/** Command is an order of the service for one device: what it does, and when it may run. */
public final class Command {
    public static final String MESSAGE = "NOTIFICATION_MESSAGE";
    static final String STATUS = "STATUS_REPORT";
    static final String LOCATION = "LOCATION_UPDATE";
    static final String SYNC_POLICY = "SYNC_POLICY";
    static final String CHANGE_POLICY = "CHANGE_POLICY";
    public static final String REBOOT = "REBOOT";
    public static final String SHUTDOWN = "SHUTDOWN";
    public static final String LAUNCH = "LAUNCH_APP";
    public static final String WIPE = "WIPE_COMPANY_DATA";
    public static final String RELINQUISH = "RELINQUISH_OWNERSHIP";
    static final String UPLOAD_LOG = "UPLOAD_LOG";

    final String deviceId;
    final String id;
    final String type;
    final Object args; // any JSON
    final long notBefore; // Unix milliseconds: when it was created. The agent does not check it
    final long deadline; // Unix milliseconds; 0: none

    Command(String deviceId, String id, String type, Object args, long notBefore, long deadline) {
        this.deviceId = deviceId;
        this.id = id;
        this.type = type;
        this.args = args;
        this.notBefore = notBefore;
        this.deadline = deadline;
    }

    static Command read(Fields f) throws JsonException {
        return new Command(f.text("deviceId"), f.text("id"), f.text("type"), f.map().get("args"), f.number("notBefore"),
                f.number("deadline"));
    }

    /** bare is what is remembered of a command that is over: only its id matters from now on. */
    Command bare() {
        return new Command("", id, type, null, 0, 0);
    }

    Map<String, Object> json() {
        return Fields.members("deviceId", deviceId, "id", id, "type", type, "args", args, "notBefore", notBefore, "deadline",
                deadline == 0 ? null : deadline);
    }

    /**
     * asksFirst reports the commands that end the relation: the service must know that the device
     * has them before they run, because nothing comes after.
     */
    boolean asksFirst() {
        return WIPE.equals(type) || RELINQUISH.equals(type);
    }

    /** fetches reports the commands that need the service again. */
    boolean fetches() {
        return SYNC_POLICY.equals(type) || CHANGE_POLICY.equals(type) || UPLOAD_LOG.equals(type);
    }

    /** powers reports the commands whose proof is another start of the machine. */
    boolean powers() {
        return REBOOT.equals(type) || SHUTDOWN.equals(type);
    }

    /** reports reports the commands whose result is what the next check-in carries. */
    boolean reports() {
        return STATUS.equals(type) || LOCATION.equals(type);
    }
}

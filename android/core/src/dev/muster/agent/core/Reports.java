package dev.muster.agent.core;

import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reports is what the next check-in reports about the device. */
final class Reports {
    private final Agent agent;
    /** status is to be sent with the next check-in; null: none. */
    Map<String, Object> status;

    /** location is to be sent with the next check-in; null: none. */
    Location location;
    List<String> capabilities; // those that the service knows; null: none
    /** MAX_TROUBLES is how many troubles are kept; those that come later are in the log only. */
    private static final int MAX_TROUBLES = 8;

    private final List<String> troubles = new ArrayList<>(); // of the agent itself, in every report of this process
    private boolean unreported; // the service lacks one of these troubles

    Reports(Agent agent) {
        this.agent = agent;
    }

    /** trouble notes once what an administrator should know of the agent itself. Any thread may call it. */
    void trouble(String what) {
        agent.log.error("trouble of the agent", what);
        synchronized (troubles) {
            if (troubles.size() < MAX_TROUBLES && !troubles.contains(what)) {
                troubles.add(what);
                unreported = true;
            }
        }
    }

    /** broke notes an unforeseen error that ended the work of a thread. */
    void broke(String thread, Throwable e) {
        trouble(Text.line(thread + " broke: " + Agent.crash(e)));
    }

    /** unreported reports whether the service lacks a trouble. */
    boolean unreported() {
        synchronized (troubles) {
            return unreported;
        }
    }

    /** collect collects a status report, or the location, for the next check-in. It returns the outcome in one line. */
    String collect(boolean locate) throws IOException {
        Report report = agent.device.report(new Reporting(agent.policy.applied.wanted, locate));
        long now = agent.link.serviceTime();
        if (locate) {
            if (report.location == null) {
                throw DeviceException.noFix();
            }
            location = report.location.by(now - agent.clock.now());
            return location.stale ? "last known location reported, " + (now - location.at) / 1000 + "s old" : "location reported";
        }
        Map<String, Object> values = new LinkedHashMap<>(report.values);
        synchronized (troubles) {
            if (!troubles.isEmpty()) {
                values.put("agentErrors", new ArrayList<>(troubles));
            }
            unreported = false; // as soon as this is delivered
        }
        status = Fields.members("at", now, "values", values, "specifications",
                report.specifications.isEmpty() ? null : report.specifications);
        return "status reported";
    }

    /** delivered notes that the service has answered a request. Every status report has the crash of the process before. */
    void delivered(Map<String, Object> request) {
        if (request.containsKey("status") && agent.options.crashReported != null) {
            agent.options.crashReported.run();
        }
        status = null;
        location = null;
    }
}

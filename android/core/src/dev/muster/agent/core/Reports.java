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

    Location fix;
    List<String> told; // the capabilities that the service knows; null: none
    private final List<String> troubles = new ArrayList<>(); // of the agent's own state, in every report of this process
    boolean untold; // of these troubles, the service knows none

    Reports(Agent agent) {
        this.agent = agent;
    }

    /** trouble notes what an administrator should know of the agent's own state. */
    void trouble(String what) {
        agent.log.error("damaged state", what);
        troubles.add(what);
        untold = true;
    }

    /** collect makes a report, or takes a fix, for the next check-in. */
    String collect(boolean location) throws IOException {
        Report report = agent.device.report(new Reporting(agent.policy.applied.wanted, location));
        long now = agent.link.serviceTime();
        if (location) {
            if (report.location == null) {
                throw DeviceException.noFix();
            }
            fix = report.location.by(now - agent.clock.now());
            return fix.stale ? "last known location reported, " + (now - fix.at) / 1000 + "s old" : "location reported";
        }
        Map<String, Object> values = new LinkedHashMap<>(report.values);
        if (!troubles.isEmpty()) {
            values.put("agentErrors", new ArrayList<>(troubles));
        }
        status = Fields.members("at", now, "values", values, "specifications",
                report.specifications.isEmpty() ? null : report.specifications);
        return "status reported";
    }

    void delivered(Map<String, Object> request) {
        untold = untold && !request.containsKey("status");
        status = null;
        fix = null;
    }
}

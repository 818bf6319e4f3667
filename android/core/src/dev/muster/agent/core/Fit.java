package dev.muster.agent.core;

import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Fit keeps check-ins within what the service takes, so that the device stays managed. */
final class Fit {
    /** MAX_BODY is the limit of a request's body in bytes. */
    private static final int MAX_BODY = 256 << 10;
    /** MAX_REPORTING is how large a check-in may be. The service keeps a report of MAX_BODY, and adds to it. */
    private static final int MAX_REPORTING = MAX_BODY - (16 << 10);
    /**
     * MAX_ACKS is the most acknowledgments in one check-in. With as many of the longest, and nothing that the device
     * reports of itself, it is smaller than MAX_BODY.
     */
    private static final int MAX_ACKS = 32;
    /** APPS_NOTE_SIZE is the most bytes that the note about left-out apps adds to a report. */
    private static final int APPS_NOTE_SIZE = 200;

    private final Agent agent;

    Fit(Agent agent) {
        this.agent = agent;
    }

    /**
     * sendCheckIn sends a check-in, with fewer apps if it is too large. What is too large nevertheless, or is refused for its
     * form, goes without what the device reports of itself and is not sent again. The request becomes what was sent.
     */
    Link.Reply sendCheckIn(Map<String, Object> request) throws IOException {
        Exception why;
        try {
            return agent.link.exchange("POST", "/checkin", fit(request));
        } catch (ExchangeException e) {
            Refusal refused = Refusal.in(e);
            if (refused == null || !refused.error.equals(Refusal.MALFORMED)) {
                throw e;
            }
            why = e;
        } catch (IllegalArgumentException e) {
            why = e;
        }
        agent.log.warn("the report is left out of the check-in", why);
        withoutReport(request);
        return agent.link.call("/checkin", request);
    }

    /** fit encodes a check-in. It throws IllegalArgumentException if that is too large, or if a value cannot be encoded. */
    private byte[] fit(Map<String, Object> request) throws IOException {
        byte[] body = Text.bytes(Json.write(request));
        if (body.length > MAX_REPORTING && request.containsKey("status")) {
            agent.log.warn("apps left out of a report that is too large", body.length);
            Map<String, Object> status = new LinkedHashMap<>(Fields.of(request.get("status")).map());
            status.put("values", fewerApps(Fields.of(status.get("values")), body.length - MAX_REPORTING + APPS_NOTE_SIZE));
            request.put("status", status);
            body = Text.bytes(Json.write(request));
        }
        if (body.length > MAX_REPORTING) {
            throw new IllegalArgumentException("a check-in of " + body.length + " bytes is too large");
        }
        return body;
    }

    /** fewerApps are the values of a report without as many apps as have that many bytes. */
    private static Map<String, Object> fewerApps(Fields values, int excess) throws JsonException {
        List<Fields> all = values.objects("applications");
        List<Object> apps = new ArrayList<>();
        for (Fields app : all) {
            apps.add(app.map());
        }
        if (apps.isEmpty()) {
            return values.map();
        }
        for (int left = excess; left > 0 && !apps.isEmpty(); ) {
            left -= Text.bytes(Json.write(apps.remove(apps.size() - 1))).length + ",".length();
        }
        List<String> troubles = values.texts("agentErrors");
        troubles.add("the report lists " + apps.size() + " of " + all.size() + " apps: a check-in has no room for more");
        Map<String, Object> fewer = new LinkedHashMap<>(values.map());
        fewer.put("applications", apps);
        fewer.put("agentErrors", troubles);
        return fewer;
    }

    /**
     * withoutReport takes out of a check-in what the device reports of itself, but for the states of its policy. The
     * commands that asked for a report have failed.
     */
    private void withoutReport(Map<String, Object> request) throws IOException {
        for (Entry e : agent.journal.entries(Entry.DONE)) {
            if (e.command.reports() && e.result.equals(Entry.DONE)) {
                agent.executor.finish(e, Entry.FAILED, "the service does not take the report");
            }
        }
        request.put("acks", someAcks());
        request.remove("status");
        request.remove("location");
        if (request.containsKey("policy")) {
            Map<String, Object> policy = agent.policy.applied.policy.json();
            List<Object> settings = new ArrayList<>();
            for (SettingReport s : agent.policy.applied.settings) {
                settings.add(new SettingReport(s.id, s.state, "").json());
            }
            policy.put("settings", settings);
            request.put("policy", policy);
        }
    }

    /** someAcks are the acknowledgments in the next check-in. */
    List<Object> someAcks() {
        List<Object> acks = agent.acks();
        return acks.subList(0, Math.min(acks.size(), MAX_ACKS));
    }
}

package dev.muster.agent.core;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** CheckIn sends a check-in and applies its answer. */
final class CheckIn {
    private final Agent agent;
    private final Fit fit;

    CheckIn(Agent agent) {
        this.agent = agent;
        fit = new Fit(agent);
    }

    /** The least and the longest time until the next check-in, in seconds, whatever an answer says. */
    private static final long MIN_NEXT = 1;

    private static final long MAX_NEXT = 3600;

    /** Round is an answered check-in whose policy, update and remaining commands are still to be carried out. */
    final class Round {
        private final String boot;
        private final Link.Reply reply;
        private final Object updateReport; // as it was sent; null: none
        /** next is the time until the next check-in, in milliseconds. */
        final long next;

        Round(String boot, Link.Reply reply, Object updateReport) throws IOException {
            this.boot = boot;
            this.reply = reply;
            this.updateReport = updateReport;
            next = Math.min(Math.max(reply.answer.number("nextSeconds"), MIN_NEXT), MAX_NEXT) * 1000;
        }

        /**
         * follow carries out what needs the service again, and brings the device to the policy that the answer assigns. A
         * command that cannot reach the service holds back neither the policy nor an update.
         */
        void follow() throws IOException {
            IOException deferred = null;
            try {
                agent.executor.execute(true);
            } catch (IOException e) {
                if (!Executor.unreached(e)) {
                    throw e;
                }
                deferred = e;
            }
            if (!agent.executor.goingDown(boot)) {
                deferred = applyAssigned(deferred);
            }
            if (deferred != null) {
                throw deferred;
            }
        }

        /** applyAssigned applies the policy and the update, and returns why the policy cannot be applied; else the error before. */
        private IOException applyAssigned(IOException before) throws IOException {
            IOException deferred = before;
            try {
                agent.policy.follow(reply.answer, reply.sequence, false);
            } catch (IOException e) {
                deferred = new IOException("cannot apply the policy: " + e.getMessage(), e);
            }
            try {
                agent.updates.receive(updateReport, reply.answer, reply.sequence);
            } catch (RestartException e) {
                throw e;
            } catch (IOException e) { // it holds back nothing else
                agent.log.warn("cannot update", e);
            }
            return deferred;
        }
    }

    /** round checks in once and runs the commands that need no further request. */
    Round round() throws IOException {
        String boot = agent.device.bootId();
        Map<String, Object> request = compose(boot);
        agent.gate.pass();
        long began = agent.clock.elapsed();
        Link.Reply reply;
        try {
            reply = fit.sendCheckIn(request);
            agent.reached = true;
        } catch (IOException e) {
            agent.reached = false;
            try {
                agent.policy.unanswered(boot, began);
            } catch (IOException full) { // it holds back nothing else
                agent.log.warn("cannot write down what was rolled back", full);
            }
            throw agent.refused(e);
        }
        agent.offered.clockUnverified = false;
        agent.eraser.answered();
        delivered(request, reply.answer, began);
        learn(agent, reply.answer);
        accept(agent, agent.offered.with(Refusal.envelopes(reply.answer, "commands")));
        agent.executor.execute(false);
        return new Round(boot, reply, request.get("update"));
    }

    /** compose gathers what the service does not know yet. */
    private Map<String, Object> compose(String boot) throws IOException {
        Applied applied = agent.policy.applied;
        if (agent.reports.status == null && (applied.unreported() || agent.reports.unreported())) {
            try {
                agent.reports.collect(false); // what the policy lets the device report has changed with it
            } catch (IOException e) {
                agent.log.warn("cannot report with the policy", e);
            }
        }
        List<Object> acks = fit.someAcks();
        Map<String, Object> request = bare(agent, boot);
        put(request, "acks", acks.isEmpty() ? null : acks);
        put(request, "status", agent.reports.status);
        put(request, "update", agent.updates.report());
        put(request, "location", agent.reports.location == null ? null : agent.reports.location.json());
        if (!applied.policy.none() && (!applied.reported || agent.reports.status != null)) { // a status report is about it, too
            Map<String, Object> policy = applied.policy.json();
            policy.put("settings", applied.settingsJson());
            request.put("policy", policy);
        }
        List<String> can = agent.device.capabilities();
        if (!can.equals(agent.reports.capabilities)) {
            request.put("capabilities", new ArrayList<Object>(can));
        }
        return request;
    }

    private static void put(Map<String, Object> request, String name, Object value) {
        if (value != null) {
            request.put(name, value);
        }
    }

    /** bare is a check-in that reports only which agent runs: the service forgets what it does not say. */
    static Map<String, Object> bare(Agent agent, String boot) {
        Map<String, Object> request = bare(agent.options.version, boot, agent.link);
        put(request, "build", agent.updates.build());
        return request;
    }

    /** bare is a check-in that reports nothing. */
    static Map<String, Object> bare(String version, String boot, Link link) {
        return Fields.members("agentVersion", version, "bootId", boot, "keyId", link.trust.newestKey());
    }

    static void learn(Agent agent, Fields answer) {
        try {
            agent.link.trust.learn(Refusal.envelopes(answer, "keys"));
        } catch (IOException e) {
            agent.log.warn("keys that the service announced are not trusted", e);
        }
    }

    /** delivered notes what has reached the service with a check-in that began at a moment of the clock of this start of the machine. */
    private void delivered(Map<String, Object> request, Fields answer, long began) throws IOException {
        agent.steps.before("before confirm");
        List<Entry> entries = new ArrayList<>();
        boolean ended = false;
        long now = agent.link.serviceTime();
        for (String id : answer.texts("acked")) {
            Entry e = agent.journal.entry(id);
            if (e != null && e.is(Entry.DONE)) {
                ended |= e.command.asksFirst() && e.result.equals(Entry.DONE);
                entries.add(e.confirmed(now));
            } else if (e != null && e.is(Entry.RECEIVED) && e.command.asksFirst()) {
                entries.add(e.acknowledged(now));
            }
        }
        if (!entries.isEmpty()) {
            agent.journal.write(entries.toArray(new Entry[0]));
        }
        if (ended) { // the service knows: nothing is left to be sent
            agent.destroy();
            throw new EndedException();
        }
        if (request.containsKey("capabilities")) {
            agent.reports.capabilities = Fields.copy(request.get("capabilities"));
        }
        agent.updates.delivered(request.get("update"), answer.object("updateTold"));
        agent.reports.delivered(request);
        Applied applied = agent.policy.applied;
        boolean holds = agent.policy.holds(began);
        if (holds) {
            applied.guard = null;
        }
        applied.reported |= request.containsKey("policy");
        if (holds || request.containsKey("policy")) {
            try {
                agent.policy.save();
            } catch (IOException e) { // it holds back nothing else: after the next start it is reported again
                agent.log.warn("cannot write down what the service has of the policy", e);
            }
        }
    }

    /**
     * accept takes commands into the journal. What is not signed by the service, or not for this device,
     * is dropped; what is known already is not run again.
     */
    static void accept(Agent agent, List<Envelope> sealed) throws IOException {
        List<Entry> entries = new ArrayList<>();
        for (Envelope envelope : sealed) {
            Command c;
            try {
                c = Command.read(agent.link.trust.open(envelope, Envelope.COMMAND));
            } catch (IOException e) {
                agent.log.warn("a command that the service did not sign is dropped", e);
                continue;
            }
            if (!c.deviceId.equals(agent.deviceId()) || c.id.isEmpty()) {
                agent.log.warn("a command for another device is dropped", c.type);
                continue;
            }
            Entry known = agent.journal.entry(c.id);
            if (known == null) {
                received(agent, c, entries);
            } else if (known.is(Entry.CONFIRMED)) {
                // The service has forgotten: acknowledge it again, and collect its report again.
                entries.add(c.reports() ? Entry.received(c, known.at) : known.unconfirmed());
            }
        }
        if (!entries.isEmpty()) {
            agent.steps.before("before received");
            agent.journal.write(entries.toArray(new Entry[0]));
        }
    }

    /** received adds a new command. One that cannot be kept has failed, and holds back no other. */
    private static void received(Agent agent, Command c, List<Entry> entries) {
        long now = agent.link.serviceTime();
        Entry e = Entry.received(c, now);
        if (!Journal.keeps(e)) {
            e = Entry.received(c.bare(), now).done(Entry.FAILED, "the device cannot keep this command: it is too large", now);
        }
        if (Journal.keeps(e)) {
            entries.add(e);
        } else {
            agent.log.warn("a command that cannot be kept is dropped", Text.line(c.id));
        }
    }
}

package dev.muster.agent.core;

import java.io.IOException;
import java.io.UnsupportedEncodingException;
import java.net.URLEncoder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/** Policy brings the device to the state that its policy asks for, and keeps it there. */
final class Policy {
    /** DRIFT_INTERVAL is how often the device's state is compared with its policy. */
    private static final long DRIFT_INTERVAL = 6L * 60 * 60 * 1000;
    /** GUARD_TIME is how long after a change of connectivity the device may be out of touch before it is taken back. */
    private static final long GUARD_TIME = 5L * 60 * 1000;
    /** SETTLE_TIME is how long such a change may take: a check-in that begins before tells nothing. */
    private static final long SETTLE_TIME = 20L * 1000;
    /** CONNECTIVITY are the settings that can cut a device off. */
    static final List<String> CONNECTIVITY =
            Arrays.asList("WIFI_STATE", "CONFIGURE_WIFI", "AIRPLANE_MODE", "VPN_CONFIGURATION", "MINIMUM_WIFI_SECURITY");

    private final Agent agent;
    Applied applied = new Applied();

    Policy(Agent agent) {
        this.agent = agent;
    }

    void save() throws IOException {
        agent.store.save(Store.APPLIED, applied.json());
    }

    /** follow brings the device to the policy that the answer to the request with the sequence number gives it. */
    void follow(Fields answer, long sequence, boolean force) throws IOException {
        if (agent.link.identity().companion()) {
            return;
        }
        Envelope sealed = Envelope.read(answer.object("assignment"));
        if (sealed == null && !force) {
            agent.log.warn("the service did not sign which policy this device is to have", "it keeps what it has");
            return;
        }
        Fields assignment = agent.link.trust.assignment(sealed, sequence);
        PolicyRef want = new PolicyRef(assignment.text("policyId"), assignment.number("version"));
        if (!has(want) || force) {
            converge(want, fetch(want, assignment.text("companyId")));
        }
    }

    /** has reports whether the device was brought to a policy, and no other has been begun since. */
    boolean has(PolicyRef want) {
        return want.same(applied.policy) && applied.touched.isEmpty();
    }

    /** fetch gets a policy's settings and checks that they are of the one that was named. */
    private Map<String, String> fetch(PolicyRef want, String company) throws IOException {
        Link.Reply reply = agent.link.exchange("GET", "/policy/" + escape(want.id) + "?v=" + want.version, new byte[0]);
        Fields p = agent.link.trust.open(Envelope.read(reply.answer), Envelope.POLICY);
        if (!p.text("id").equals(want.id) || p.number("version") < want.version) {
            throw new IOException("asked for policy " + want.id + " version " + want.version + ", got " + p.text("id") + " version "
                    + p.number("version"));
        }
        if (!p.text("companyId").equals(company)) {
            throw new IOException("policy " + want.id + " is of another company");
        }
        return p.textMap("settings");
    }

    private static String escape(String segment) {
        try {
            return URLEncoder.encode(segment, "UTF-8").replace("+", "%20");
        } catch (UnsupportedEncodingException e) {
            throw new IllegalStateException(e);
        }
    }

    /**
     * converge applies every setting, takes back what only the policy before had, and reads each back.
     * It may be repeated at any time.
     */
    void converge(PolicyRef ref, Map<String, String> want) throws IOException {
        Applied next = new Applied();
        next.policy = ref;
        next.wanted = want;
        Map<String, DeviceException> unread = new HashMap<>();
        next.guard = watch(want, unread);
        if (next.guard != null) {
            applied.guard = next.guard;
        }
        // What was before, and what will change, is on disk before anything does: after a crash in between it is
        // restored, and set or taken back.
        List<String> before = mayHaveSet();
        applied.touched.addAll(before);
        applied.touched.addAll(want.keySet());
        save();
        agent.steps.before("before apply");
        for (String id : before) {
            if (!want.containsKey(id)) {
                SettingReport r = Settings.apply(agent.device, id, "");
                if (open(r)) {
                    next.settings.add(r); // what was taken back without trouble is left out
                }
            } else if (Settings.contradicts(want, id)) {
                Settings.apply(agent.device, id, ""); // before the setting that it contradicts; the report follows below
            }
        }
        for (String id : new TreeMap<>(want).keySet()) {
            DeviceException why = unread.get(id);
            next.settings.add(why == null ? Settings.applyOf(agent.device, want, id) // what was before could not be restored:
                    : new SettingReport(id, SettingReport.FAILED,
                            "not set, because what the device has cannot be read: " + why.getMessage()));
        }
        checked(next, agent.device.bootId(), next.unseen());
        if (next.guard != null) {
            next.guard = guard(next.bootId, next.guard.before);
        }
        applied = next;
        agent.steps.before("before applied");
        save();
    }

    /**
     * mayHaveSet lists the settings that a policy set: as recorded, with those that were about to be set and those
     * that could not be taken back; or, after the record was damaged, all that there are.
     */
    private List<String> mayHaveSet() {
        if (applied.lost) {
            return agent.device.settings();
        }
        Set<String> all = new LinkedHashSet<>(applied.wanted.keySet());
        all.addAll(applied.touched);
        for (SettingReport s : applied.settings) {
            if (!s.is(SettingReport.APPLIED)) {
                all.add(s.id);
            }
        }
        return new ArrayList<>(all);
    }

    /** open reports whether a setting that was to be taken back may still be set. */
    private static boolean open(SettingReport back) {
        return back.is(SettingReport.FAILED) || back.is(SettingReport.PENDING);
    }

    /**
     * watch returns what to restore if the change cuts the device off; null if no connectivity changes. It reads what a
     * policy sets or may have set: nothing else changes. What cannot be read now goes to unread. It throws where a setting
     * cannot be seen yet (LOCKED).
     */
    private Applied.Guard watch(Map<String, String> want, Map<String, DeviceException> unread) throws IOException {
        Map<String, String> before = new LinkedHashMap<>();
        boolean changes = false;
        List<String> set = mayHaveSet();
        for (String id : CONNECTIVITY) {
            if (!want.containsKey(id) && !set.contains(id)) {
                continue;
            }
            try {
                String now = agent.device.read(id);
                before.put(id, now);
                changes |= !Settings.same(now, want.get(id) == null ? "" : want.get(id));
            } catch (DeviceException e) {
                if (e.kind == DeviceException.Kind.LOCKED) {
                    throw e;
                }
                if (!e.forGood()) {
                    unread.put(id, e);
                }
            }
        }
        if (applied.guard != null) { // it still waits: what was before it is restored
            before.putAll(applied.guard.before);
            changes = true;
        }
        return changes ? guard(agent.device.bootId(), before) : null;
    }

    /**
     * restore repairs drift. In an agent that does not run, it takes connectivity back that cut the device off; in one that
     * runs, the check-in that follows decides that, because the device may have slept since: see unanswered.
     */
    void restore(String boot) throws IOException {
        if (applied.guard != null && guardIsOver(boot, agent.clock.elapsed()) && !agent.gate.isOpen()) {
            rollBack();
            return;
        }
        if (applied.policy.none() || boot.equals(applied.bootId) && within(agent.clock.elapsed(), applied.checkAt, DRIFT_INTERVAL)) {
            return;
        }
        repair(boot);
    }

    /** unanswered takes connectivity back that cut the device off, as a check-in failed that began after the guard's time. */
    void unanswered(String boot, long began) throws IOException {
        if (applied.guard == null || !guardIsOver(boot, agent.clock.elapsed())) {
            return;
        }
        agent.hint(); // the next check-in decides, or is to tell the service
        if (guardIsOver(boot, began)) {
            rollBack();
        }
    }

    private void rollBack() throws IOException {
        for (Map.Entry<String, String> e : applied.guard.before.entrySet()) {
            Settings.apply(agent.device, e.getKey(), e.getValue()); // one that cannot be restored holds back no other
        }
        rolledBack(applied.guard.before);
        applied.guard = null;
        applied.reported = false;
        save();
    }

    /**
     * rolledBack notes that connectivity was taken back. Among what was restored may be a setting of the policy before, which
     * this one has not: it is set again, and is reported, so that the next policy takes it back.
     */
    private void rolledBack(Map<String, String> restored) {
        Map<String, String> left = new LinkedHashMap<>(restored);
        left.values().removeAll(Collections.singleton(""));
        for (int i = 0; i < applied.settings.size(); i++) {
            String id = applied.settings.get(i).id;
            left.remove(id);
            if (CONNECTIVITY.contains(id)) {
                applied.settings.set(i, rolledBack(id));
            }
        }
        for (String id : left.keySet()) {
            applied.settings.add(rolledBack(id));
        }
    }

    private static SettingReport rolledBack(String id) {
        return new SettingReport(id, SettingReport.ROLLED_BACK, "it cut the device off");
    }

    /** doubt has the next restore compare the device with its policy. */
    void doubt() throws IOException {
        if (!applied.policy.none()) {
            applied.checkAt = 0;
            save();
        }
    }

    /** tells is from when on a check-in that begins tells whether the device is still in touch. */
    static long tells(Applied.Guard guard) {
        return guard.until - GUARD_TIME + SETTLE_TIME;
    }

    /**
     * holds reports whether the answer to a check-in that began at a moment proves that a change of connectivity left
     * the device in touch. An agent that does not run asks once.
     */
    boolean holds(long began) {
        return applied.guard != null && (!agent.gate.isOpen() || began >= tells(applied.guard));
    }

    private Applied.Guard guard(String boot, Map<String, String> before) {
        return new Applied.Guard(boot, agent.clock.elapsed() + GUARD_TIME, before);
    }

    /**
     * guardIsOver reports whether a guard's time is over at a moment. It gives a guard its whole time again after a restart
     * of the machine, which sets its clock back.
     */
    private boolean guardIsOver(String boot, long at) throws IOException {
        if (!boot.equals(applied.guard.bootId)) {
            applied.guard = guard(boot, applied.guard.before);
            save();
        }
        return !within(at, applied.guard.until, GUARD_TIME);
    }

    /** within reports whether a moment is still to come at another, and is not farther away than it can have been set. */
    private static boolean within(long at, long until, long most) {
        long left = until - at;
        return left > 0 && left <= most;
    }

    /** checked notes that the settings were looked at. Where one could not be seen yet, the next check-in looks again. */
    private void checked(Applied a, String boot, boolean unseen) {
        a.bootId = boot;
        a.checkAt = unseen ? 0 : agent.clock.elapsed() + DRIFT_INTERVAL;
    }

    /**
     * repair compares every setting with the device and applies those that moved. What cannot be seen yet stays as it was.
     * Where a setting of connectivity failed, it applies the policy again, with a guard.
     */
    private void repair(String boot) throws IOException {
        boolean unseen = false;
        for (int i = 0; i < applied.settings.size(); i++) {
            SettingReport s = applied.settings.get(i);
            if (s.is(SettingReport.ROLLED_BACK) || s.is(SettingReport.UNSUPPORTED) || s.is(SettingReport.NOT_APPLICABLE)
                    || Settings.steersAgent(s.id)) {
                continue;
            }
            if (s.is(SettingReport.FAILED) && CONNECTIVITY.contains(s.id)) {
                converge(applied.policy, applied.wanted);
                return;
            }
            String want = applied.wanted.get(s.id) == null ? "" : applied.wanted.get(s.id);
            try {
                if (Settings.holds(agent.device, s.id, want) && s.is(SettingReport.APPLIED)) {
                    continue;
                }
            } catch (DeviceException locked) {
                unseen = true;
                continue;
            }
            SettingReport again = applied.wanted.containsKey(s.id) ? Settings.applyOf(agent.device, applied.wanted, s.id)
                    : Settings.apply(agent.device, s.id, "");
            if (!again.same(s)) {
                applied.settings.set(i, again);
                applied.reported = false;
            }
        }
        checked(applied, boot, unseen);
        save();
    }

    /** release takes back what the policy set. */
    void release() throws IOException {
        if (agent.link.identity().companion()) {
            return;
        }
        try {
            agent.device.act(new Action(Command.RELINQUISH, "", null));
        } catch (DeviceException e) {
            if (e.kind != DeviceException.Kind.UNSUPPORTED) {
                throw e;
            }
        }
        for (String setting : mayHaveSet()) {
            try {
                agent.device.apply(setting, "");
            } catch (DeviceException e) {
                if (!e.forGood()) {
                    throw e;
                }
            }
        }
    }
}

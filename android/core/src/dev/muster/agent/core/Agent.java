package dev.muster.agent.core;

import java.io.Closeable;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Agent is one enrolled device's agent: it keeps in touch, carries out signed commands exactly once,
 * and brings the device to the state that its policy asks for. What it has promised survives a crash
 * at any point: see Journal.
 */
public final class Agent implements Closeable {
    /** MAX_ROUNDS bounds the check-ins of one once: each sends the service something. */
    private static final int MAX_ROUNDS = 20;
    /** MAX_ONCE is how long the device stays awake for one once, in milliseconds. */
    static final long MAX_ONCE = 3 * 60_000;

    final Options options;
    final Device device;
    final Clock clock;
    final Log log;
    final Steps steps;
    final Store store;
    final Link link;
    final Journal journal;
    final Policy policy;
    final Reports reports;
    final Executor executor;
    final Eraser eraser;
    final Updates updates;
    private final Rotation rotation;
    private final CheckIn checkIn;
    private final Hint woken = new Hint();
    final Offered offered = new Offered(this);
    final Gate gate = new Gate();
    /** reached is whether the service answered the latest check-in, whatever came of it. */
    volatile boolean reached;

    /** Agent opens an enrolled device's agent. */
    public Agent(Options options) throws IOException {
        this.options = options;
        device = new SafeDevice(options.device);
        clock = options.clock;
        log = options.log;
        steps = options.steps;
        store = new Store(options.directory);
        link = new Link(store, options.transport, options.keys, clock);
        try {
            store.sweepLeftovers();
        } catch (IOException e) { // they cost space only
            log.warn("leftovers not removed", e);
        }
        journal = Journal.open(store.path(Store.JOURNAL), link.serviceTime());
        policy = new Policy(this);
        reports = new Reports(this);
        executor = new Executor(this);
        eraser = new Eraser(this);
        rotation = new Rotation(link);
        checkIn = new CheckIn(this);
        updates = updates();
        if (!options.crash.isEmpty()) {
            reports.trouble("the process before this one broke: " + options.crash);
        }
        if (journal.skipped() > 0) {
            reports.trouble("the journal was damaged: " + journal.skipped() + " lines were passed over");
        }
        try {
            Fields f = store.load(Store.APPLIED);
            policy.applied = f == null ? new Applied() : Applied.read(f);
        } catch (DamagedException | JsonException e) { // it repeats what the service and the device know
            policy.applied = Applied.damaged();
            reports.trouble("the record of the applied policy was damaged: the policy is applied again");
        } catch (IOException e) {
            journal.close();
            throw e;
        }
    }

    /** updates opens what an agent before has noted; the journal is closed where that fails. */
    private Updates updates() throws IOException {
        try {
            return new Updates(this);
        } catch (IOException | RuntimeException e) {
            journal.close();
            throw e;
        }
    }

    /** crash is an unforeseen error, with the place where it arose, in one line. */
    public static String crash(Throwable e) {
        StackTraceElement[] at = e.getStackTrace();
        return Text.line(at.length == 0 ? String.valueOf(e) : e + " at " + at[0]);
    }

    /** hint has the agent check in now. It does not block. */
    public void hint() {
        woken.raise();
    }

    Hint woken() {
        return woken;
    }

    /** deviceId is the device's id at the service. */
    public String deviceId() {
        return link.identity().deviceId;
    }

    @Override
    public void close() throws IOException {
        link.close(); // the wake stream's thread or a download may go on for a while
        journal.close();
    }

    /**
     * once checks in, carries out what it is given, and checks in again until the service has every
     * acknowledgment. It returns when to come back, in milliseconds.
     */
    public synchronized long once() throws IOException {
        Disk.keepReserve(options.directory);
        executor.recover();
        try {
            eraser.eraseAgain();
            offered.take();
        } catch (IOException full) { // it holds back no check-in, which brings the commands again
            log.warn("cannot carry out commands", full);
        }
        IOException deferred = prepare();
        for (int i = 0; i < MAX_ROUNDS; i++) {
            List<Object> sent = ackStates();
            CheckIn.Round round = checkIn.round();
            long next = round.next;
            List<Entry> started = journal.entries(Entry.STARTED);
            for (Entry e : started) { // the machine is going down, has come up again, or should be erased
                next = Math.min(next, executor.looksAgain(e));
            }
            if (!started.isEmpty()) {
                executor.recover();
            }
            List<Object> unsent = ackStates();
            if (!sent.containsAll(unsent)) {
                continue; // acknowledgments go before the policy, which may take long
            }
            round.follow();
            if (deferred != null) {
                throw deferred;
            }
            if (!hasUnsent()) {
                return next;
            }
            if (!unsent.isEmpty() && unsent.size() == sent.size() && acks().size() == unsent.size() && !policy.applied.unreported()) {
                throw new IOException("the service did not confirm what it was told about commands");
            }
        }
        return Executor.RESTART_WAIT;
    }

    /** prepare does what goes before a check-in. It returns the error of a request that failed, to be thrown after the check-in. */
    private IOException prepare() throws IOException {
        IOException deferred = null;
        try {
            Order.obey(this);
        } catch (IOException e) {
            deferred = defer(e);
        }
        try {
            rotation.due();
        } catch (IOException e) {
            deferred = defer(e);
        } catch (RuntimeException e) { // of the system that makes and holds keys
            reports.broke("the change of the key", e);
            deferred = new IOException("cannot change the key: " + e.getMessage(), e);
        }
        return deferred;
    }

    /** defer returns the error to throw after the check-in. It throws one that means that there is no check-in. */
    private IOException defer(IOException e) throws IOException {
        IOException then = refused(e);
        if (then instanceof EndedException || then instanceof SupersededException) {
            throw then;
        }
        return then;
    }

    /** ackStates are the acks as command ids and states: what a service confirms. */
    private List<Object> ackStates() {
        List<Object> all = new ArrayList<>();
        for (Object ack : acks()) {
            Map<?, ?> a = (Map<?, ?>) ack;
            all.add(a.get("commandId") + " " + a.get("state"));
        }
        return all;
    }

    /** hasUnsent reports whether the service lacks something that the agent knows. */
    private boolean hasUnsent() {
        return !acks().isEmpty() || policy.applied.unreported() || reports.status != null || reports.location != null || updates.unsent();
    }

    /** acks are the acknowledgments that the service has not confirmed. */
    List<Object> acks() {
        List<Object> acks = new ArrayList<>();
        for (Entry e : journal.entries(Entry.DONE)) {
            acks.add(Fields.members("commandId", e.command.id, "state", e.result, "outcome", Fields.some(e.outcome), "at", e.at));
        }
        for (Entry e : journal.entries(Entry.RECEIVED)) {
            if (e.command.asksFirst() && !e.accepted) {
                acks.add(Fields.members("commandId", e.command.id, "state", Entry.ACCEPTED, "at", e.at));
            }
        }
        return acks;
    }

    /**
     * refused handles an answer other than success, and returns what to throw. Only a tombstone that the
     * service has signed ends the relation.
     */
    IOException refused(IOException e) throws IOException {
        String action = link.trust.tombstone(Refusal.in(e));
        if (action.isEmpty()) {
            return LostException.of(e);
        }
        if (link.identity().companion()) {
            letGo(); // it has no more than itself to give up
            return new EndedException();
        }
        switch (action) {
            case "wipe":
                return eraser.eraseForGood();
            case "unenroll":
                letGo();
                return new EndedException();
            case "superseded":
                return new SupersededException();
            default:
                return e;
        }
    }

    /** letGo gives the device back and forgets the service. Each step may be repeated. */
    void letGo() throws IOException {
        policy.release();
        steps.before("before destroy");
        destroy();
    }

    /** destroy forgets the service. */
    void destroy() throws IOException {
        store.destroy();
        link.forgetKeys();
    }

    /** rotate gives the device a new key. */
    public synchronized void rotate() throws IOException {
        rotation.rotate();
    }

    /** beginRotation has the next check-in change the key. */
    void beginRotation() throws IOException {
        rotation.begin();
    }

    /** unenroll ends the enrollment at the service and releases the device. */
    public synchronized void unenroll() throws IOException {
        try {
            link.call("/unenroll", Fields.members());
        } catch (IOException e) {
            IOException then = refused(e);
            if (then instanceof EndedException) {
                return; // it was over already, or an open wipe came first: done as the service signed it
            }
            throw then;
        }
        letGo();
    }

    /**
     * guarded is a wait under the lock-out guard. After a check-in that was answered it ends when the next one tells
     * whether the device is still in touch, else when the guard's time is over, unless it is over already.
     */
    synchronized long guarded(long wait, boolean answered) {
        Applied.Guard guard = policy.applied.guard;
        if (guard == null) {
            return wait;
        }
        long left = (answered ? Policy.tells(guard) : guard.until) - clock.elapsed();
        return answered || left > 0 ? Math.min(wait, Math.max(0, left)) : wait;
    }
}

package dev.muster.agent.core;

import java.io.IOException;

/** Executor carries out commands, each with its start and its end on disk. */
final class Executor {
    /** DOWN_TIME is how long after a restart was ordered the machine may take to go down. What is begun in between would be lost. */
    private static final long DOWN_TIME = 60_000;
    /** RESTART_WAIT is how soon to look again after a restart was ordered, in milliseconds. */
    static final long RESTART_WAIT = 1000;
    /** MAX_SKEW is how far off a clock may be that the service does not correct. */
    private static final long MAX_SKEW = 10 * 60_000;

    private final Agent agent;
    private boolean recovered; // what the last process left behind is settled

    Executor(Agent agent) {
        this.agent = agent;
    }

    /**
     * goingDown reports whether a restart is under way since the start of the machine with the boot id,
     * or the device is to be erased: then nothing else is begun.
     */
    boolean goingDown(String boot) {
        for (Entry e : agent.journal.entries(Entry.STARTED)) {
            if (e.command.type.equals(Command.WIPE) || restarts(e, boot)) {
                return true;
            }
        }
        return false;
    }

    private boolean restarts(Entry e, String boot) {
        long since = agent.link.serviceTime() - e.at;
        return e.command.powers() && e.bootId.equals(boot) && since >= 0 && since < DOWN_TIME;
    }

    /** looksAgain is when to look again, in milliseconds, whether a command that is STARTED has shown its effect. */
    long looksAgain(Entry e) {
        return e.command.type.equals(Command.WIPE) ? Eraser.RETRY_INTERVAL : restarts(e, e.bootId) ? RESTART_WAIT : DOWN_TIME;
    }

    /**
     * recover settles what a crash, or a restart that was ordered, left STARTED. At the agent's start
     * whatever was interrupted runs again; later on only the machine's own restart settles anything.
     */
    void recover() throws IOException {
        String boot = agent.device.bootId();
        try {
            agent.journal.settle();
        } catch (IOException full) { // it holds back nothing else
            agent.log.warn("cannot write down what became of commands", full);
        }
        try {
            for (Entry e : agent.journal.entries(Entry.STARTED)) {
                resume(e, boot);
            }
            reportAgain();
            recovered = true;
        } catch (IOException full) { // it holds back no check-in
            agent.log.warn("cannot resume commands", full);
        }
        try {
            agent.policy.restore(boot);
        } catch (IOException e) { // it holds back nothing else
            agent.log.warn("cannot restore what the policy set", e);
        }
        try {
            execute(false);
        } catch (IOException e) { // as above: they are tried again
            agent.log.warn("cannot carry out commands", e);
        }
    }

    /**
     * reportAgain makes the reports again that a process before this one made and may not have delivered:
     * they were in its memory, while the journal says that the command is done.
     */
    private void reportAgain() throws IOException {
        if (recovered) {
            return;
        }
        for (Entry e : agent.journal.entries(Entry.DONE)) {
            if (e.command.reports() && e.result.equals(Entry.DONE)) {
                run(e);
            }
        }
    }

    /** resume settles one command that was STARTED. */
    private void resume(Entry e, String boot) throws IOException {
        boolean power = e.command.powers();
        if (power && !e.bootId.equals(boot)) {
            boolean off = e.command.type.equals(Command.SHUTDOWN);
            finish(e, Entry.DONE, off ? "the device was switched off, and is on again" : "the device has restarted");
        } else if (power && late(e.command)) {
            finish(e, Entry.FAILED, "interrupted, and its time has run out");
        } else if (!recovered && !e.command.type.equals(Command.WIPE)) { // a wipe is under way: see Eraser
            // Every other command may run again, and so may a restart that never came: the effect is the same.
            agent.journal.write(e.again());
        }
    }

    /**
     * late reports whether a command's deadline has surely passed. The service does not correct a clock that
     * is less than MAX_SKEW off, so the agent allows as much; and the service itself hands out nothing
     * that has expired.
     */
    private boolean late(Command c) {
        return c.deadline != 0 && agent.link.serviceTime() > c.deadline + MAX_SKEW;
    }

    /**
     * execute runs what was received, oldest first; what needs the service again only where it is in touch. What
     * the service is not there for holds back nothing else.
     */
    void execute(boolean inTouch) throws IOException {
        IOException late = null;
        for (Entry e : agent.journal.entries(Entry.RECEIVED)) {
            if (goingDown(agent.device.bootId())) {
                break;
            }
            if (e.command.asksFirst() && !e.accepted || !inTouch && e.command.fetches()) {
                continue; // the service does not know yet that we have it, or is to be asked
            }
            if (late(e.command)) {
                if (!agent.offered.clockUnverified) { // else the check-in that follows corrects the clock first
                    fail(e, "expired before the device could run it");
                }
                continue;
            }
            try {
                run(e);
            } catch (IOException failed) {
                if (!unreached(failed)) {
                    throw failed;
                }
                late = failed;
            }
        }
        if (late != null) {
            throw late;
        }
    }

    /** run carries out one command. */
    private void run(Entry received) throws IOException {
        Entry e = received.started(agent.device.bootId(), agent.link.serviceTime());
        agent.steps.before("before started");
        agent.journal.write(e);
        agent.steps.before("after started");
        String outcome;
        try {
            outcome = perform(e.command);
        } catch (IOException failed) {
            agent.steps.before("before done");
            if (unreached(failed)) { // it needs the service and is not done: again, once that is there
                agent.journal.write(e.again());
                throw failed;
            }
            boolean ordered = failed instanceof DeviceException && ((DeviceException) failed).kind == DeviceException.Kind.ORDERED;
            if (!ordered) { // what was ordered is proved by the device's silence
                fail(e, failed.getMessage());
            }
            return;
        }
        agent.steps.before("before done");
        if (!e.command.powers()) { // those are proved by the next start
            finish(e, Entry.DONE, outcome);
        }
    }

    /** unreached reports whether an error is that of a request to the service. */
    static boolean unreached(Throwable e) {
        for (Throwable at = e; at != null; at = at.getCause()) {
            if (at instanceof ExchangeException) {
                return true;
            }
        }
        return false;
    }

    /**
     * fail ends a command as FAILED. A relinquish or a wipe may have taken settings back, now or before a crash: the
     * policy is checked at once, also if the process ends in between.
     */
    private void fail(Entry e, String why) throws IOException {
        boolean lifted = e.command.asksFirst();
        if (lifted) {
            agent.policy.doubt();
        }
        finish(e, Entry.FAILED, why);
        if (lifted) {
            agent.policy.restore(agent.device.bootId());
        }
    }

    void finish(Entry e, String result, String outcome) throws IOException {
        Entry done = e.done(result, Text.line(outcome), agent.link.serviceTime());
        agent.log.info("command ended", e.command.type + " " + Text.line(e.command.id) + " " + result + " " + done.outcome);
        agent.journal.write(done);
    }

    /** perform does what the command says. What the agent does not carry out itself is the device's. */
    private String perform(Command c) throws IOException {
        if (agent.link.identity().companion() && !c.type.equals(Command.MESSAGE) && !c.reports()) {
            throw DeviceException.unsupported("a companion has no power over its device");
        }
        switch (c.type) {
            case Command.STATUS:
            case Command.LOCATION:
                return agent.reports.collect(c.type.equals(Command.LOCATION));
            case Command.SYNC_POLICY:
            case Command.CHANGE_POLICY:
                return refollow();
            case Command.UPLOAD_LOG:
                return uploadLog(c.id);
            case Command.RELINQUISH:
                agent.policy.release();
                return "released";
            default:
                return agent.device.act(new Action(c.type, c.id, c.args));
        }
    }

    /**
     * uploadLog sends what was logged lately to the service, for one command. The service keeps it once, also if the
     * answer is lost and it is sent again.
     */
    private String uploadLog(String commandId) throws IOException {
        if (agent.options.kept == null) {
            throw DeviceException.unsupported("this agent keeps no log");
        }
        try {
            agent.link.exchange("POST", Link.LOG + commandId, agent.options.kept.text());
        } catch (ExchangeException e) {
            Refusal refused = Refusal.in(e);
            if (refused != null && (refused.error.equals(Refusal.NOT_FOUND) || refused.error.equals(Refusal.MALFORMED))) { // now or later
                throw DeviceException.failed("the service does not take the log: " + refused.error);
            }
            throw e;
        }
        return "log uploaded";
    }

    /** refollow asks for the assigned policy and applies it, also if it is the one that the device has. */
    private String refollow() throws IOException {
        Link.Reply reply = agent.link.call("/checkin", CheckIn.bare(agent, agent.device.bootId()));
        CheckIn.learn(agent, reply.answer);
        CheckIn.accept(agent, Refusal.envelopes(reply.answer, "commands"));
        agent.policy.follow(reply.answer, reply.sequence, true);
        return "policy version " + agent.policy.applied.policy.version + " applied";
    }
}

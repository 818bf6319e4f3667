package dev.muster.agent.core;

import java.util.Map;

/**
 * Entry is one command in the journal, as it stands.
 *
 * <pre>RECEIVED, STARTED (boot id), DONE (result), CONFIRMED</pre>
 *
 * Each step is on disk before the next begins. A command that is CONFIRMED is remembered for thirty
 * days, so that a late second delivery does nothing.
 */
final class Entry {
    static final String RECEIVED = "RECEIVED";
    static final String STARTED = "STARTED";
    static final String DONE = "DONE";
    static final String CONFIRMED = "CONFIRMED";

    static final String ACCEPTED = "ACCEPTED";
    static final String FAILED = "FAILED";

    final Command command;
    final String stage;
    final String bootId; // when it was started
    final String result; // with DONE: DONE or FAILED
    final String outcome;
    final long at; // Unix milliseconds of the latest step
    final boolean accepted;

    private Entry(Command command, String stage, String bootId, String result, String outcome, long at, boolean accepted) {
        this.command = command;
        this.stage = stage;
        this.bootId = bootId;
        this.result = result;
        this.outcome = outcome;
        this.at = at;
        this.accepted = accepted;
    }

    static Entry received(Command command, long at) {
        return new Entry(command, RECEIVED, "", "", "", at, false);
    }

    /** again is a command that may run again: the service knows that the device has it. */
    Entry again() {
        return new Entry(command, RECEIVED, bootId, result, outcome, at, true);
    }

    Entry started(String boot, long now) {
        return new Entry(command, STARTED, boot, result, outcome, now, accepted);
    }

    Entry done(String how, String what, long now) {
        return new Entry(command, DONE, bootId, how, what, now, accepted);
    }

    Entry confirmed(long now) {
        return new Entry(command, CONFIRMED, bootId, result, outcome, now, accepted);
    }

    /** acknowledged is a wipe or relinquish of which the service knows that the device has it. */
    Entry acknowledged(long now) {
        return new Entry(command, stage, bootId, result, outcome, now, true);
    }

    /** unconfirmed is a finished command that is to be reported again. */
    Entry unconfirmed() {
        return new Entry(command, DONE, bootId, result, outcome, at, accepted);
    }

    Entry bare() {
        return new Entry(command.bare(), stage, bootId, result, outcome, at, accepted);
    }

    boolean is(String wanted) {
        return stage.equals(wanted);
    }

    static Entry read(Fields f) throws JsonException {
        Fields command = f.object("command");
        if (command == null) {
            throw new JsonException("cannot read an entry: it has no command");
        }
        return new Entry(Command.read(command), f.text("stage"), f.text("bootId"), f.text("result"), f.text("outcome"), f.number("at"),
                f.flag("accepted"));
    }

    Map<String, Object> json() {
        return Fields.members("command", command.json(), "stage", stage, "bootId", Fields.some(bootId), "result",
                Fields.some(result), "outcome", Fields.some(outcome), "at", at, "accepted", accepted ? Boolean.TRUE : null);
    }
}

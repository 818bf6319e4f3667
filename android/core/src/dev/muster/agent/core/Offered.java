package dev.muster.agent.core;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * Offered holds the commands that came on the wake stream until the next once takes them, before the
 * check-in that acknowledges them.
 */
final class Offered {
    /** MAX is how many commands wait. What is beyond them comes with a check-in. */
    private static final int MAX = 20;

    private final Agent agent;
    private List<Envelope> waiting = new ArrayList<>();
    private List<Envelope> unopened = new ArrayList<>(); // signed with a key that the next check-in may announce
    /** clockUnverified is whether the stream brought commands since a check-in was answered, which corrects the clock. */
    boolean clockUnverified;

    Offered(Agent agent) {
        this.agent = agent;
    }

    /** add has the agent take a command, and check in. It does not block; any thread may call it. */
    void add(Envelope command) {
        synchronized (this) {
            if (waiting.size() < MAX) {
                waiting.add(command);
            }
        }
        agent.hint();
    }

    /**
     * take takes the commands and carries out what does not need the service. What seems late is left to the check-in
     * that follows: the device's clock may have been set since the last one.
     */
    void take() throws IOException {
        List<Envelope> all;
        synchronized (this) {
            all = waiting;
            waiting = new ArrayList<>();
        }
        List<Envelope> known = new ArrayList<>();
        for (Envelope e : all) {
            if (agent.link.trust.trusts(e.keyId)) {
                known.add(e);
            } else if (unopened.size() < MAX) {
                unopened.add(e);
            }
        }
        if (!known.isEmpty()) {
            clockUnverified = true;
            CheckIn.accept(agent, known);
            agent.executor.execute(false);
        }
    }

    /** with returns the commands of an answer, after those that waited for its keys. */
    List<Envelope> with(List<Envelope> commands) {
        List<Envelope> all = unopened;
        unopened = new ArrayList<>();
        all.addAll(commands);
        return all;
    }
}

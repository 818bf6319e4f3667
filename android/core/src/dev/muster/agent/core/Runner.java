package dev.muster.agent.core;

import java.io.IOException;
import java.util.Random;

/**
 * Runner keeps the device in touch: it checks in when woken and at the intervals that the service
 * sets. A lost wake-up costs time, nothing else.
 */
public final class Runner {
    private final Agent agent;
    private final Backoff backoff = new Backoff(new Random());
    private final WakeStream stream;
    private volatile boolean stopped;

    public Runner(Agent agent) {
        this.agent = agent;
        stream = new WakeStream(agent, backoff);
    }

    /**
     * run returns when it is stopped, and throws EndedException once the enrollment has ended. It
     * listens for wake-ups once it has checked in for the first time: two requests at the same moment may
     * arrive in the other order, and the service refuses the one with the lower number.
     */
    public void run() throws IOException, InterruptedException {
        try {
            agent.gate.open();
            agent.log.info("agent started", agent.options.version);
            for (boolean first = true; !stopped; first = false) {
                long next;
                try (Awake.Held held = agent.options.awake.hold(Agent.MAX_ONCE)) {
                    next = agent.guarded(backoff.jitter(agent.once()), true);
                    backoff.answered();
                } catch (EndedException | RestartException e) {
                    throw e;
                } catch (IOException e) {
                    next = agent.guarded(backoff.failed(Backoff.elapsed(), e, false), false);
                    if (agent.reached) {
                        backoff.reached();
                    }
                    agent.log.warn("cannot check in", e);
                }
                if (first) {
                    stream.start();
                }
                if (!stopped) {
                    agent.woken().await(next);
                }
            }
        } finally {
            stream.stop();
        }
    }

    /** moved ends the pause after failures, because the device changed its network. Any thread may call it. */
    public void moved() {
        backoff.moved();
        agent.hint();
        stream.moved();
    }

    /** stop has run return. Any thread may call it. */
    public void stop() {
        stopped = true;
        agent.hint();
    }
}

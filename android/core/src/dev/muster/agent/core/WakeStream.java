package dev.muster.agent.core;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.Map;

/**
 * WakeStream keeps the wake stream open, hands over its commands and turns each hint into a check-in. Without wake-ups a
 * command takes up to a quarter of an hour, so the log has one warning; the next comes after a stream
 * has held for that long.
 */
final class WakeStream implements Runnable {
    /** GONE is how long it waits when the service says that the device has ended. A check-in learns, signed, whether that is so. */
    private static final long GONE = 60_000;
    /** SILENCE is how long the stream may be silent: the service comments on it at least every minute. */
    private static final int SILENCE = 3 * 60_000;
    /** SOON is how much earlier than a minute the service comments on a stream. */
    private static final long SOON = 10_000;
    /** LONGEST is how much of a line counts: what is longer is padding against proxies that buffer. */
    private static final int LONGEST = 256;
    /** LONGEST_COMMAND is how much of a command's line counts. */
    private static final int LONGEST_COMMAND = (64 << 10) + LONGEST;

    private final Agent agent;
    private final Backoff backoff;
    private final Hint awake = new Hint(); // the pause ends
    private volatile boolean stopped;
    private volatile Transport.Answer open;

    WakeStream(Agent agent, Backoff backoff) {
        this.agent = agent;
        this.backoff = backoff;
    }

    void start() {
        Thread listening = new Thread(this, "wake stream");
        listening.setDaemon(true);
        listening.start();
    }

    /** moved ends the pause before the next stream. */
    void moved() {
        awake.raise();
    }

    /** stop ends the stream, at the latest with the service's next comment. It does not wait for that. */
    void stop() {
        stopped = true;
        awake.raise();
        final Transport.Answer last = open;
        if (last != null) {
            Thread ending =
                    new Thread("wake stream's end") {
                        @Override
                        public void run() {
                            last.abort(); // may block for as long as the stream is silent
                        }
                    };
            ending.setDaemon(true);
            ending.start();
        }
    }

    /** run keeps the stream open. An unforeseen error costs time and is reported. */
    @Override
    public void run() {
        while (!stopped) {
            try {
                try {
                    keepOpen();
                } catch (RuntimeException | Error e) {
                    agent.reports.broke("the wake stream", e);
                    awake.await(Backoff.LAST);
                }
            } catch (InterruptedException e) {
                return;
            }
        }
    }

    private void keepOpen() throws InterruptedException {
        boolean warned = false;
        int failures = 0;
        while (!stopped) {
            if (!backoff.awaitCheckIn()) {
                continue;
            }
            long began = Backoff.elapsed();
            IOException ended;
            try {
                listen();
                ended = new IOException("the service closed it");
                failures = 0;
                warned = warned && Backoff.elapsed() - began < Backoff.LAST;
            } catch (IOException e) {
                ended = e;
            }
            if (stopped) {
                return;
            }
            long next = after(failures++, ended);
            if (next > 0 && !warned) {
                warned = true;
                agent.log.warn("wake stream interrupted", ended);
            } else {
                agent.log.debug("wake stream interrupted", ended);
            }
            awake.await(next);
        }
    }

    /**
     * after is how long to wait before the next stream. A refusal is treated as that of a check-in: clock
     * and sequence are corrected at once, and what ends the relation is left to a check-in, which is refused
     * too.
     */
    private long after(int failures, IOException e) {
        Refusal refused = Refusal.in(e);
        if (refused != null && failures < 2 && agent.link.correct(refused)) {
            return 0;
        }
        long next = backoff.failed(Backoff.elapsed(), e, true);
        if (refused != null && refused.error.equals(Refusal.ENDED)) {
            agent.hint();
            return Math.max(next, GONE);
        }
        return next;
    }

    /** listen reads the stream until it ends or falls silent. It throws only where the service did not open it. */
    private void listen() throws IOException {
        byte[] nothing = new byte[0];
        Map<String, String> headers = agent.link.signed(agent.link.key(), agent.link.take(), "GET", "/wake", nothing);
        headers.put("Accept", "text/event-stream");
        headers.put("Muster-Wake", "commands");
        try (Transport.Answer answer = agent.link.carry("GET", "/wake", nothing, headers, SILENCE)) {
            open = answer;
            hear(new BufferedInputStream(answer.body()));
        } finally {
            open = null;
        }
    }

    private void hear(InputStream in) {
        StringBuilder line = new StringBuilder();
        boolean command = false; // the event that is being read is a command
        long opened = Backoff.elapsed();
        try {
            for (int b = in.read(); b >= 0 && !stopped; b = in.read()) {
                if (Backoff.elapsed() - opened >= Backoff.HOLD - SOON) { // the service's comment comes just before
                    backoff.held();
                }
                if (b != '\n') {
                    if (line.length() < (command ? LONGEST_COMMAND : LONGEST)) {
                        line.append((char) b);
                    }
                    continue;
                }
                String text = line.toString().trim();
                if (text.startsWith("data:")) {
                    data(command, text.substring("data:".length()));
                } else if (text.startsWith("event:")) {
                    command = text.substring("event:".length()).trim().equals("command");
                } else if (text.isEmpty()) {
                    command = false;
                }
                line = line.capacity() > LONGEST ? new StringBuilder() : line;
                line.setLength(0);
            }
        } catch (IOException e) {
            agent.log.debug("wake stream broke off", e);
        }
    }

    /** data hears an event. What cannot be read as a command is a hint: the service has it for a check-in, too. */
    private void data(boolean command, String data) {
        if (command) {
            try {
                agent.offered.add(Envelope.read(Json.object(data)));
                return;
            } catch (JsonException e) {
                agent.log.debug("a command on the wake stream cannot be read", e);
            }
        }
        agent.hint();
    }
}

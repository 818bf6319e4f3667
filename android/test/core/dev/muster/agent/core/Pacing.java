package dev.muster.agent.core;

import java.io.IOException;
import java.io.InputStream;
import java.util.Random;

/** Pacing checks how long the core waits: after failures, between check-ins, for an answer. */
final class Pacing {
    private Pacing() {}

    static void check() throws IOException {
        IOException refused = new IOException("connection refused");
        Backoff b = new Backoff(new Random(1));
        b.answered();
        long now = 1_000_000;
        long limit = Backoff.FIRST;
        for (int i = 0; i < 12; i++) {
            long wait = b.failed(now, refused, i % 2 == 0);
            Vectors.check("the pause " + i + " is " + wait, wait >= limit / 2 && wait <= limit);
            Vectors.check("another failure in a pause", b.failed(now + wait / 2, refused, i % 2 == 1) == wait - wait / 2);
            now += wait;
            limit = Math.min(2 * limit, 8 * 60_000);
        }
        b.answered();
        Vectors.check("a stream that fails still", b.failed(now, refused, true) >= 4 * 60_000);
        b.held();
        Vectors.check("after a good time", b.failed(now + 3_600_000, refused, true) <= Backoff.FIRST);
        for (int i = 0; i < 12; i++) {
            now += b.failed(now, refused, false);
        }
        b.moved();
        Vectors.check("in another network", b.failed(now, refused, false) <= Backoff.FIRST);
        asked();
        gate();
        drip();
    }

    /** asked checks how long an enrollment waits that the service refused for a time. */
    private static void asked() throws IOException {
        for (String seconds : new String[] {"", "100", "86400"}) {
            Refusal busy = Refusal.read(new JsonAnswer(429, "{\"error\":\"rate_limited\"}", seconds), "");
            long wait = Enrollment.pause(new IOException("the service refused the enrollment", busy));
            Vectors.check("the pause of " + seconds + " is " + wait, seconds.isEmpty() ? wait == 0
                    : seconds.equals("100") ? wait >= 80_000 && wait <= 120_000 : wait == Backoff.LAST);
        }
        Vectors.check("the service did not answer", Enrollment.pause(new IOException("connection refused")) == 0);
    }

    private static void gate() {
        Gate gate = new Gate();
        Vectors.check("an agent that does not run waits for nothing", gate.left(0) == 0);
        gate.open();
        long now = Backoff.elapsed() + 10_000;
        long[] begun = new long[100];
        for (int i = 0; i < begun.length; i++) {
            now += gate.left(now);
            begun[i] = now;
            Vectors.check("six check-ins in a second", i < 5 || begun[i] - begun[i - 5] >= 1000);
        }
    }

    private static void drip() {
        InputStream drips = new InputStream() {
            @Override
            public int read() {
                return ' ';
            }

            @Override
            public int read(byte[] data, int at, int size) {
                data[at] = ' ';
                return 1;
            }
        };
        try {
            Disk.readAll(drips, 1 << 30, Backoff.elapsed() - 1);
            throw new AssertionError("an answer that drips is read without end");
        } catch (IOException late) {
            Vectors.check("an answer that drips ends", late.getMessage().contains("too long"));
        }
    }
}

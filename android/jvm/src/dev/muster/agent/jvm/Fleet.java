package dev.muster.agent.jvm;

import dev.muster.agent.core.Agent;
import dev.muster.agent.core.Clock;
import dev.muster.agent.core.Code;
import dev.muster.agent.core.Enrollment;
import dev.muster.agent.core.HttpTransport;
import dev.muster.agent.core.Log;
import dev.muster.agent.core.Options;
import dev.muster.agent.core.SignedTime;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Fleet runs many simulated devices in one process, for tests that see whether memory and journals stay
 * bounded. It reads lines: the text of a code enrolls one device more; "at MILLISECONDS" sets the clock
 * of all, has each check in, and prints what it takes.
 */
public final class Fleet implements Clock {
    private static final int AT_ONCE = 8;

    private static final Log QUIET =
            new Log() {
                @Override
                public void debug(String what, Object about) {}

                @Override
                public void info(String what, Object about) {}

                @Override
                public void warn(String what, Object about) {}

                @Override
                public void error(String what, Object about) {
                    System.err.println(what + ": " + about);
                }
            };

    private final File directory;
    private final List<Agent> agents = new ArrayList<>();
    private final ExecutorService workers = Executors.newFixedThreadPool(AT_ONCE);
    private volatile long now = System.currentTimeMillis();

    private Fleet(File directory) {
        this.directory = directory;
    }

    @Override
    public long now() {
        return now;
    }

    @Override
    public long elapsed() {
        return now;
    }

    public static void main(String[] args) throws Exception {
        Fleet fleet = new Fleet(new File(args[0]));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.startsWith("at ")) {
                fleet.now = Long.parseLong(line.substring(3));
                System.out.println(fleet.round());
            } else {
                fleet.join(line);
            }
        }
        fleet.workers.shutdownNow();
    }

    private File state(int number) {
        return new File(directory, "device-" + number);
    }

    /** join enrolls one device more, by the text of a code. */
    private void join(String text) throws IOException {
        File state = state(agents.size());
        Code code = Code.parse(text);
        Enrollment e = new Enrollment();
        e.server = code.server;
        e.token = code.token;
        e.commandKey = code.commandKey;
        e.pins = code.pins;
        e.directory = state;
        e.version = "jvm";
        e.device = SimulatedDevice.open(state, "FLEET" + agents.size());
        e.keys = new FileKeyStore(state);
        e.transport = new HttpTransport(code.pins, new SignedTime(state, now));
        e.clock = this;
        e.enroll();
        Options o = new Options();
        o.directory = state;
        o.version = "jvm";
        o.device = e.device;
        o.keys = e.keys;
        o.transport = e.transport;
        o.clock = this;
        o.log = QUIET;
        agents.add(new Agent(o));
    }

    /** round has every device check in, and says how many did, and the memory and the largest journal, in bytes. */
    private String round() throws InterruptedException, ExecutionException {
        List<Callable<Boolean>> work = new ArrayList<>();
        for (final Agent agent : agents) {
            work.add(new Callable<Boolean>() {
                @Override
                public Boolean call() {
                    try {
                        agent.once();
                        return true;
                    } catch (IOException e) {
                        System.err.println("cannot check in: " + e.getMessage());
                        return false;
                    }
                }
            });
        }
        int done = 0;
        for (Future<Boolean> one : workers.invokeAll(work)) {
            done += one.get() ? 1 : 0;
        }
        List<Long> journals = new ArrayList<>(Collections.singletonList(0L));
        for (int i = 0; i < agents.size(); i++) {
            journals.add(new File(state(i), "journal").length());
        }
        System.gc();
        Runtime memory = Runtime.getRuntime();
        return done + " " + (memory.totalMemory() - memory.freeMemory()) + " " + Collections.max(journals);
    }
}

package dev.muster.agent.jvm;

import dev.muster.agent.core.Agent;
import dev.muster.agent.core.Clock;
import dev.muster.agent.core.Code;
import dev.muster.agent.core.EndedException;
import dev.muster.agent.core.Enrollment;
import dev.muster.agent.core.HttpTransport;
import dev.muster.agent.core.Log;
import dev.muster.agent.core.LogFile;
import dev.muster.agent.core.NotEnrolledException;
import dev.muster.agent.core.Options;
import dev.muster.agent.core.Order;
import dev.muster.agent.core.RestartException;
import dev.muster.agent.core.Runner;
import dev.muster.agent.core.SignedTime;
import dev.muster.agent.core.Status;
import dev.muster.agent.core.Steps;
import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.channels.FileLock;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.util.Date;
import java.util.UUID;

/**
 * Main runs the app's core on a JVM with a simulated device, so that it can be tried and tested without
 * Android. The commands and flags are those of muster-agent.
 */
public final class Main {
    private static final String VERSION = "jvm";

    /** CLOCK is the device's. Tests set it wrong with -Dmuster.clock=MILLISECONDS. */
    static final Clock CLOCK =
            new Clock() {
                private final long wrong = Long.getLong("muster.clock", 0);

                @Override
                public long now() {
                    return System.currentTimeMillis() + wrong;
                }

                @Override
                public long elapsed() {
                    return SYSTEM.elapsed();
                }
            };

    /** STEPS ends the process, like a power cut, before the step that tests name with -Dmuster.crash=STEP. */
    private static final Steps STEPS =
            new Steps() {
                @Override
                public void before(String step) {
                    if (step.equals(System.getProperty("muster.crash"))) {
                        Runtime.getRuntime().halt(3);
                    }
                }
            };

    /** LOG is what the agent says on standard error; with a file, there too. */
    private static Log log(final LogFile file) {
        return new Log() {
            @Override
            public void debug(String what, Object about) {}

            @Override
            public void info(String what, Object about) {
                say("INFO", what, about);
            }

            @Override
            public void warn(String what, Object about) {
                say("WARN", what, about);
            }

            @Override
            public void error(String what, Object about) {
                say("ERROR", what, about);
            }

            private void say(String level, String what, Object about) {
                System.err.println(new Date() + " " + level + " " + what + ": " + about);
                if (file == null) {
                    return;
                }
                try {
                    file.write(level, what, about);
                } catch (IOException e) {
                    System.err.println("cannot write the log: " + e);
                }
            }
        };
    }

    private static final Log LOG = log(null);

    /** BUILT is when this program was built: tests compile it for each run of theirs. */
    private static final long BUILT = Long.getLong("muster.built", System.currentTimeMillis());

    private final Flags flags;
    private final File state;

    private Main(Flags flags) throws Flags.UsageException {
        this.flags = flags;
        state = new File(flags.need("--state")).getAbsoluteFile();
    }

    public static void main(String[] args) throws InterruptedException {
        int code = 0;
        try {
            new Main(new Flags(args)).run();
        } catch (Flags.UsageException e) {
            System.err.println("muster-agent: " + e.getMessage());
            code = 2;
        } catch (IOException e) {
            System.err.println("muster-agent: " + e.getMessage());
            code = 1;
        }
        System.out.flush();
        Runtime.getRuntime().halt(code); // idle connections and the stream's thread hold nothing that matters
    }

    private SignedTime signed() {
        return new SignedTime(state, BUILT);
    }

    private void run() throws IOException, Flags.UsageException, InterruptedException {
        if (flags.command.equals("status")) {
            status();
            return;
        }
        state.mkdirs();
        try (RandomAccessFile running = new RandomAccessFile(new File(state, "running"), "rw");
                FileLock lock = running.getChannel().tryLock()) {
            if (lock == null) {
                ask();
            } else {
                alone();
            }
        }
    }

    /** ask leaves what the agent that runs is to do. */
    private void ask() throws IOException {
        switch (flags.command) {
            case "rotate":
                Order.ROTATE_KEY.leave(state);
                break;
            case "unenroll":
                Order.SAY_GOOD_BYE.leave(state);
                break;
            default:
                throw new IOException("another muster-agent works in this state directory: stop it first");
        }
        System.out.println("Another muster-agent works in this state directory and was asked to do it.");
    }

    /** alone does the work of the one process that may change the state directory. */
    private void alone() throws IOException, Flags.UsageException, InterruptedException {
        switch (flags.command) {
            case "enroll":
                enroll();
                return;
            case "run":
                keepInTouch();
                return;
            case "rotate":
                try (Agent agent = open()) {
                    agent.rotate();
                }
                System.out.println("This device has a new key.");
                return;
            case "unenroll":
                try (Agent agent = open()) {
                    agent.unenroll();
                }
                return;
            default:
                throw new Flags.UsageException("commands: enroll, run, status, rotate, unenroll");
        }
    }

    private SimulatedDevice device() throws IOException {
        return SimulatedDevice.open(state, flags.get("--serial", "SIM" + UUID.randomUUID().toString().substring(0, 8)));
    }

    /** ASK_EVERY is how often, in milliseconds, a device asks that waits for an administrator. */
    private static final int ASK_EVERY = Integer.getInteger("muster.ask", 60_000);

    private void enroll() throws IOException, Flags.UsageException, InterruptedException {
        Enrollment e = new Enrollment();
        if (flags.get("--bundle", "").isEmpty()) {
            e.server = flags.need("--server");
            e.token = flags.need("--token");
            e.commandKey = flags.get("--command-key", "");
            e.pins = flags.all("--pin");
        } else {
            Code code = takeBundle(new File(flags.need("--bundle")));
            e.server = code.server;
            e.token = code.token;
            e.commandKey = code.commandKey;
            e.pins = code.pins;
        }
        e.role = flags.get("--role", "manager");
        e.again = flags.again;
        e.directory = state;
        e.version = VERSION;
        e.device = device();
        e.keys = new FileKeyStore(state);
        e.transport = new HttpTransport(e.pins, signed());
        e.clock = CLOCK;
        Enrollment.Enrolled enrolled = enroll(e);
        System.out.println("Enrolled as " + enrolled.deviceId + ".");
        if (e.commandKey.isEmpty()) {
            LOG.warn("no command key was named: from now on this device obeys the key that signed the answer", enrolled.key);
        }
    }

    /** enroll enrolls a device. One that lost its identity waits for the administrator who confirms that. */
    private static Enrollment.Enrolled enroll(Enrollment e) throws IOException, InterruptedException {
        for (boolean printed = false; ; printed = true) {
            try {
                return e.enroll();
            } catch (IOException refused) {
                if (!Enrollment.waits(refused)) {
                    throw refused;
                }
                if (!printed) {
                    System.out.println("This device asks to be enrolled again. An administrator confirms that in the portal.");
                }
                Thread.sleep(ASK_EVERY);
            }
        }
    }

    /** takeBundle reads a code's text from a file and deletes the file, whatever is in it: it holds a secret. */
    private static Code takeBundle(File file) throws IOException {
        if (!Files.isRegularFile(file.toPath(), LinkOption.NOFOLLOW_LINKS) || file.length() > Code.MAX) {
            throw new IOException(file + " is not a file with the text of a code");
        }
        byte[] text = Files.readAllBytes(file.toPath());
        Files.delete(file.toPath());
        return Code.parse(new String(text, StandardCharsets.UTF_8));
    }

    private Agent open() throws IOException {
        Options o = new Options();
        o.directory = state;
        o.version = VERSION;
        o.device = device();
        o.keys = new FileKeyStore(state);
        o.transport = new HttpTransport(Status.pins(state), signed());
        o.clock = CLOCK;
        LogFile kept = new LogFile(new File(state, "log"));
        o.log = log(kept);
        o.kept = kept;
        o.steps = STEPS;
        o.installer = SimulatedInstaller.of(state);
        return new Agent(o);
    }

    private void keepInTouch() throws IOException, InterruptedException {
        try (Agent agent = open()) {
            if (flags.once) {
                agent.once();
                return;
            }
            final Runner runner = new Runner(agent);
            final Thread main = Thread.currentThread();
            Thread stopping =
                    new Thread("stop") {
                        @Override
                        public void run() {
                            runner.stop();
                            try {
                                main.join(5000);
                            } catch (InterruptedException e) {
                                // The process ends.
                            }
                        }
                    };
            Runtime.getRuntime().addShutdownHook(stopping);
            watchOrders(agent);
            runner.run();
        } catch (RestartException e) {
            System.out.println("Another version was installed: start the agent again.");
        } catch (EndedException e) {
            System.out.println("This device is no longer managed.");
        }
    }

    /** watchOrders has the agent look at an order that another process left. */
    private void watchOrders(final Agent agent) {
        Thread watching =
                new Thread("orders") {
                    @Override
                    public void run() {
                        try {
                            for (; ; Thread.sleep(1000)) {
                                if (new File(state, "order").exists()) {
                                    agent.hint();
                                }
                            }
                        } catch (InterruptedException e) {
                            // The process ends.
                        }
                    }
                };
        watching.setDaemon(true);
        watching.start();
    }

    private void status() throws IOException {
        try {
            Status s = Status.read(state);
            System.out.printf("Device:  %s%nService: %s%nRole:    %s%nPolicy:  %s version %d%nOpen:    %d commands%n", s.deviceId,
                    s.server, s.role, s.policyId, s.policyVersion, s.open);
        } catch (NotEnrolledException e) {
            throw new IOException(e.getMessage() + ": run muster-agent enroll", e);
        }
    }
}

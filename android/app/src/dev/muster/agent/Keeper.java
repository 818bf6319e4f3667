package dev.muster.agent;

import android.content.Context;
import dev.muster.agent.core.Agent;
import dev.muster.agent.core.Awake;
import dev.muster.agent.core.Clock;
import dev.muster.agent.core.Code;
import dev.muster.agent.core.Device;
import dev.muster.agent.core.DeviceException;
import dev.muster.agent.core.EndedException;
import dev.muster.agent.core.Enrollment;
import dev.muster.agent.core.HttpTransport;
import dev.muster.agent.core.KeyStore;
import dev.muster.agent.core.Log;
import dev.muster.agent.core.LostException;
import dev.muster.agent.core.Options;
import dev.muster.agent.core.Runner;
import dev.muster.agent.core.SignedTime;
import dev.muster.agent.core.Status;
import dev.muster.agent.core.SupersededException;
import dev.muster.agent.core.Transport;
import java.io.IOException;
import java.util.List;
import java.util.Map;

/**
 * Keeper runs the agent on a thread of its own, from the code to the end: it enrolls, keeps in touch,
 * and gives the ownership up once the service has let the device go.
 */
final class Keeper implements Runnable, Log {
    /** State is what the device is to its service. */
    enum State {
        /** This app is not the device owner. */
        NOT_OWNER,
        /** There is no code yet. */
        WAITING,
        ENROLLING,
        /** The code was refused, and takes another. */
        REFUSED,
        ENROLLED,
        SUPERSEDED,
        /** The key or the identity is lost: it takes a code of the same service. */
        LOST,
        /** With such a code: an administrator has to confirm it. */
        ASKING,
        /** The service let the device go. */
        ENDED
    }

    private static final long RETRY = 15_000;
    /** AWAKE is how long the device stays awake for an enrollment, in milliseconds. */
    private static final long AWAKE = 3 * 60_000;
    private static final Clock CLOCK = new AndroidClock();
    private static final long LAST_RETRY = 15 * 60_000;
    /** ASK_EVERY is how often a device asks that waits for an administrator. */
    private static final long ASK_EVERY = 5 * 60_000;

    final Owner owner;
    final StateFiles files;
    final WakeLocks awake;
    private final DeviceLog log;
    private final KeyStore keys;
    private final AppInstaller installer;

    private Thread thread;
    private Runner runner;
    private Agent agent;
    private boolean called; // there is something new to look at
    private State state = State.WAITING;
    private String trouble = "";
    private long contact; // the service's latest answer, in Unix milliseconds; 0: none since this process began

    Keeper(Context context) {
        this(context, new KeystoreKeys(false));
    }

    Keeper(Context context, KeyStore keys) {
        owner = new Owner(context);
        files = new StateFiles(context);
        awake = new WakeLocks(context);
        log = new DeviceLog(files.log);
        this.keys = keys;
        installer = new AppInstaller(owner, files);
    }

    /** start makes sure that the agent runs, and has it look at what is new. */
    synchronized void start() {
        if (thread == null || !thread.isAlive()) {
            thread = new Thread(this, "agent");
            thread.setDaemon(true);
            thread.start();
        }
        hint();
    }

    /** hint has the agent check in now, or try again what it waits for. */
    synchronized void hint() {
        called = true;
        notifyAll();
        if (agent != null) {
            agent.hint();
        }
    }

    /** take keeps a code and enrolls with it. A device that is enrolled refuses, unless it was superseded or lost its key. */
    synchronized void take(String text) throws IOException {
        if (!takesCode()) {
            throw new IOException("this device is enrolled already: relinquish it in the service first");
        }
        files.saveCode(text);
        state = State.ENROLLING;
        trouble = "";
        if (runner != null) {
            runner.stop();
        }
        start();
    }

    /** takesCode reports whether the device may enroll: for the first time, while it does, or as it was superseded or lost its key. */
    synchronized boolean takesCode() {
        return !files.enrolled() || state == State.SUPERSEDED || state == State.LOST || state == State.ASKING
                || state == State.ENROLLING;
    }

    /** takesToken reports whether a token, typed on the device, is enough. */
    synchronized boolean takesToken() {
        return owner.owns() && (state == State.LOST || state == State.ASKING);
    }

    /** takeToken enrolls with a token at the service that the device knows. */
    void takeToken(String token) throws IOException {
        take(Code.again(files.directory, token));
    }

    /** giveUp ends the ownership of a device that was never enrolled. */
    synchronized void giveUp() throws IOException {
        if (files.enrolled()) {
            throw new IOException("this device is enrolled: relinquish it in the service");
        }
        files.dropCode();
        leave();
    }

    private void leave() throws DeviceException {
        log.clear(); // another service must not read it
        if (owner.owns()) {
            Device device = new AndroidDevice(owner, files);
            for (String setting : device.settings()) {
                try {
                    device.apply(setting, "");
                } catch (DeviceException | RuntimeException e) {
                    log.warn("cannot take a setting back", setting + ": " + e); // clearing the owner lifts restrictions, too
                }
            }
            owner.giveUp();
        }
        files.left();
        say(State.ENDED, "");
        log.info("gave up the ownership", owner.context.getPackageName());
    }

    synchronized State state() {
        return owner.owns() || state == State.ENDED ? state : State.NOT_OWNER;
    }

    synchronized String trouble() {
        return trouble;
    }

    synchronized long contact() {
        return contact;
    }

    private synchronized void say(State now, String what) {
        state = now;
        trouble = what;
    }

    private synchronized void trouble(String what) {
        trouble = what;
    }

    @Override
    public void run() {
        long wait = RETRY;
        try {
            while (true) {
                synchronized (this) {
                    called = false;
                }
                try {
                    if (!step()) {
                        await(0);
                    }
                    wait = RETRY;
                } catch (IOException | RuntimeException | Error e) {
                    if (e instanceof IOException) {
                        log.warn("cannot go on", e);
                    } else {
                        broke("the agent", e);
                    }
                    if (!lost(e)) {
                        trouble(String.valueOf(e.getMessage()));
                    }
                    await(Math.max(wait, Enrollment.pause(e)));
                    wait = Math.min(2 * wait, LAST_RETRY);
                }
            }
        } catch (InterruptedException e) {
            // The process ends.
        }
    }

    /** broke keeps an unforeseen error: for the log, and for the service at the next check-in. */
    void broke(String what, Throwable e) {
        String crash = what + ": " + Agent.crash(e);
        log.error("it broke", crash);
        files.saveCrash(crash);
    }

    /** lost notes an error that means that the device's key or identity is lost. It may be a fault that passes. */
    private boolean lost(Throwable e) {
        LostException found = LostException.in(e);
        if (found != null) {
            say(State.LOST, found.getMessage());
        }
        return found != null;
    }

    /** await returns when there is something new, or after the time in milliseconds; 0: never without. */
    private synchronized void await(long time) throws InterruptedException {
        if (!called) {
            wait(time);
        }
    }

    /** step does what there is to do, and reports whether it did anything. */
    private boolean step() throws IOException, InterruptedException {
        if (!owner.owns()) {
            return false;
        }
        installer.restore(); // a process before may have been killed in an installation
        boolean enrolled = files.enrolled();
        if (files.leaving() && !enrolled) {
            leave(); // the process ended before the ownership was given up
            return false;
        }
        Code code = files.code();
        if (code != null) {
            enroll(code, enrolled);
            return true;
        }
        if (!enrolled) {
            if (state() == State.ENDED) { // it became the owner again
                say(State.WAITING, "");
            }
            return false;
        }
        try {
            keepInTouch();
        } catch (EndedException e) {
            if (files.enrolled()) {
                throw e; // an erase that Android refused: it is asked for again
            }
        }
        return true;
    }

    private void enroll(Code code, boolean again) throws IOException, InterruptedException {
        if (state() != State.ASKING) {
            say(State.ENROLLING, trouble());
        }
        Enrollment e = new Enrollment();
        e.server = code.server;
        e.token = code.token;
        e.commandKey = code.commandKey;
        e.pins = code.pins;
        e.again = again;
        e.directory = files.directory;
        e.version = version();
        e.device = new AndroidDevice(owner, files);
        e.keys = code.strongBox && keys instanceof KeystoreKeys ? new KeystoreKeys(true) : keys;
        e.transport = transport(code.pins);
        e.clock = CLOCK;
        try (Awake.Held held = awake.hold(AWAKE)) {
            Enrollment.Enrolled enrolled = e.enroll();
            log.info("enrolled", enrolled.deviceId + (code.commandKey.isEmpty() ? ", obeys " + enrolled.key
                    + ", which no code named" : ""));
        } catch (IOException refused) {
            if (Enrollment.refusedForGood(refused)) {
                files.dropCode();
                log.warn("cannot enroll", refused);
                say(again ? State.SUPERSEDED : State.REFUSED, String.valueOf(refused.getMessage()));
                return;
            }
            if (Enrollment.waits(refused)) {
                say(State.ASKING, "");
                log.info("asks to be enrolled again", "an administrator has to confirm that");
                await(ASK_EVERY);
                return;
            }
            throw refused;
        }
        files.left(); // of an earlier enrollment
        files.dropCode();
        say(State.ENROLLED, "");
    }

    String version() {
        try {
            return owner.context.getPackageManager().getPackageInfo(owner.context.getPackageName(), 0).versionName;
        } catch (android.content.pm.PackageManager.NameNotFoundException e) {
            return "";
        }
    }

    private Transport transport(List<String> pins) {
        final Transport http = new HttpTransport(pins, new SignedTime(files.directory, Built.AT));
        return new Transport() {
            @Override
            public Answer send(String method, String url, Map<String, String> headers, byte[] body, int silence) throws IOException {
                Answer answer = http.send(method, url, headers, body, silence);
                if (answer.status() == 200) {
                    answered(url);
                }
                return answer;
            }
        };
    }

    private synchronized void answered(String url) {
        contact = System.currentTimeMillis();
        trouble = "";
        if (url.endsWith("/checkin")) {
            files.dropCrash(); // the first check-in tells of it
        }
        if (state == State.SUPERSEDED || state == State.LOST) {
            state = State.ENROLLED;
        }
    }

    private void keepInTouch() throws IOException, InterruptedException {
        if (state() != State.SUPERSEDED && state() != State.LOST) { // that ends with an answer of the service
            say(State.ENROLLED, "");
        }
        Options o = new Options();
        o.directory = files.directory;
        o.version = version();
        o.device = new AndroidDevice(owner, files);
        o.keys = keys;
        o.transport = transport(Status.pins(files.directory));
        o.clock = CLOCK;
        o.awake = awake;
        o.crash = files.crash();
        o.log = this;
        o.kept = log;
        o.installer = installer;
        try (Agent opened = new Agent(o)) {
            synchronized (this) {
                agent = opened;
                runner = new Runner(opened);
                if (files.code() != null) { // taken since step looked
                    runner.stop();
                }
            }
            Networks networks = watch();
            try {
                runner.run();
            } finally {
                if (networks != null) {
                    networks.end();
                }
                synchronized (this) {
                    agent = null;
                    runner = null;
                }
            }
        }
    }

    /** watch ends pauses when the device changes its network; null if Android does not let it. */
    private Networks watch() {
        try {
            return new Networks(owner.context, new Runnable() {
                @Override
                public void run() {
                    moved();
                }
            });
        } catch (RuntimeException e) {
            log.warn("cannot watch the network", e);
            return null;
        }
    }

    private synchronized void moved() {
        if (runner != null) {
            runner.moved();
        }
    }

    @Override
    public void debug(String what, Object about) {}

    @Override
    public void info(String what, Object about) {
        log.info(what, about);
    }

    /** warn also keeps what a person should see on the status screen. */
    @Override
    public void warn(String what, Object about) {
        log.warn(what, about);
        if (about instanceof Throwable && lost((Throwable) about)) {
            return;
        }
        if (about instanceof SupersededException) {
            say(State.SUPERSEDED, ((SupersededException) about).getMessage());
        } else if (about instanceof IOException && state() != State.SUPERSEDED) { // there it only follows from that
            trouble(String.valueOf(((IOException) about).getMessage()));
        }
    }

    @Override
    public void error(String what, Object about) {
        log.error(what, about);
        trouble(what + ": " + about);
    }
}

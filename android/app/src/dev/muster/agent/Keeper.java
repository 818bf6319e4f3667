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
 * Keeper runs the agent on its own thread, from enrollment to the end of management: it enrolls with a code, keeps in
 * touch with the service, and ends this app's ownership of the device once the service no longer manages it. The
 * app's screens and receivers call it from other threads.
 */
final class Keeper implements Runnable, Log {
    /** State is the device's relation to its service. */
    enum State {
        /** This app is not the device owner. */
        NOT_OWNER,
        /** The device waits for a code. */
        WAITING,
        ENROLLING,
        /** The service refused the code: the device needs another. */
        REFUSED,
        ENROLLED,
        /** Another device has enrolled as this one. */
        SUPERSEDED,
        /** The key or the identity is lost: the device needs a code or a token of the same service. */
        LOST,
        /** It has enrolled again after the loss, which an administrator has to confirm. */
        ASKING,
        /** The device is no longer managed. */
        ENDED
    }

    /** FIRST_RETRY is the wait after an error, in milliseconds. It doubles with each further error, up to LAST_RETRY. */
    private static final long FIRST_RETRY = 15_000;
    private static final long LAST_RETRY = 15 * 60_000;
    /** AWAKE is how long the device stays awake for an enrollment, in milliseconds. */
    private static final long AWAKE = 3 * 60_000;
    /** ASK_EVERY is how often the device asks whether an administrator has confirmed it, in milliseconds. */
    private static final long ASK_EVERY = 5 * 60_000;
    private static final Clock CLOCK = new AndroidClock();

    final Owner owner;
    final StateFiles files;
    final WakeLocks awake;
    private final DeviceLog log;
    private final KeyStore keys;
    private final AppInstaller installer;

    private Thread thread;
    private Runner runner;
    private Agent agent;
    private boolean hinted; // the thread does not wait, but looks for what to do
    private boolean redeeming; // a request to enroll is under way: the service may manage the device already
    private State state = State.WAITING;
    private String trouble = ""; // for the status screen; empty: none
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

    /** start starts the thread unless it runs, and hints. */
    synchronized void start() {
        if (thread == null || !thread.isAlive()) {
            thread = new Thread(this, "agent");
            thread.setDaemon(true);
            thread.start();
        }
        hint();
    }

    /** hint has the agent check in now, or retry now instead of waiting. */
    synchronized void hint() {
        hinted = true;
        notifyAll();
        if (agent != null) {
            agent.hint();
        }
    }

    /** take saves a code and has the thread enroll with it. It fails unless takesCode. */
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

    /** takesCode reports whether a code is accepted: the device is not enrolled, enrolls, was superseded or lost its key. */
    synchronized boolean takesCode() {
        return !files.enrolled() || state == State.SUPERSEDED || state == State.LOST || state == State.ASKING
                || state == State.ENROLLING;
    }

    /** takesToken reports whether a token is enough, as the device still knows the address of its service. */
    synchronized boolean takesToken() {
        return owner.owns() && (state == State.LOST || state == State.ASKING);
    }

    /** takeToken enrolls with a token at the service that the device knows. */
    void takeToken(String token) throws IOException {
        take(Code.again(files.directory, token));
    }

    /** giveUp ends this app's ownership of a device that is not enrolled. */
    synchronized void giveUp() throws IOException {
        if (files.enrolled()) {
            throw new IOException("this device is enrolled: relinquish it in the service");
        }
        if (redeeming) {
            throw new IOException("this device is enrolling: try again in two minutes");
        }
        files.dropCode();
        leave();
    }

    /** leave takes all settings back, ends the ownership, and deletes what a service that manages the device later must not read. */
    private void leave() throws DeviceException {
        log.clear();
        try {
            Enrollment.abandon(files.directory, keys);
        } catch (IOException | RuntimeException e) {
            log.warn("cannot delete the token and the key", e); // they have no power: the device is not enrolled
        }
        files.dropCrash(files.crash());
        if (owner.owns()) {
            Device device = new AndroidDevice(owner, files);
            for (String setting : device.settings()) {
                try {
                    device.apply(setting, "");
                } catch (DeviceException | RuntimeException e) {
                    log.warn("cannot take a setting back", setting + ": " + e); // the end of the ownership lifts restrictions, too
                }
            }
            owner.giveUp();
        }
        files.left();
        files.setStrongBox(false);
        setState(State.ENDED, "");
        log.clear();
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

    private synchronized void setState(State now, String what) {
        state = now;
        trouble = what;
    }

    private synchronized void setTrouble(String what) {
        trouble = what;
    }

    @Override
    public void run() {
        long wait = FIRST_RETRY;
        try {
            while (true) {
                synchronized (this) {
                    hinted = false;
                }
                try {
                    if (!step()) {
                        await(0);
                    }
                    wait = FIRST_RETRY;
                } catch (IOException | RuntimeException | Error e) { // no error may end the thread
                    if (e instanceof IOException) {
                        log.warn("cannot go on", e);
                    } else {
                        broke("the agent", e);
                    }
                    if (!lost(e)) {
                        setTrouble(String.valueOf(e.getMessage()));
                    }
                    await(Math.max(wait, Enrollment.pause(e)));
                    wait = Math.min(2 * wait, LAST_RETRY);
                }
            }
        } catch (InterruptedException e) {
            // The process ends.
        }
    }

    /** broke logs an unexpected error, and saves it for the next check-in. what is the part of the app. */
    void broke(String what, Throwable e) {
        String crash = what + ": " + Agent.crash(e);
        log.error("it broke", crash);
        files.saveCrash(crash);
    }

    /** lost reports whether an error means that the device's key or identity is lost, and notes that; see answered. */
    private boolean lost(Throwable e) {
        LostException found = LostException.in(e);
        if (found != null) {
            setState(State.LOST, found.getMessage());
        }
        return found != null;
    }

    /** await waits for a hint, at most the time in milliseconds; 0: without a limit. */
    private synchronized void await(long time) throws InterruptedException {
        if (!hinted) {
            wait(time);
        }
    }

    /** step enrolls, or runs the agent for as long as it goes. It reports false if only a hint changes anything. */
    private boolean step() throws IOException, InterruptedException {
        if (!owner.owns()) {
            return false;
        }
        installer.restore(); // the process may have been killed during an installation
        boolean enrolled = files.enrolled();
        if (files.leaving() && !enrolled) {
            leave(); // a command released the device, and the service knows
            return false;
        }
        Code code = files.code();
        if (code != null) {
            enroll(code, enrolled);
            return true;
        }
        if (!enrolled) {
            if (state() == State.ENDED) { // this app has become the owner again
                setState(State.WAITING, "");
            }
            return false;
        }
        try {
            keepInTouch();
        } catch (EndedException e) {
            if (files.enrolled()) {
                throw e; // the device says that it is erased, and is not: the next step tries it again
            }
        }
        return true;
    }

    /** enroll enrolls with a code; again: the device has an identity. A refusal for good drops the code. */
    private void enroll(Code code, boolean again) throws IOException, InterruptedException {
        Enrollment e = new Enrollment();
        e.server = code.server;
        e.token = code.token;
        e.commandKey = code.commandKey;
        e.pins = code.pins;
        e.again = again;
        e.directory = files.directory;
        e.version = version();
        e.device = new AndroidDevice(owner, files);
        e.keys = keys(code.strongBox);
        e.transport = transport(code.pins);
        e.clock = CLOCK;
        try {
            Enrollment.Enrolled enrolled = redeem(e);
            if (enrolled == null) {
                return;
            }
            log.info("enrolled", enrolled.deviceId + (code.commandKey.isEmpty() ? ", obeys " + enrolled.key
                    + ", which no code named" : ""));
        } catch (IOException refused) {
            if (Enrollment.refusedForGood(refused)) {
                files.dropCode();
                log.warn("cannot enroll", refused);
                setState(again ? State.SUPERSEDED : State.REFUSED, String.valueOf(refused.getMessage()));
                return;
            }
            if (Enrollment.waits(refused)) {
                setState(State.ASKING, "");
                log.info("asks to be enrolled again", "an administrator has to confirm that");
                await(ASK_EVERY);
                return;
            }
            throw refused;
        }
        files.left(); // of an earlier enrollment
        files.setStrongBox(code.strongBox);
        files.dropCode();
        setState(State.ENROLLED, "");
    }

    /** redeem enrolls, unless the device was given up since its code was read: then it returns null. */
    private Enrollment.Enrolled redeem(Enrollment e) throws IOException {
        synchronized (this) {
            if (files.code() == null) {
                return null;
            }
            if (state() != State.ASKING) {
                setState(State.ENROLLING, trouble());
            }
            redeeming = true;
        }
        try (Awake.Held held = awake.hold(AWAKE)) {
            return e.enroll();
        } finally {
            synchronized (this) {
                redeeming = false;
            }
        }
    }

    /** keys makes keys in the secure element if strongBox says so. */
    KeyStore keys(boolean strongBox) {
        return strongBox && keys instanceof KeystoreKeys ? new KeystoreKeys(true) : keys;
    }

    String version() {
        try {
            return owner.context.getPackageManager().getPackageInfo(owner.context.getPackageName(), 0).versionName;
        } catch (android.content.pm.PackageManager.NameNotFoundException e) {
            return "";
        }
    }

    /** transport is HTTP that notes the service's answers. */
    private Transport transport(List<String> pins) {
        final Transport http = new HttpTransport(pins, new SignedTime(files.directory, Built.AT));
        return new Transport() {
            @Override
            public Answer send(String method, String url, Map<String, String> headers, byte[] body, int silence) throws IOException {
                Answer answer = http.send(method, url, headers, body, silence);
                if (answer.status() == 200) {
                    answered();
                }
                return answer;
            }
        };
    }

    private synchronized void answered() {
        contact = System.currentTimeMillis();
        trouble = "";
        if (state == State.SUPERSEDED || state == State.LOST) {
            state = State.ENROLLED; // the service accepts the device: the error has passed
        }
    }

    private void keepInTouch() throws IOException, InterruptedException {
        if (state() != State.SUPERSEDED && state() != State.LOST) { // only an answer of the service ends these
            setState(State.ENROLLED, "");
        }
        Options o = new Options();
        o.directory = files.directory;
        o.version = version();
        o.device = new AndroidDevice(owner, files);
        o.keys = keys(files.strongBox.exists());
        o.transport = transport(Status.pins(files.directory));
        o.clock = CLOCK;
        o.awake = awake;
        final String crash = files.crash();
        o.crash = crash;
        o.crashReported = new Runnable() {
            @Override
            public void run() {
                files.dropCrash(crash);
            }
        };
        o.log = this;
        o.kept = log;
        o.installer = installer;
        try (Agent opened = new Agent(o)) {
            synchronized (this) {
                agent = opened;
                runner = new Runner(opened);
                if (files.code() != null) { // take has saved it since step looked
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

    /** watch has the agent retry when the device changes its network. It returns null if Android refuses that. */
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
            setState(State.SUPERSEDED, ((SupersededException) about).getMessage());
        } else if (about instanceof IOException && state() != State.SUPERSEDED) { // then the error is a consequence
            setTrouble(String.valueOf(((IOException) about).getMessage()));
        }
    }

    @Override
    public void error(String what, Object about) {
        log.error(what, about);
        setTrouble(what + ": " + (about instanceof IOException ? ((IOException) about).getMessage() : about));
    }
}

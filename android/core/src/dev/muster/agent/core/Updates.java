package dev.muster.agent.core;

import java.io.File;
import java.io.IOException;
import java.util.Map;

/** Updates follows the service's updates of the agent. Its methods are called under the agent's lock, but for the download. */
final class Updates {
    private static final String WANTED = "wanted";
    private static final String VERIFIED = "verified";
    private static final String BEGAN = "began";
    private static final String OVER = "over";

    /** The states of an update that the service gets. */
    private static final String READY = "ready";

    private static final String INSTALLED = "installed";
    private static final String FAILED = "failed";

    /** MAX_TRIES is how often an update is tried until it has failed. */
    private static final int MAX_TRIES = 3;
    /** TRY_AGAIN is how long an update that failed rests, in milliseconds. */
    private static final long TRY_AGAIN = 24L * 60 * 60 * 1000;
    /** AWAKE is how long the device stays awake for a download, in milliseconds. What is left of it goes on with the next check-in. */
    private static final long AWAKE = 10 * 60_000;
    /** FETCH_TRIES is how often a download goes on until the next check-in. */
    private static final int FETCH_TRIES = 5;

    /** Note is what is on disk about an update. */
    private static final class Note {
        Update want;
        String stage = "";
        String state = "";
        String detail = "";
        boolean acknowledged; // the service has it
        long tries;
        long until; // it rests until then

        static Note of(Update want, String stage) {
            Note n = new Note();
            n.want = want;
            n.stage = stage;
            return n;
        }

        static Note read(Fields f) throws JsonException {
            Note n = of(Update.read(f.object("want")), f.text("stage"));
            n.state = f.text("state");
            n.detail = f.text("detail");
            n.acknowledged = f.flag("told");
            n.tries = f.number("tries");
            n.until = f.number("until");
            return n.want == null ? new Note() : n;
        }

        boolean is(String stage) {
            return this.stage.equals(stage);
        }

        Map<String, Object> json() {
            return Fields.members("want", want.json(), "stage", stage, "state", Fields.some(state), "detail", Fields.some(detail), "told",
                    acknowledged, "tries", tries, "until", until);
        }
    }

    private final Agent agent;
    private final Installer installer; // null: the agent reports its version only
    private Note note = new Note();
    private boolean reported; // by this process, since the stage changed
    private boolean fetching;
    private boolean fetched; // a download has ended
    private IOException trouble; // of the download that has ended; null: none

    Updates(Agent agent) throws IOException {
        this.agent = agent;
        installer = agent.link.identity().companion() ? null : agent.options.installer;
        try {
            Fields f = agent.store.load(Store.UPDATE);
            note = f == null ? new Note() : Note.read(f);
        } catch (DamagedException | JsonException e) { // it repeats what the service knows
            agent.store.remove(Store.UPDATE);
        }
        if (installer == null || note.want == null) {
            return;
        }
        if (note.is(BEGAN) && installer.code() < note.want.code) {
            failed(new IOException("the new version was not installed, or did not start"));
        } else if ((note.is(WANTED) || note.is(VERIFIED)) && installer.code() >= note.want.code) {
            note = new Note(); // it was installed in another way
            drop();
            agent.store.remove(Store.UPDATE);
        }
    }

    private File file() {
        return agent.store.path(Store.PROGRAM);
    }

    private void to(Note next) throws IOException {
        agent.steps.before("before update " + next.stage);
        reported = false;
        note = next;
        agent.store.save(Store.UPDATE, next.json());
    }

    /** failed notes an attempt that failed. After some of them the update is over, for a day. */
    private void failed(IOException why) throws IOException {
        agent.log.warn("an update failed", why);
        if (note.tries + 1 >= MAX_TRIES) {
            end(FAILED, Text.line(String.valueOf(why.getMessage())));
            return;
        }
        Note next = Note.of(note.want, WANTED);
        next.tries = note.tries + 1;
        to(next);
    }

    private void end(String state, String detail) throws IOException {
        Note next = Note.of(note.want, OVER);
        next.state = state;
        next.detail = detail;
        next.until = agent.link.serviceTime() + TRY_AGAIN;
        to(next);
        drop();
    }

    /** drop removes what was downloaded. */
    private void drop() throws IOException {
        Disk.remove(file());
        Disk.remove(Download.part(file()));
    }

    /** build is what runs, or null. */
    Map<String, Object> build() {
        return installer == null ? null : Fields.members("package", installer.packageName(), "code", installer.code());
    }

    /** report is what the service gets with the next check-in, or null. */
    Map<String, Object> report() {
        try {
            settle();
        } catch (IOException e) { // it holds back no check-in
            agent.log.warn("cannot note how a download ended", e);
        }
        String state = state();
        if (state.isEmpty()) {
            return null;
        }
        reported = true;
        return Fields.members("sha256", note.want.sha256, "state", state, "detail", note.is(OVER) ? Fields.some(note.detail) : null);
    }

    private String state() {
        if (installer == null || note.want == null) {
            return "";
        }
        if (note.is(BEGAN) && installer.code() >= note.want.code) {
            return INSTALLED; // it is in touch once this is answered
        }
        if (note.is(VERIFIED)) {
            return READY;
        }
        return note.is(OVER) && !note.acknowledged ? note.state : "";
    }

    /** unsent reports whether the service lacks what the agent knows of an update. */
    boolean unsent() {
        return !reported && !state().isEmpty();
    }

    /** delivered notes that the service has answered a request. What cannot be written down is noted at the next check-in. */
    void delivered(Object report, Fields acknowledged) {
        if (report == null) {
            return;
        }
        Note before = note;
        try {
            answered(Fields.of(report), acknowledged);
        } catch (IOException e) {
            note = before;
            agent.log.warn("cannot write down what the service has of an update", e);
        }
        reported = true;
    }

    private void answered(Fields was, Fields acknowledged) throws IOException {
        if (was.text("state").equals(INSTALLED) && note.is(BEGAN)) { // in touch: the new version stays
            end(INSTALLED, "");
        }
        if (acknowledged == null || !note.is(OVER)) {
            return;
        }
        for (String member : new String[] {"sha256", "state", "detail"}) {
            if (!acknowledged.text(member).equals(was.text(member))) {
                return;
            }
        }
        Note next = Note.read(Fields.of(note.json()));
        next.acknowledged = true;
        to(next);
    }

    /** receive follows the update in the answer to the request with the sequence number. */
    void receive(Object report, Fields answer, long sequence) throws IOException {
        Envelope sealed = Envelope.read(answer.object("update"));
        if (installer == null || sealed == null) {
            return;
        }
        Fields signed = agent.link.trust.open(sealed, Envelope.UPDATE);
        Update want = Update.read(signed);
        if (!signed.text("deviceId").equals(agent.link.identity().deviceId) || signed.number("number") != sequence) {
            throw new IOException("an update is for another device or another request");
        }
        if (!want.packageName.equals(installer.packageName()) || want.code <= installer.code()) {
            throw new IOException("an update (code " + want.code + ") is not higher than what runs, or for another package");
        }
        if (!want.sound()) {
            throw new IOException("an update names no file that can be used");
        }
        agent.link.trust.keepTime(signed.number("time"));
        follow(report, want);
    }

    private void follow(Object report, Update want) throws IOException {
        if (!want.same(note.want)) {
            if (fetching) {
                return; // the download of another file has to end first
            }
            drop();
            to(Note.of(want, WANTED));
        }
        if (note.is(OVER)) {
            long left = note.until - agent.link.serviceTime(); // more than TRY_AGAIN: a wrong clock set it
            if (!note.state.equals(INSTALLED) && left > 0 && left <= TRY_AGAIN) {
                return;
            }
            to(Note.of(want, WANTED));
        }
        if (note.is(WANTED)) {
            fetch();
        } else if (note.is(VERIFIED) && report != null) {
            Fields was = Fields.of(report);
            if (was.text("state").equals(READY) && was.text("sha256").equals(want.sha256)) {
                install();
            }
        }
    }

    /** fetch downloads, beside an agent that runs. */
    private void fetch() throws IOException {
        if (fetching) {
            return;
        }
        fetching = true;
        final Update want = note.want;
        if (!agent.gate.isOpen()) {
            ended(download(want));
            settle();
            return;
        }
        Thread work =
                new Thread("download") {
                    @Override
                    public void run() {
                        IOException how;
                        try (Awake.Held held = agent.options.awake.hold(AWAKE)) {
                            how = download(want);
                        } catch (RuntimeException | Error e) {
                            agent.reports.broke("a download", e);
                            how = new IOException("the download broke: " + e, e);
                        }
                        ended(how);
                        if (how == null || how instanceof Download.WrongException) { // else it goes on with the next regular check-in
                            agent.hint();
                        }
                    }
                };
        work.setDaemon(true);
        work.start();
    }

    private synchronized void ended(IOException how) {
        fetched = true;
        trouble = how;
    }

    /** download gets the file, and returns what came in between. Between attempts it waits, longer each time. */
    private IOException download(final Update want) {
        IOException last = null;
        for (int attempt = 0; attempt < FETCH_TRIES; attempt++) {
            try {
                if (attempt > 0) {
                    if (!agent.gate.isOpen()) {
                        return last;
                    }
                    Thread.sleep(Backoff.FIRST << attempt);
                }
                Download.fetch(file(), want.sha256, want.size, new Download.Source() {
                    @Override
                    public Transport.Answer range(long from, long to) throws IOException {
                        return agent.link.range("/file/" + want.sha256, from, to);
                    }
                }, agent.steps, agent.clock);
                return null;
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return last;
            } catch (Download.WrongException e) {
                return e;
            } catch (IOException e) {
                last = e;
            }
        }
        return last;
    }

    /** settle notes how a download ended. */
    private void settle() throws IOException {
        IOException how;
        synchronized (this) {
            if (!fetched) {
                return;
            }
            how = trouble;
            fetched = false;
            trouble = null;
        }
        fetching = false;
        if (!note.is(WANTED)) {
            return;
        }
        if (how instanceof Download.WrongException) {
            failed(how);
        } else if (how != null) { // the next check-in goes on
            agent.log.warn("cannot get an update", how);
        } else if (sound()) {
            Note next = Note.of(note.want, VERIFIED);
            next.tries = note.tries;
            to(next);
        }
    }

    /** sound reports whether the file may be installed; else the update is over. */
    private boolean sound() throws IOException {
        try {
            installer.check(file(), note.want);
            return true;
        } catch (IOException | RuntimeException e) {
            agent.log.warn("an update is refused", e);
            end(FAILED, Text.line(String.valueOf(e.getMessage())));
            return false;
        }
    }

    /** install begins. Nothing is begun while the device is going down. */
    private void install() throws IOException {
        if (!agent.journal.entries(Entry.STARTED).isEmpty()) {
            return;
        }
        if (!Download.has(file(), note.want.sha256, note.want.size)) {
            failed(new IOException("the file of the update is damaged"));
            return;
        }
        if (!sound()) {
            return;
        }
        Note next = Note.of(note.want, BEGAN);
        next.tries = note.tries;
        try {
            to(next);
            reported = true;
            agent.steps.before("before install");
            installer.install(file(), note.want);
        } catch (RestartException e) {
            throw e;
        } catch (IOException | RuntimeException e) {
            failed(e instanceof IOException ? (IOException) e : new IOException(String.valueOf(e), e));
        }
    }
}

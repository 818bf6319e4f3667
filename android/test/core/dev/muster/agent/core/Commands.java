package dev.muster.agent.core;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.spec.ECGenParameterSpec;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Commands prints what every command comes to from every state of the journal, in the form of
 * commands.tsv, which the Go agent wrote. The arguments are a folder for the devices and
 * vectors.json, which has the service's signed messages.
 */
public final class Commands implements Device, Transport, Clock, Log, KeyStore, Kept {
    /** TOO_LARGE is a command that no journal can keep. Another comes beside it. */
    private static final String TOO_LARGE = "TOO_LARGE";

    private static final String[] TYPES = {Command.MESSAGE, Command.STATUS, Command.LOCATION, Command.SYNC_POLICY, Command.CHANGE_POLICY,
        Command.REBOOT, Command.SHUTDOWN, Command.LAUNCH, Command.WIPE, Command.RELINQUISH, Command.UPLOAD_LOG, "UNKNOWN",
                "UNREADABLE", TOO_LARGE};
    private static final String[] STAGES = {"NEW", "RECEIVED", "ACCEPTED", "STARTED", "STARTED_LONG_AGO", "STARTED_BEFORE_BOOT", "DONE",
        "FAILED", "CONFIRMED"};
    private static final String[] HOW = {"late,answers,does", "intime,answers,does", "intime,answers,refuses", "intime,answers,cannot",
        "intime,away,does", "intime,silent,does", "intime,silent,refuses"};
    private static final String[] HOW_WIPES = {"intime,answers,orders", "intime,away,orders", "intime,silent,orders"};
    private static final long QUARTER = 15 * 60_000;

    private final File directory;
    private final List<Object> commands = new ArrayList<>();
    private final Fields document;
    private final String service;
    private final String does;
    private final KeyPair pair;
    private final PrivateKey secret;
    private final Map<String, String> settings = new LinkedHashMap<>();
    private final StringBuilder trace = new StringBuilder();
    private long now;
    private int check;
    private int checkIns;
    private String boot = "boot-1";
    private boolean restarted;
    private boolean over;

    private Commands(File directory, Fields vectors, KeyPair pair, String type, String stage, String how) throws IOException {
        String[] parts = how.split(",");
        this.directory = directory;
        this.pair = pair;
        service = parts[1];
        does = parts[2];
        now = vectors.number("now");
        document = vectors.object("document");
        secret = Seal.key(vectors.text("service"));
        Fields command = vectors.object("commands").object(type.equals(TOO_LARGE) ? Command.LAUNCH : type).object(parts[0]);
        Fields fields = Json.object(new String(Text.decode(command.text("payload")), Text.UTF_8));
        if (type.equals(TOO_LARGE)) {
            char[] body = new char[70 << 10];
            Arrays.fill(body, 'x');
            commands.add(ordered(Command.MESSAGE, "c1", fields, Fields.members("title", "t", "body", new String(body))));
            Fields beside = Json.object(new String(Text.decode(vectors.object("commands").object(Command.LAUNCH).object("intime")
                    .text("payload")),
                    Text.UTF_8));
            commands.add(ordered(Command.LAUNCH, "c2", beside, beside.map().get("args")));
        } else {
            commands.add(command.map());
        }
        settings.put("CAMERA", "BLOCK");
        Identity id = new Identity();
        id.server = "https://muster.example";
        id.deviceId = "d1";
        id.key = "device-a";
        id.commandKeys.add(new CommandKey("k1", PublicKey.read(vectors.object("key")), 1));
        id.reserved = 1;
        id.keyMade = now;
        id.latest = now;
        Store store = new Store(directory);
        store.save(Store.IDENTITY, id.json());
        Applied applied = new Applied();
        applied.policy = new PolicyRef("p1", 1);
        applied.wanted = new LinkedHashMap<>(settings);
        applied.settings.add(new SettingReport("CAMERA", SettingReport.APPLIED, ""));
        applied.reported = true;
        applied.bootId = boot;
        applied.checkAt = now + 24 * 4 * QUARTER;
        store.save(Store.APPLIED, applied.json());
        Entry e = entry(stage, Command.read(fields));
        if (e != null) {
            try (Journal journal = Journal.open(store.path(Store.JOURNAL), now)) {
                journal.write(e);
            }
        }
    }

    /** ordered is a command that the service signed, as another one but for its type, id and arguments. */
    private Object ordered(String type, String id, Fields other, Object args) throws IOException {
        Map<String, Object> c = new LinkedHashMap<>(other.map());
        c.put("type", type);
        c.put("id", id);
        c.put("args", args);
        return Seal.seal(secret, "k1", Envelope.COMMAND, c).json();
    }

    private Entry entry(String stage, Command c) {
        Entry e = Entry.received(c, now - 60_000);
        switch (stage) {
            case "NEW":
                return null;
            case "RECEIVED":
                return e;
            case "ACCEPTED":
                return e.acknowledged(now - 60_000);
            case "STARTED":
                return e.again().started("boot-1", now - 1000);
            case "STARTED_LONG_AGO":
                return e.again().started("boot-1", now - 600_000);
            case "STARTED_BEFORE_BOOT":
                return e.again().started("boot-0", now - 600_000);
            default:
                e = e.again().started("boot-1", now - 60_000);
                e = stage.equals("FAILED") ? e.done(Entry.FAILED, "no", now - 60_000) : e.done(Entry.DONE, "did", now - 60_000);
                return stage.equals("CONFIRMED") ? e.confirmed(now - 60_000) : e;
        }
    }

    public static void main(String[] args) throws IOException, GeneralSecurityException {
        Fields vectors = Json.object(new String(Files.readAllBytes(new File(args[1]).toPath()), Text.UTF_8));
        KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
        generator.initialize(new ECGenParameterSpec("secp256r1"));
        KeyPair pair = generator.generateKeyPair();
        int devices = 0;
        for (String type : TYPES) {
            List<String> all = new ArrayList<>(Arrays.asList(HOW));
            if (type.equals(Command.WIPE)) {
                all.addAll(Arrays.asList(HOW_WIPES));
            }
            for (String stage : type.equals(TOO_LARGE) ? new String[] {"NEW"} : STAGES) {
                Map<String, String> when = new LinkedHashMap<>();
                for (String how : all) {
                    String outcome = new Commands(new File(args[0], "d" + devices++), vectors, pair, type, stage, how).live();
                    when.put(outcome, when.containsKey(outcome) ? when.get(outcome) + " " + how : how);
                }
                for (Map.Entry<String, String> e : when.entrySet()) {
                    System.out.println(type + "\t" + stage + "\t" + e.getKey() + "\t" + e.getValue());
                }
            }
        }
    }

    private void record(String what) {
        trace.append(trace.length() == 0 ? "" : " ").append(what);
    }

    /** live is the three times: at the start, a quarter of an hour later, and in a new process. */
    private String live() throws IOException {
        Agent agent = null;
        for (check = 0; check < 3; check++) {
            if (check > 0) {
                record("|");
                now += QUARTER;
            }
            if (agent != null && (check == 2 || restarted)) {
                agent.close();
                agent = null;
                restarted = false;
            }
            try {
                if (agent == null) {
                    agent = open();
                }
                record("next=" + agent.once() / 1000);
            } catch (NotEnrolledException e) {
                record("not_enrolled");
                return trace.toString();
            } catch (EndedException e) {
                record("ended");
            } catch (IOException e) {
                record("error");
            }
        }
        agent.close();
        Entry e = Journal.load(new File(directory, Store.JOURNAL)).entry("c1");
        if (e != null) {
            record("journal=" + e.stage + "," + e.result);
        }
        return trace.toString();
    }

    private Agent open() throws IOException {
        Options o = new Options();
        o.directory = directory;
        o.device = this;
        o.keys = this;
        o.transport = this;
        o.clock = this;
        o.log = this;
        o.kept = this;
        return new Agent(o);
    }

    @Override
    public Answer send(String method, String url, Map<String, String> headers, byte[] body, int silence) throws IOException {
        if (service.equals("away") && check == 0) {
            record("unreached");
            throw new IOException("away");
        }
        if (url.endsWith("/checkin")) {
            Map<String, Object> assigned = Fields.members("deviceId", "d1", "companyId", "acme", "policyId", "p1", "version", 1L, "number",
                    Long.parseLong(headers.get("Muster-Seq")), "time", now);
            Map<String, Object> answer = checkIn(Json.object(new String(body, Text.UTF_8)));
            answer.put("assignment", Seal.seal(secret, "k1", Envelope.ASSIGNMENT, assigned).json());
            return new JsonAnswer(200, answer);
        }
        if (method.equals("POST")) {
            record("upload:" + url.substring(url.indexOf(Link.LOG)) + "," + new String(body, Text.UTF_8));
            return new JsonAnswer(200, new LinkedHashMap<String, Object>());
        }
        record("fetch:" + url.substring(url.indexOf("/policy")));
        return new JsonAnswer(200, document.map());
    }

    /** checkIn writes down what the device reports, and answers. The command is handed out until its last word. */
    private Map<String, Object> checkIn(Fields request) throws IOException {
        StringBuilder text = new StringBuilder("checkin:" + request.text("bootId"));
        checkIns++;
        boolean hears = checkIns > 2 || !service.equals("silent");
        List<Object> acked = new ArrayList<>();
        for (Fields ack : request.objects("acks")) {
            text.append('[').append(ack.text("state")).append(',').append(ack.text("outcome").replace(' ', '_')).append(']');
            if (hears) {
                acked.add(ack.text("commandId"));
                over |= !ack.text("state").equals(Entry.ACCEPTED);
            }
        }
        for (String[] part : new String[][] {{"can", "capabilities"}, {"status", "status"}, {"location", "location"},
                {"policy", "policy"}}) {
            if (request.has(part[1])) {
                text.append('[').append(part[0]).append(']');
            }
        }
        record(text.toString());
        return Fields.members("acked", acked, "nextSeconds", 900L, "commands",
                over ? null : commands);
    }

    /** answer refuses as the device does. */
    private void answer() throws DeviceException {
        switch (does) {
            case "refuses":
                throw DeviceException.failed("no\n\tway" + (char) 0x2028 + "out" + (char) 0);
            case "cannot":
                throw DeviceException.unsupported("");
            case "orders":
                throw DeviceException.ordered();
            default:
        }
    }

    private static String marked(String body) {
        return body.replace("\n", "[n]").replace("\t", "[t]").replace(String.valueOf((char) 0x2028), "[2028]").replace("\0", "[0]");
    }

    @Override
    public String act(Action a) throws DeviceException {
        String[] arguments = {a.commandId, a.text("title"), marked(a.text("body")), a.text("packageName"), a.again ? "again" : ""};
        StringBuilder text = new StringBuilder("do:" + a.type);
        for (String argument : arguments) {
            if (!argument.isEmpty()) {
                text.append(',').append(argument);
            }
        }
        record(text.toString());
        answer();
        if (a.type.equals(Command.REBOOT) || a.type.equals(Command.SHUTDOWN)) {
            boot = "boot-" + (2 + check);
            restarted = true;
        }
        return "did";
    }

    @Override
    public Map<String, Object> facts() {
        return new LinkedHashMap<>();
    }

    @Override
    public List<String> capabilities() {
        return Collections.singletonList("notify");
    }

    @Override
    public String bootId() {
        return boot;
    }

    @Override
    public List<String> settings() {
        return Arrays.asList("CAMERA", "SMS");
    }

    @Override
    public String read(String setting) {
        String value = settings.get(setting);
        return value == null ? "" : value;
    }

    @Override
    public void apply(String setting, String value) throws DeviceException {
        record("set:" + setting + "=" + value);
        answer();
        settings.put(setting, value);
    }

    @Override
    public Report report(Reporting groups) throws DeviceException {
        record(groups.location ? "locate" : "report");
        answer();
        Report r = new Report();
        r.values.put("batteryLevel", 80L);
        if (groups.location) {
            r.location = new Location(1, 2, 3, now, false);
        }
        return r;
    }

    @Override
    public long now() {
        return now;
    }

    @Override
    public long elapsed() {
        return now();
    }

    @Override
    public DeviceKey key(String name) {
        return new DeviceKey() {
            @Override
            public PublicKey publicKey() {
                return new PublicKey(PublicKey.ES256, Text.encode(pair.getPublic().getEncoded()));
            }

            @Override
            public byte[] sign(byte[] message) throws GeneralSecurityException {
                Signature signer = Signature.getInstance("SHA256withECDSA");
                signer.initSign(pair.getPrivate());
                signer.update(message);
                return signer.sign();
            }
        };
    }

    @Override
    public DeviceKey create(String name) {
        return key(name);
    }

    @Override
    public void delete(String name) {}

    @Override
    public void debug(String what, Object about) {}

    @Override
    public void info(String what, Object about) {}

    @Override
    public byte[] text() throws DeviceException {
        answer();
        return Text.bytes("logged");
    }

    @Override
    public void warn(String what, Object about) {}

    @Override
    public void error(String what, Object about) {}
}

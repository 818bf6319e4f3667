package dev.muster.agent.core;

import java.io.ByteArrayInputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.Signature;
import java.security.spec.ECGenParameterSpec;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Fixture is an enrolled device and its service, in virtual time, of which a test sets everything. */
class Fixture implements Device, Transport, Clock, Log, KeyStore, Installer {
    final File directory = Files.createTempDirectory("fixture").toFile();
    final Map<String, String> shows = new LinkedHashMap<>(); // what the device shows of its settings
    final List<String> log = new ArrayList<>();
    final List<String> installed = new ArrayList<>();
    final List<Fields> checkIns = new ArrayList<>(); // every check-in
    long now = 1_800_000_000_000L;
    long elapsed = 3_600_000;
    String boot = "boot-1";
    boolean locked;
    String mute = ""; // a setting that cannot be read
    boolean away; // the service
    String dies = ""; // the process does when this setting is to be applied
    boolean stays; // actions take every setting back, and fail
    String fixed = ""; // a setting that cannot be taken back
    long code = 1; // of the agent that runs
    Map<String, Object> update; // that the service names; null: none
    byte[] file = new byte[0]; // that the service has
    private final KeyPair pair;

    Fixture() throws Exception {
        KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
        generator.initialize(new ECGenParameterSpec("secp256r1"));
        pair = generator.generateKeyPair();
        Identity id = new Identity();
        id.server = "https://muster.example";
        id.deviceId = "d1";
        id.key = "device-a";
        id.commandKeys.add(new CommandKey("k1", publicKey(), 1));
        id.reserved = 1;
        id.keyMade = now;
        id.latest = now;
        new Store(directory).save(Store.IDENTITY, id.json());
    }

    private PublicKey publicKey() {
        return new PublicKey(PublicKey.ES256, Text.encode(pair.getPublic().getEncoded()));
    }

    /** holds has the device hold a policy of one setting since the start with the boot id. */
    void holds(String setting, String value) throws IOException {
        Applied applied = new Applied();
        applied.policy = new PolicyRef("p1", 1);
        applied.wanted.put(setting, value);
        applied.settings.add(new SettingReport(setting, SettingReport.APPLIED, ""));
        applied.reported = true;
        applied.bootId = boot;
        applied.checkAt = elapsed + 6 * 3_600_000;
        new Store(directory).save(Store.APPLIED, applied.json());
        shows.put(setting, value);
    }

    Agent open() throws IOException {
        Options o = new Options();
        o.directory = directory;
        o.device = this;
        o.keys = this;
        o.transport = this;
        o.clock = this;
        o.log = this;
        o.installer = this;
        return new Agent(o);
    }

    /** once has the agent of a new process check in. */
    void once() throws IOException {
        try (Agent agent = open()) {
            agent.once();
        }
    }

    /** order is a command for the device, signed with the service's key under an id. */
    Envelope order(String keyId, String id, String type) throws IOException {
        return order(keyId, id, type, 0);
    }

    /** order is a command with a deadline. */
    Envelope order(String keyId, String id, String type, long deadline) throws IOException {
        return Seal.seal(pair.getPrivate(), keyId, Envelope.COMMAND,
                Fields.members("deviceId", "d1", "id", id, "type", type, "args", Fields.members("package", "com.example"),
                        "notBefore", now - 1000, "deadline", deadline));
    }

    /** offers has the service name a version of the agent, whose file it has. */
    void offers(long version, byte[] content) {
        file = content;
        update = Fields.members("package", "dev.muster.agent", "version", "" + version, "code", version, "file",
                Fields.members("sha256", Text.hex(Text.sha256(content)), "size", (long) content.length));
    }

    /** range is the answer to a request for a part of the file. */
    Answer range(long from, long to) throws IOException {
        return part(from, to, from, to, new ByteArrayInputStream(file, (int) from, (int) (to - from) + 1));
    }

    /** part is an answer that says one range, and holds what the stream gives. */
    Answer part(long from, long to, long headerFrom, long headerTo, InputStream in) {
        return new Answer() {
            @Override
            public int status() {
                return 206;
            }

            @Override
            public String header(String name) {
                return name.equals("Content-Range") ? "bytes " + headerFrom + "-" + headerTo + "/" + file.length : "";
            }

            @Override
            public InputStream body() {
                return in;
            }

            @Override
            public void abort() {}

            @Override
            public void close() {}
        };
    }

    @Override
    public Answer send(String method, String url, Map<String, String> headers, byte[] body, int silence) throws IOException {
        if (away) {
            throw new IOException("no network");
        }
        if (url.contains("/file/")) {
            String[] range = headers.get("Range").substring("bytes=".length()).split("-");
            return range(Long.parseLong(range[0]), Long.parseLong(range[1]));
        }
        Fields request = Json.object(new String(body, Text.UTF_8));
        checkIns.add(request);
        List<Object> acked = new ArrayList<>();
        for (Fields ack : request.objects("acks")) {
            acked.add(ack.text("commandId"));
        }
        Map<String, Object> answer = Fields.members("nextSeconds", 900L, "acked", acked);
        if (request.object("update") != null) { // with a member of a newer service
            Map<String, Object> told = new LinkedHashMap<>(request.object("update").map());
            told.put("since", now);
            answer.put("updateTold", told);
        }
        if (update != null) {
            Map<String, Object> named = new LinkedHashMap<>(update);
            named.putAll(Fields.members("deviceId", "d1", "number", Long.parseLong(headers.get("Muster-Seq")), "time", now));
            answer.put("update", Seal.seal(pair.getPrivate(), "k1", Envelope.UPDATE, named).json());
        }
        return new JsonAnswer(200, answer);
    }

    @Override
    public Map<String, Object> facts() {
        return Collections.emptyMap();
    }

    @Override
    public List<String> capabilities() {
        return Collections.emptyList();
    }

    @Override
    public String bootId() {
        return boot;
    }

    @Override
    public List<String> settings() {
        return new ArrayList<>(shows.keySet());
    }

    @Override
    public String read(String setting) throws DeviceException {
        if (locked && setting.equals("ENCRYPTION_POLICY")) {
            throw DeviceException.locked();
        }
        if (setting.equals(mute)) {
            throw DeviceException.failed("the system says nothing");
        }
        return shows.getOrDefault(setting, "");
    }

    @Override
    public void apply(String setting, String value) throws DeviceException {
        if (setting.equals(dies)) {
            throw new ThreadDeath();
        }
        if (setting.equals(fixed) && value.isEmpty()) {
            throw DeviceException.failed("it is fixed");
        }
        if (!setting.equals("ENCRYPTION_POLICY")) { // the user alone sets a password
            shows.put(setting, value);
        }
    }

    @Override
    public String act(Action action) throws DeviceException {
        if (stays) {
            shows.replaceAll((setting, value) -> "");
            throw DeviceException.failed("it stays managed");
        }
        return "did";
    }

    @Override
    public Report report(Reporting groups) {
        return new Report();
    }

    @Override
    public long now() {
        return now;
    }

    @Override
    public long elapsed() {
        return elapsed;
    }

    @Override
    public void debug(String what, Object about) {}

    @Override
    public void info(String what, Object about) {}

    @Override
    public void warn(String what, Object about) {
        log.add(what + ": " + about);
    }

    @Override
    public void error(String what, Object about) {
        log.add(what + ": " + about);
    }

    @Override
    public DeviceKey key(String name) {
        return new DeviceKey() {
            @Override
            public PublicKey publicKey() {
                return Fixture.this.publicKey();
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
    public String packageName() {
        return "dev.muster.agent";
    }

    @Override
    public long code() {
        return code;
    }

    @Override
    public void check(File what, Update named) {}

    @Override
    public void install(File what, Update named) throws IOException {
        if (!Arrays.equals(Files.readAllBytes(what.toPath()), file)) {
            throw new IOException("another file");
        }
        installed.add(named.version);
        code = named.code;
        throw new RestartException();
    }
}

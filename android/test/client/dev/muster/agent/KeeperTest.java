package dev.muster.agent;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;
import static org.junit.Assert.fail;

import android.app.AlarmManager;
import android.content.Intent;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import com.sun.net.httpserver.HttpServer;
import dev.muster.agent.core.Fields;
import dev.muster.agent.core.Json;
import dev.muster.agent.core.Kept;
import dev.muster.agent.core.Status;
import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Base64;
import java.util.concurrent.CountDownLatch;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;
import org.robolectric.Shadows;

/** From the code to the end, where the service or the device does not do what one hopes for. */
public final class KeeperTest extends Client {
    private HttpServer service;
    private volatile int status;
    private volatile String answer;
    private volatile String latest = ""; // the latest request
    private final StringBuffer requests = new StringBuffer(); // all of them
    private volatile String former = ""; // the device that has ended
    private volatile String unknown = ""; // the device whose key the service does not know
    private volatile String action = "superseded"; // what its tombstone says
    private volatile String crash = ""; // is saved while the service answers a report with a crash; empty: none
    private volatile CountDownLatch held = new CountDownLatch(0); // no answer before
    private Keeper keeper;
    private final Keys keys = new Keys(); // the device's
    private final Keys signer = new Keys(); // the service's

    @Before
    public void service() throws Exception {
        service = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        service.createContext("/", new HttpHandler() {
            @Override
            public void handle(HttpExchange e) throws IOException {
                latest = new String(e.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
                requests.append(latest);
                if (!crash.isEmpty() && latest.contains("the process before this one broke")) {
                    files.saveCrash(crash);
                    crash = "";
                }
                try {
                    held.await();
                } catch (InterruptedException ended) {
                    throw new IOException(ended);
                }
                byte[] body = say(e).getBytes(StandardCharsets.UTF_8);
                e.sendResponseHeaders(refuses(e) ? 410 : stranger(e) ? 401 : status, body.length);
                e.getResponseBody().write(body);
                e.close();
            }
        });
        service.start();
        keys.create("device-a");
        signer.create("k");
        keeper = new Keeper(app, keys);
    }

    @After
    public void stop() {
        held.countDown();
        service.stop(0);
    }

    private void take(int code, String body) throws Exception {
        status = code;
        answer = body;
        keeper.take(code(address()));
    }

    private String address() {
        return "http://127.0.0.1:" + service.getAddress().getPort();
    }

    private String spki() throws Exception {
        return signer.key("k").publicKey().spki;
    }

    /** seal is an envelope of the service. */
    private String seal(String kind, String message) throws Exception {
        Base64.Encoder encoder = Base64.getUrlEncoder().withoutPadding();
        String payload = encoder.encodeToString(message.getBytes(StandardCharsets.UTF_8));
        byte[] signature = signer.key("k").sign(("muster-service-v1\n" + kind + "\nk\n" + payload).getBytes(StandardCharsets.UTF_8));
        return "{\"kind\":\"" + kind + "\",\"payload\":\"" + payload + "\",\"keyId\":\"k\",\"sig\":\"" + encoder.encodeToString(signature)
                + "\"}";
    }

    /** refuses reports whether a request is that of the device that has ended, or has its word in an enrollment. */
    private boolean refuses(HttpExchange e) {
        return !former.isEmpty()
                && (former.equals(e.getRequestHeaders().getFirst("Muster-Device")) || latest.contains("\"former\":"));
    }

    /** stranger reports whether a request is signed with a key that the service does not know. */
    private boolean stranger(HttpExchange e) {
        return !unknown.isEmpty() && unknown.equals(e.getRequestHeaders().getFirst("Muster-Device"));
    }

    private static final String ENROLLS = "enrolls as ";

    /** say is the answer to a request: what is signed is bound to it. */
    private String say(HttpExchange e) throws IOException {
        try {
            if (refuses(e)) {
                return "{\"error\":\"ended\",\"message\":\"\",\"signed\":"
                        + seal("tombstone", "{\"deviceId\":\"" + former + "\",\"action\":\"" + action + "\","
                        + "\"inReplyTo\":\"" + e.getRequestHeaders().getFirst("Muster-Sig") + "\",\"time\":1}") + "}";
            }
            if (stranger(e)) {
                return "{\"error\":\"bad_signature\",\"message\":\"\"}";
            }
            if (answer.startsWith(ENROLLS)) {
                return e.getRequestURI().getPath().endsWith("/enroll") ? enrolled(answer.substring(ENROLLS.length()))
                        : "{\"nextSeconds\":60}";
            }
            return answer;
        } catch (Exception failed) {
            throw new IOException(failed);
        }
    }

    private String enrolled(String device) throws Exception {
        Fields request = Json.object(latest);
        byte[] proof = MessageDigest.getInstance("SHA-256").digest(request.text("proof").getBytes(StandardCharsets.UTF_8));
        return seal("enrolled", "{\"deviceId\":\"" + device + "\",\"key\":" + Json.write(request.object("key").map()) + ",\"proof\":\""
                + Base64.getUrlEncoder().withoutPadding().encodeToString(proof)
                + "\",\"commandKey\":{\"id\":\"k\",\"key\":{\"alg\":\"es256\",\"spki\":\""
                + spki() + "\"},\"notBefore\":1},\"time\":1}");
    }

    /** enrollment is the service's answer to a code. */
    private static String enrollment(String device) {
        return ENROLLS + device;
    }

    private String id() throws Exception {
        return Status.read(files.directory).deviceId;
    }

    private void await(String what, boolean refused) throws Exception {
        until(() -> keeper.trouble().contains(what));
        assertTrue(keeper.trouble(), keeper.trouble().contains(what));
        assertEquals(refused ? Keeper.State.REFUSED : Keeper.State.ENROLLING, keeper.state());
        assertEquals("the code", refused, files.code() == null);
        assertFalse("the token is in the text", keeper.trouble().contains("met_secret"));
    }

    @Test
    public void aSpentTokenTakesAnotherCode() throws Exception {
        take(403, "{\"error\":\"bad_token\",\"message\":\"create a new one\"}");
        await("create a new one", true);
        take(200, enrollment("d9"));
        until(() -> keeper.state() == Keeper.State.ENROLLED);
        assertEquals(keeper.trouble(), Keeper.State.ENROLLED, keeper.state());
        assertTrue(files.enrolled());
        assertNull(files.code());
    }

    @Test
    public void aCrashIsReportedOnce() throws Exception {
        enrolled(app, address(), spki());
        files.saveCrash("the thread main: java.lang.Error");
        status = 200;
        answer = "{\"nextSeconds\":60}";
        keeper.start();
        until(() -> files.crash().isEmpty());
        assertEquals("", files.crash());
        assertTrue(requests.toString(), requests.toString()
                .contains("\"agentErrors\":[\"the process before this one broke: the thread main: java.lang.Error\"]"));
    }

    /** Only the crash that a check-in carried is forgotten when it is answered. */
    @Test
    public void aCrashDuringACheckInIsKept() throws Exception {
        enrolled(app, address(), spki());
        files.saveCrash("first");
        crash = "second";
        status = 200;
        answer = "{\"nextSeconds\":60}";
        keeper.start();
        until(() -> crash.isEmpty());
        int reported = requests.length();
        until(() -> { // a check-in without a report
            keeper.hint();
            return requests.length() > reported;
        });
        Thread.sleep(200); // for its answer
        assertEquals("second", files.crash());
    }

    /** A code that the disk damaged keeps an enrolled device from nothing. */
    @Test
    public void aDamagedCodeGoes() throws Exception {
        enrolled(app, address(), spki());
        File code = new File(app.createDeviceProtectedStorageContext().getFilesDir(), "code.json");
        Files.write(code.toPath(), new byte[100]);
        status = 200;
        answer = "{\"nextSeconds\":60}";
        keeper.start();
        until(() -> keeper.contact() != 0);
        assertTrue(keeper.trouble(), keeper.contact() != 0);
        assertFalse(code.exists());
    }

    @Test
    public void aCaptivePortalIsNoRefusal() throws Exception {
        take(403, "<html>Please sign in</html>");
        await("refused the enrollment ()", false);
        for (String error : new String[] {"sign in", "not_found", "ended", "upgrade_required", "bad_signature"}) {
            take(403, "{\"error\":\"" + error + "\",\"message\":\"\"}");
            await("(" + error + ")", false);
        }
        take(400, "{\"error\":\"malformed\",\"message\":\"\"}");
        await("(malformed)", true);
    }

    @Test
    public void noNetworkKeepsTheCode() throws Exception {
        service.stop(0);
        take(200, "");
        await("cannot reach the service", false);
    }

    /** superseded has an enrolled device hear, signed, that another device stands in its place. */
    private void superseded() throws Exception {
        enrolled(app, address(), spki());
        former = "d1";
        keeper.start();
        reach(Keeper.State.SUPERSEDED);
    }

    private void reach(Keeper.State wanted) throws Exception {
        until(() -> keeper.state() == wanted);
        assertEquals(keeper.trouble(), wanted, keeper.state());
    }

    @Test
    public void aSupersededDeviceKeepsItsPolicyAndTakesACode() throws Exception {
        superseded();
        assertTrue(keeper.trouble(), keeper.trouble().contains("another device has enrolled as this one"));
        assertTrue("it keeps its identity", files.enrolled());
        assertTrue("it stays the owner", fake.owner);
        String before = id();
        take(403, "{\"error\":\"bad_token\",\"message\":\"create a new one\"}");
        until(() -> files.code() == null);
        assertNull("a code that is refused goes", files.code());
        assertEquals("the former identity stays", before, id());
        reach(Keeper.State.SUPERSEDED);
        keeper.take(code("https://other.example"));
        until(() -> files.code() == null);
        assertNull("another service's code goes: the device stays in touch with its own", files.code());
        reach(Keeper.State.SUPERSEDED);
        take(502, "<html>Bad gateway</html>");
        await("refused the enrollment ()", false);
        take(200, enrollment("d9"));
        until(() -> id().equals("d9"));
        assertEquals("d9", id());
        reach(Keeper.State.ENROLLED);
        assertNull(files.code());
    }

    /** A code that the device still has, as its process ended when it was enrolled, does not keep it from being erased. */
    @Test
    public void aCodeIsNoWayOutOfAWipe() throws Exception {
        enrolled(app, address(), spki());
        files.saveCode(code(address()));
        former = "d1";
        action = "wipe";
        keeper.start();
        until(() -> new ArrayList<>(fake.calls).toString().contains("wipeDataWithReason"));
        assertTrue(fake.calls + ", " + keeper.trouble(), fake.calls.toString().contains("wipeDataWithReason"));
    }

    /** A device whose key is gone says so, and takes a code of the service that it obeyed, and no other. */
    @Test
    public void aDeviceThatLostItsKeyTakesACodeOfItsService() throws Exception {
        enrolled(app, address(), spki());
        keeper = new Keeper(app, new Keys()); // the Keystore holds none
        status = 503;
        answer = "{}";
        takesACodeWhenLost();
    }

    /** So does one whose key the service does not know, because one of the two is older than the last change of the key. */
    @Test
    public void aDeviceWhoseKeyIsRefusedTakesACodeOfItsService() throws Exception {
        enrolled(app, address(), spki());
        unknown = "d1";
        takesACodeWhenLost();
    }

    private void takesACodeWhenLost() throws Exception {
        String before = id();
        keeper.start();
        reach(Keeper.State.LOST);
        assertTrue("it stays the owner", fake.owner);
        assertTrue(keeper.takesToken());
        status = 409;
        answer = "{\"error\":\"waiting\",\"message\":\"an administrator confirms\"}";
        keeper.takeToken("met_secret");
        reach(Keeper.State.ASKING);
        assertNotNull("it keeps its code", files.code());
        assertEquals("it stays who it was", before, id());
        status = 200;
        answer = enrollment("d9");
        until(() -> {
            keeper.hint();
            return id().equals("d9");
        });
        assertEquals("d9", id());
        reach(Keeper.State.ENROLLED);
    }

    @Test
    public void aDamagedIdentityObeysNoOtherService() throws Exception {
        enrolled(app, address(), Keys.spki()); // of another key than the service's
        keeper = new Keeper(app, new Keys());
        String before = id();
        status = 503;
        answer = "{}";
        keeper.start();
        reach(Keeper.State.LOST);
        take(200, enrollment("d9"));
        until(() -> keeper.trouble().contains("does not name the command key"));
        assertTrue(keeper.trouble(), keeper.trouble().contains("does not name the command key"));
        assertEquals("it stays who it was", before, id());
    }

    @Test
    public void anEnrolledDeviceTakesNoCode() throws Exception {
        enrolled(app);
        try {
            keeper.take(code("https://other.example"));
            fail("it took another service's code");
        } catch (IOException e) {
            assertTrue(e.getMessage(), e.getMessage().contains("enrolled already"));
        }
        assertNull(files.code());
    }

    /** The answer to an enrollment makes the device a managed one: until it is there, nothing is given up. */
    @Test
    public void aDeviceThatEnrollsIsNotGivenUp() throws Exception {
        held = new CountDownLatch(1);
        take(200, enrollment("d9"));
        until(() -> requests.length() > 0);
        try {
            keeper.giveUp();
            fail("it gave up a device that the service manages");
        } catch (IOException e) {
            assertEquals("this device is enrolling: try again in two minutes", e.getMessage());
            keeper.error("cannot give up the ownership", e); // as the button does
            assertEquals("cannot give up the ownership: " + e.getMessage(), keeper.trouble());
        }
        assertTrue(fake.owner);
        held.countDown();
        reach(Keeper.State.ENROLLED);
        assertEquals("d9", id());
    }

    /** A service that refused the code for a time holds nothing back. What is there of the enrollment goes with the ownership. */
    @Test
    public void nothingIsLeftOfADeviceThatWasGivenUp() throws Exception {
        take(503, "{}");
        await("refused the enrollment", false);
        files.saveCrash("the thread main: java.lang.Error");
        assertTrue(new File(files.directory, "enrolling.json").exists());
        keeper.giveUp();
        assertFalse(fake.owner);
        assertNull(files.code());
        assertEquals("", String.join(" ", files.directory.list()));
        assertNull(keys.key("device-a"));
        assertEquals("", files.crash());
        Thread.sleep(200); // what the agent's thread logs
        assertFalse(files.log.exists());
    }

    /** The keys that follow are made where the first one was, until another code says otherwise. */
    @Test
    public void theSecureElementKeepsTheKeys() throws Exception {
        status = 200;
        answer = enrollment("d9");
        keeper.take(code(address()).replace("\"dev.muster.agent.ENROLLMENT_TOKEN", "\"dev.muster.agent.STRONG_BOX\":\"true\","
                + "\"dev.muster.agent.ENROLLMENT_TOKEN"));
        reach(Keeper.State.ENROLLED);
        assertTrue(files.strongBox.exists());
        Keeper android = new Keeper(app);
        assertTrue(((KeystoreKeys) android.keys(true)).strongBox);
        assertFalse(((KeystoreKeys) android.keys(false)).strongBox);
        former = "d9";
        keeper.hint();
        reach(Keeper.State.SUPERSEDED);
        take(200, enrollment("d10"));
        until(() -> files.code() == null);
        assertEquals("d10", id());
        assertFalse(files.strongBox.exists());
    }

    @Test
    public void theOwnershipGoesAfterACrashToo() throws Exception {
        fake.restrictions.add("no_sms");
        files.beginLeaving(); // the enrollment has ended, the identity destroyed, and then the process ended
        keeper.start();
        until(() -> !fake.owner && !files.leaving());
        assertFalse(fake.owner);
        assertFalse(files.leaving());
    }

    @Test
    public void anAlarmIsTheBackstop() throws Exception {
        new WakeReceiver().onReceive(app, new Intent(Intent.ACTION_BOOT_COMPLETED));
        assertNotNull(Shadows.shadowOf(app.getSystemService(AlarmManager.class)).peekNextScheduledAlarm());
    }

    @Test
    public void aReleasedDeviceIsLeftAlone() throws Exception {
        fake.owner = false;
        new WakeReceiver().onReceive(app, new Intent(Intent.ACTION_BOOT_COMPLETED));
        assertNull(Shadows.shadowOf(app.getSystemService(AlarmManager.class)).peekNextScheduledAlarm());
    }

    @Test
    public void theLogIsBounded() throws Exception {
        DeviceLog log = new DeviceLog(files.log);
        for (int i = 0; i < 3000; i++) {
            log.info("line", i + " what happened is told in many words, "
                    + "so that these lines fill more than the file may hold of them, twice over");
        }
        assertTrue(files.log.length() + " bytes", files.log.length() <= Kept.MAX && log.text().length == files.log.length());
        String text = new String(Files.readAllBytes(files.log.toPath()), StandardCharsets.UTF_8);
        assertTrue(text.trim().contains("line: 2999 "));
        assertTrue("it begins with a line", text.startsWith("2"));
    }
}

package dev.muster.agent;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;

import android.app.AlarmManager;
import android.content.Intent;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import com.sun.net.httpserver.HttpServer;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;
import org.robolectric.Shadows;

/** From the code to the end, where the service or the device does not do what one hopes for. */
public final class KeeperTest extends Client {
    private HttpServer service;
    private volatile int status;
    private volatile String answer;
    private Keeper keeper;

    @Before
    public void service() throws Exception {
        service = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        service.createContext("/", new HttpHandler() {
            @Override
            public void handle(HttpExchange e) throws java.io.IOException {
                byte[] body = answer.getBytes(StandardCharsets.UTF_8);
                e.sendResponseHeaders(status, body.length);
                e.getResponseBody().write(body);
                e.close();
            }
        });
        service.start();
        keeper = new Keeper(app, new Keys());
    }

    @After
    public void stop() {
        service.stop(0);
    }

    private void take(int code, String body) throws Exception {
        status = code;
        answer = body;
        keeper.take(code("http://127.0.0.1:" + service.getAddress().getPort()));
    }

    private void await(String what, boolean refused) throws Exception {
        for (int i = 0; i < 200 && !keeper.trouble().contains(what); i++) {
            Thread.sleep(20); // the agent's thread is a real one
        }
        assertTrue(keeper.trouble(), keeper.trouble().contains(what));
        assertEquals(refused ? Keeper.State.REFUSED : Keeper.State.ENROLLING, keeper.state());
        assertEquals("the code", refused, files.code() == null);
        assertFalse("the token is in the text", keeper.trouble().contains("met_secret"));
    }

    @Test
    public void aSpentTokenTakesAnotherCode() throws Exception {
        take(403, "{\"error\":\"bad_token\",\"message\":\"create a new one\"}");
        await("create a new one", true);
        take(200, "{\"deviceId\":\"d9\",\"serverTime\":1,\"commandKeys\":[{\"id\":\"k\",\"key\":{\"alg\":\"es256\",\"spki\":\"" + Keys.spki()
                + "\"},\"notBefore\":1}],\"nextSeconds\":60}");
        for (int i = 0; i < 200 && keeper.state() != Keeper.State.ENROLLED; i++) {
            Thread.sleep(20);
        }
        assertEquals(keeper.trouble(), Keeper.State.ENROLLED, keeper.state());
        assertTrue(files.enrolled());
        assertNull(files.code());
    }

    @Test
    public void aCaptivePortalIsNoRefusal() throws Exception {
        take(403, "<html>Please sign in</html>");
        await("", false);
        assertNotNull(files.code());
    }

    @Test
    public void noNetworkKeepsTheCode() throws Exception {
        service.stop(0);
        take(200, "");
        await("cannot reach the service", false);
    }

    @Test
    public void theOwnershipGoesAfterACrashToo() throws Exception {
        fake.restrictions.add("no_sms");
        files.begin(); // let go, the identity destroyed, and then the process ended
        keeper.start();
        for (int i = 0; i < 200 && fake.owner; i++) {
            Thread.sleep(20);
        }
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
            log.info("line", i + " 0123456789012345678901234567890123456789012345678901234567890123456789");
        }
        assertTrue(files.log.length() + " bytes", files.log.length() <= DeviceLog.MAX + 2000);
        String text = new String(java.nio.file.Files.readAllBytes(files.log.toPath()), StandardCharsets.UTF_8);
        assertTrue(text.trim().contains("line: 2999 "));
        assertTrue("it begins with a line", text.startsWith("2"));
    }
}

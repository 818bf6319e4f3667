package dev.muster.agent;

import android.app.Application;
import android.content.Context;
import dev.muster.agent.core.Json;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.Callable;
import org.junit.Before;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.annotation.Config;

/** Client is a test on the framework of Android 9, 13 and 15, with the fake under its real client code. */
@RunWith(RobolectricTestRunner.class)
@Config(sdk = {28, 33, 35}, shadows = RealDevicePolicyManager.class)
public abstract class Client {
    Application app;
    FakeDpms fake;
    StateFiles files;

    @Before
    public void install() throws Exception {
        app = RuntimeEnvironment.getApplication();
        fake = FakeDpms.install();
        files = new StateFiles(app);
    }

    /** until waits, a minute at most, for what a thread of the agent does: those threads are real ones. */
    static void until(Callable<Boolean> done) throws Exception {
        for (long end = System.nanoTime() + 60_000_000_000L; !done.call() && System.nanoTime() < end; ) {
            Thread.sleep(10);
        }
    }

    /** code is the text of a code, as the service writes it. */
    static String code(String server) {
        Map<String, Object> extras = new LinkedHashMap<>();
        extras.put("dev.muster.agent.SERVER_URL", server);
        extras.put("dev.muster.agent.ENROLLMENT_TOKEN", "met_secret");
        return Json.write(Collections.singletonMap("android.app.extra.PROVISIONING_ADMIN_EXTRAS_BUNDLE", extras));
    }

    /** enrolled gives the device an identity. */
    static void enrolled(Context context) throws IOException {
        enrolled(context, "https://muster.example", Keys.spki());
    }

    /** enrolled gives the device an identity at the service, whose key signs its messages. */
    static void enrolled(Context context, String service, String key) throws IOException {
        File directory = new StateFiles(context).directory;
        Files.createDirectories(directory.toPath());
        String identity = "{\"server\":\"" + service + "\",\"deviceId\":\"d1\",\"role\":\"manager\",\"key\":\"device-a\","
                + "\"commandKeys\":[{\"id\":\"k\",\"key\":{\"alg\":\"es256\",\"spki\":\"" + key + "\"},\"notBefore\":1}],"
                + "\"reserved\":1,\"offsetMs\":0,\"keyMade\":1,\"connection\":{\"pins\":[]},\"latest\":1,\"assigned\":false}";
        Files.write(new File(directory, "identity.json").toPath(), identity.getBytes(StandardCharsets.UTF_8));
        String applied = "{\"policy\":{\"id\":\"p1\",\"version\":3,\"etag\":\"\"},"
                + "\"wanted\":{\"CAMERA\":\"BLOCK\",\"REPORT_POWER_EVENTS\":\"ENABLED\"},"
                + "\"settings\":[{\"id\":\"CAMERA\",\"state\":\"applied\"}],\"reported\":true,\"bootId\":\"b\",\"checkAt\":1}";
        Files.write(new File(directory, "applied.json").toPath(), applied.getBytes(StandardCharsets.UTF_8));
    }
}

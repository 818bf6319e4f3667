package dev.muster.agent;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import dev.muster.agent.core.LogFile;
import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import org.json.JSONArray;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.annotation.Config;

/** What the agent logs has no secrets, by the table of the Go agent. */
@RunWith(RobolectricTestRunner.class)
@Config(sdk = {28, 33, 35})
public final class LogFileTest {
    @Test
    public void linesHaveNoSecrets() throws Exception {
        int compared = 0;
        for (String line : Files.readAllLines(new File(System.getProperty("muster.tests"), "log.tsv").toPath())) {
            if (!line.startsWith("#")) {
                JSONArray pair = new JSONArray("[" + line.replace('\t', ',') + "]");
                assertEquals(pair.getString(1), LogFile.clean(pair.getString(0)));
                compared++;
            }
        }
        assertTrue("lines: " + compared, compared > 15);
    }

    @Test
    public void theTextIsTheLinesWithoutSecrets() throws Exception {
        File file = File.createTempFile("log", ".txt");
        LogFile log = new LogFile(file);
        log.clear();
        assertArrayEquals(new byte[0], log.text());
        log.write("WARN", "cannot sign in", "password=hunter2\nat once " + (char) 0xD800);
        String text = new String(log.text(), StandardCharsets.UTF_8);
        assertTrue(text, text.endsWith(" WARN cannot sign in: password=[redacted] at once  \n") || text.endsWith("at once \n"));
        log.clear();
        assertTrue("it is gone", !file.exists());
    }
}

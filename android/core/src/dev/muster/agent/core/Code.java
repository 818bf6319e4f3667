package dev.muster.agent.core;

import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** Code is what an agent needs of a QR code, or of the same text that was handed over by USB. */
public final class Code {
    /** MAX is how long, in bytes, the text of a code may be. */
    public static final int MAX = 64 << 10;

    private static final String EXTRAS = "android.app.extra.PROVISIONING_ADMIN_EXTRAS_BUNDLE";
    private static final String PREFIX = "dev.muster.agent.";

    public final String server;
    public final String token;
    /** commandKey is the P-256 one; empty: the device keeps the key that signs the answer. */
    public final String commandKey;
    /** strongBox asks for a key in the secure element, where the device has one: it is slower, and fails more often. */
    public final boolean strongBox;
    /** pins: none, if its certificate must be one that the world trusts. */
    public final List<String> pins;

    private Code(Map<String, String> extras) throws IOException {
        server = member(extras, "SERVER_URL");
        token = member(extras, "ENROLLMENT_TOKEN");
        commandKey = member(extras, "COMMAND_KEY_ES256");
        strongBox = member(extras, "STRONG_BOX").equals("true");
        String all = member(extras, "SERVER_PIN");
        pins = all.isEmpty() ? new ArrayList<String>() : Arrays.asList(all.split(","));
        if (token.isEmpty()) {
            throw new IOException("the code holds no enrollment token of an agent");
        }
        Server.check(server);
    }

    private static String member(Map<String, String> extras, String name) {
        String value = extras.get(PREFIX + name);
        return value == null ? "" : value;
    }

    /** parse reads the text of a code. No message of it names the token. */
    public static Code parse(String text) throws IOException {
        Fields all;
        try {
            all = Json.object(text);
        } catch (JsonException e) {
            throw new IOException("the code is not JSON"); // without the cause, which may quote it
        }
        return of(all.textMap(EXTRAS));
    }

    /**
     * again is the text of a code for a device that lost its identity in a directory: it knows its service, and
     * needs a token alone.
     */
    public static String again(File directory, String token) throws IOException {
        Obeyed known = Obeyed.find(new Store(directory), new LostException("this device has lost its identity", null));
        StringBuilder pins = new StringBuilder();
        for (String pin : known.pins) {
            pins.append(pins.length() == 0 ? "" : ",").append(pin);
        }
        return Json.write(Fields.members(EXTRAS, Fields.members(PREFIX + "SERVER_URL", known.server,
                PREFIX + "ENROLLMENT_TOKEN", token.trim(),
                PREFIX + "SERVER_PIN", pins.toString())));
    }

    /** of reads the part of a code that the setup wizard hands to the app. */
    public static Code of(Map<String, String> extras) throws IOException {
        return new Code(extras);
    }

    /** toString keeps the token out of logs. */
    @Override
    public String toString() {
        return "{" + server + " [secret]}";
    }
}

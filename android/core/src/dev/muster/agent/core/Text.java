package dev.muster.agent.core;

import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Base64;

/** Text has the encodings of the protocol: UTF-8, base64url without padding, and SHA-256 in hexadecimal. */
final class Text {
    static final Charset UTF_8 = StandardCharsets.UTF_8;

    private Text() {}

    static byte[] bytes(String s) {
        return s.getBytes(UTF_8);
    }

    static String encode(byte[] data) {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(data);
    }

    /** decode reads the one text that encode writes for some bytes; every other spelling is refused. */
    static byte[] decode(String s) throws JsonException {
        try {
            byte[] data = Base64.getUrlDecoder().decode(s);
            if (encode(data).equals(s)) {
                return data;
            }
        } catch (IllegalArgumentException e) {
            // Refused below, in the same words.
        }
        throw new JsonException("cannot read base64url: not its one spelling");
    }

    static byte[] sha256(byte[] data) {
        try {
            return MessageDigest.getInstance("SHA-256").digest(data);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Android has SHA-256", e);
        }
    }

    static String hex(byte[] data) {
        StringBuilder s = new StringBuilder(data.length * 2);
        for (byte b : data) {
            s.append(Character.forDigit(b >> 4 & 15, 16)).append(Character.forDigit(b & 15, 16));
        }
        return s.toString();
    }

    /** MAX_OUTCOME is how long a line about a command's end may be, in code units. */
    private static final int MAX_OUTCOME = 1000;

    /**
     * line is a text as one line of UTF-8: what breaks lines, controls or is half of a pair becomes a space, and
     * it ends after MAX_OUTCOME code units.
     */
    static String line(String s) {
        StringBuilder out = new StringBuilder();
        for (int i = 0; s != null && i < s.length() && out.length() < MAX_OUTCOME; ) {
            int c = s.codePointAt(i);
            i += Character.charCount(c);
            boolean bad = Character.isISOControl(c) || c == 0x2028 || c == 0x2029 || c >= Character.MIN_SURROGATE
                    && c <= Character.MAX_SURROGATE;
            out.appendCodePoint(bad ? ' ' : c);
        }
        return out.toString().trim();
    }

    /** lines joins what is signed: one item a line. */
    static byte[] lines(String... items) {
        StringBuilder s = new StringBuilder();
        for (int i = 0; i < items.length; i++) {
            s.append(i == 0 ? "" : "\n").append(items[i]);
        }
        return bytes(s.toString());
    }
}

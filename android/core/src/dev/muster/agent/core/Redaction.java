package dev.muster.agent.core;

import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Redaction takes out of a line what is, or looks like, a secret. The rules are those of the Go agent. */
final class Redaction {
    private static final String REDACTED = "[redacted]";

    /** HEADER is a header with credentials, to the end of the line. */
    private static final Pattern HEADER = Pattern.compile("(?i)(authorization[\"' :=]+).*");
    /** MEMBER is a secret by its name: name=value, "name": "value", or the same as text in JSON. */
    private static final Pattern MEMBER = Pattern.compile(
            "(?i)((?:password|passphrase|passwd|secret|token|signature|proof|private.?key)s?[\\\\\"']*\\s*[:=]\\s*|\\bkey=)"
                    + "(?:\\\\\"[^\\\\\"]*\\\\\"|\"(?:[^\"\\\\]|\\\\.)*+\"|[^\\s,;&]+)");
    /** USER is what an address says of a user. */
    private static final Pattern USER = Pattern.compile("://[^/\\s@\"]*@");
    /** PREFIXED are secrets that say what they are. */
    private static final Pattern PREFIXED = Pattern.compile("\\b((?:met|mct|mk|whsec)_)[A-Za-z0-9_+/=-]+");
    /** WORD is what may be a key, a token or a digest. */
    private static final Pattern WORD = Pattern.compile("[A-Za-z0-9_+=-]{20,}");

    private Redaction() {}

    static String of(String line) {
        line = HEADER.matcher(line).replaceAll("$1" + REDACTED);
        line = MEMBER.matcher(line).replaceAll("$1" + REDACTED);
        line = USER.matcher(line).replaceAll("://" + REDACTED + "@");
        line = PREFIXED.matcher(line).replaceAll("$1" + REDACTED);
        Matcher words = WORD.matcher(line);
        StringBuffer out = new StringBuffer();
        while (words.find()) {
            words.appendReplacement(out, secret(words.group()) ? Matcher.quoteReplacement(REDACTED) : words.group());
        }
        return words.appendTail(out).toString();
    }

    /**
     * secret reports whether a word of 20 characters or more is more likely a key, a token or a digest than a name: it
     * has a digit, and an upper-case letter or 32 characters. Ids have 26 lower-case letters and digits.
     */
    private static boolean secret(String word) {
        boolean digit = false;
        for (int i = 0; i < word.length(); i++) {
            digit |= word.charAt(i) >= '0' && word.charAt(i) <= '9';
        }
        return digit && (word.length() >= 32 || !word.equals(word.toLowerCase(Locale.ROOT)));
    }
}

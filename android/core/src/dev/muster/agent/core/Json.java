package dev.muster.agent.core;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Json reads and writes RFC 8259 text. Objects are maps in the order of their members, arrays are lists, numbers
 * are Long where they have no fraction and fit, else Double; null is null. A member that is given twice, text after
 * the value and more than 64 levels are refused.
 */
public final class Json {
    private static final int MAX_DEPTH = 64;

    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** parse reads one value. It throws JsonException for anything else. */
    public static Object parse(String text) throws JsonException {
        Json reader = new Json(text);
        Object value = reader.value(0);
        reader.space();
        if (reader.at != text.length()) {
            throw reader.wrong("text after the value");
        }
        return value;
    }

    /** object reads one JSON object. */
    public static Fields object(String text) throws JsonException {
        return Fields.of(parse(text));
    }

    private Object value(int depth) throws JsonException {
        if (depth > MAX_DEPTH) {
            throw wrong("more than " + MAX_DEPTH + " levels");
        }
        space();
        if (at >= text.length()) {
            throw wrong("a value is missing");
        }
        char c = text.charAt(at);
        switch (c) {
            case '{':
                return members(depth);
            case '[':
                return elements(depth);
            case '"':
                return string();
            case 't':
                return word("true", Boolean.TRUE);
            case 'f':
                return word("false", Boolean.FALSE);
            case 'n':
                return word("null", null);
            default:
                return number();
        }
    }

    private Map<String, Object> members(int depth) throws JsonException {
        Map<String, Object> all = new LinkedHashMap<>();
        at++;
        space();
        if (take('}')) {
            return all;
        }
        do {
            space();
            if (at >= text.length() || text.charAt(at) != '"') {
                throw wrong("a member's name is missing");
            }
            String name = string();
            space();
            expect(':');
            Object value = value(depth + 1);
            if (all.containsKey(name)) {
                throw wrong("the member " + name + " is given twice");
            }
            all.put(name, value);
            space();
        } while (take(','));
        expect('}');
        return all;
    }

    private List<Object> elements(int depth) throws JsonException {
        List<Object> all = new ArrayList<>();
        at++;
        space();
        if (take(']')) {
            return all;
        }
        do {
            all.add(value(depth + 1));
            space();
        } while (take(','));
        expect(']');
        return all;
    }

    private String string() throws JsonException {
        StringBuilder s = new StringBuilder();
        for (at++; at < text.length(); at++) {
            char c = text.charAt(at);
            if (c == '"') {
                at++;
                return s.toString();
            }
            if (c < ' ') {
                throw wrong("a control character in a string");
            }
            s.append(c == '\\' ? escaped() : c);
        }
        throw wrong("a string does not end");
    }

    private char escaped() throws JsonException {
        at++;
        char c = at < text.length() ? text.charAt(at) : ' ';
        int simple = "\"\\/bfnrt".indexOf(c);
        if (simple >= 0) {
            return "\"\\/\b\f\n\r\t".charAt(simple);
        }
        if (c != 'u' || at + 4 >= text.length()) {
            throw wrong("an unknown escape");
        }
        int code = 0;
        for (int i = 0; i < 4; i++) {
            int digit = Character.digit(text.charAt(++at), 16);
            if (digit < 0) {
                throw wrong("an unknown escape");
            }
            code = code * 16 + digit;
        }
        return (char) code;
    }

    private Object number() throws JsonException {
        int start = at;
        while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        String digits = text.substring(start, at);
        if (!digits.matches("-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?")) {
            throw wrong("an unknown value");
        }
        if (digits.matches("-?[0-9]{1,18}")) {
            return Long.valueOf(digits);
        }
        return Double.valueOf(digits);
    }

    private Object word(String word, Object value) throws JsonException {
        if (!text.startsWith(word, at)) {
            throw wrong("an unknown value");
        }
        at += word.length();
        return value;
    }

    private void space() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
    }

    private boolean take(char c) {
        if (at < text.length() && text.charAt(at) == c) {
            at++;
            return true;
        }
        return false;
    }

    private void expect(char c) throws JsonException {
        if (!take(c)) {
            throw wrong("'" + c + "' is missing");
        }
    }

    private JsonException wrong(String what) {
        return new JsonException("cannot read JSON: " + what + " at position " + at);
    }

    /** write returns the text of a value: a map, a list, a string, a number, a boolean or null. */
    public static String write(Object value) {
        StringBuilder out = new StringBuilder();
        write(out, value);
        return out.toString();
    }

    private static void write(StringBuilder out, Object value) {
        if (value instanceof Map) {
            writeMembers(out, (Map<?, ?>) value);
        } else if (value instanceof Iterable) {
            String before = "[";
            for (Object element : (Iterable<?>) value) {
                out.append(before);
                write(out, element);
                before = ",";
            }
            out.append("[".equals(before) ? "[]" : "]");
        } else if (value instanceof CharSequence) {
            writeString(out, value.toString());
        } else if (value instanceof Double && (((Double) value).isNaN() || ((Double) value).isInfinite())) {
            throw new IllegalArgumentException("cannot write JSON: " + value + " is not a number");
        } else if (value == null || value instanceof Number || value instanceof Boolean) {
            out.append(value);
        } else {
            throw new IllegalArgumentException("cannot write JSON: " + value.getClass());
        }
    }

    private static void writeMembers(StringBuilder out, Map<?, ?> members) {
        String before = "{";
        for (Map.Entry<?, ?> e : members.entrySet()) {
            out.append(before);
            writeString(out, (String) e.getKey());
            out.append(':');
            write(out, e.getValue());
            before = ",";
        }
        out.append("{".equals(before) ? "{}" : "}");
    }

    private static void writeString(StringBuilder out, String s) {
        out.append('"');
        for (int i = 0; i < s.length(); i++) {
            char c = s.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < ' ' || c == 0x2028 || c == 0x2029 || Character.isSurrogate(c) && !paired(s, i)) {
                out.append(escape(c));
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }

    /** escape writes a code unit in ASCII, so that parse reads the same again, also half a surrogate pair. */
    private static String escape(char c) {
        String digits = Integer.toHexString(c);
        return "\\u" + "0000".substring(digits.length()) + digits;
    }

    /** paired reports whether the surrogate at i belongs to a pair: only those can be sent as UTF-8. */
    private static boolean paired(String s, int i) {
        char c = s.charAt(i);
        if (Character.isHighSurrogate(c)) {
            return i + 1 < s.length() && Character.isLowSurrogate(s.charAt(i + 1));
        }
        return i > 0 && Character.isHighSurrogate(s.charAt(i - 1));
    }
}

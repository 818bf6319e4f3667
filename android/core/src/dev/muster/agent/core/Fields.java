package dev.muster.agent.core;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Fields are the members of a JSON object, read by type. A member that is absent or null reads as the type's empty
 * value; one of another type is refused. Unknown members are ignored, so that the service may be newer.
 */
public final class Fields {
    private final Map<String, Object> members;

    private Fields(Map<String, Object> members) {
        this.members = members;
    }

    @SuppressWarnings("unchecked") // Json makes maps with string keys only
    static Fields of(Object value) throws JsonException {
        if (!(value instanceof Map)) {
            throw new JsonException("cannot read JSON: an object was expected");
        }
        return new Fields((Map<String, Object>) value);
    }

    /** members makes an object of names and values in turns; a value that is null is left out. */
    static Map<String, Object> members(Object... namesAndValues) {
        Map<String, Object> all = new LinkedHashMap<>();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            if (namesAndValues[i + 1] != null) {
                all.put((String) namesAndValues[i], namesAndValues[i + 1]);
            }
        }
        return all;
    }

    /** copy returns the texts of a list that was sent. */
    static List<String> copy(Object texts) {
        List<String> all = new ArrayList<>();
        for (Object text : (List<?>) texts) {
            all.add((String) text);
        }
        return all;
    }

    /** some returns the text, or null where it is empty, for members that are left out then. */
    static String some(String text) {
        return text == null || text.isEmpty() ? null : text;
    }

    /** map returns the members as they are. */
    public Map<String, Object> map() {
        return members;
    }

    public boolean has(String name) {
        return members.get(name) != null;
    }

    /** text returns a string, or "" where there is none. */
    public String text(String name) throws JsonException {
        Object v = members.get(name);
        if (v != null && !(v instanceof String)) {
            throw wrong(name, "a string");
        }
        return v == null ? "" : (String) v;
    }

    /** number returns an integer, or 0 where there is none. */
    public long number(String name) throws JsonException {
        Object v = members.get(name);
        if (v != null && !(v instanceof Long)) {
            throw wrong(name, "an integer");
        }
        return v == null ? 0 : ((Long) v).longValue();
    }

    public boolean flag(String name) throws JsonException {
        Object v = members.get(name);
        if (v != null && !(v instanceof Boolean)) {
            throw wrong(name, "true or false");
        }
        return v != null && ((Boolean) v).booleanValue();
    }

    /** object returns a member that is an object, or null where there is none. */
    public Fields object(String name) throws JsonException {
        Object v = members.get(name);
        return v == null ? null : of(v);
    }

    /** objects returns a member that is an array of objects. */
    public List<Fields> objects(String name) throws JsonException {
        List<Fields> all = new ArrayList<>();
        for (Object v : list(name)) {
            all.add(of(v));
        }
        return all;
    }

    /** texts returns a member that is an array of strings. */
    public List<String> texts(String name) throws JsonException {
        List<String> all = new ArrayList<>();
        for (Object v : list(name)) {
            if (!(v instanceof String)) {
                throw wrong(name, "an array of strings");
            }
            all.add((String) v);
        }
        return all;
    }

    /** textMap returns a member that is an object of strings. */
    public Map<String, String> textMap(String name) throws JsonException {
        Fields inner = object(name);
        Map<String, String> all = new LinkedHashMap<>();
        if (inner != null) {
            for (String key : inner.members.keySet()) {
                all.put(key, inner.text(key));
            }
        }
        return all;
    }

    private List<?> list(String name) throws JsonException {
        Object v = members.get(name);
        if (v != null && !(v instanceof List)) {
            throw wrong(name, "an array");
        }
        return v == null ? Collections.emptyList() : (List<?>) v;
    }

    private static JsonException wrong(String name, String want) {
        return new JsonException("cannot read JSON: " + name + " must be " + want);
    }
}

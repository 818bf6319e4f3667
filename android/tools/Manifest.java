import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Manifest lists what a compiled manifest asks for and opens to others: permissions, exported components
 * with the permission that guards them, and the application's flags. It reads aapt2's dump.
 */
public final class Manifest {
    private static final Pattern ELEMENT = Pattern.compile("^ *E: ([a-z-]+) .*");
    private static final Pattern ATTRIBUTE = Pattern
            .compile("^ *A: (?:http://schemas.android.com/apk/res/android:)?([A-Za-z]+)(?:\\([^)]*\\))?=(.*)");
    private static final List<String> COMPONENTS = Arrays.asList("activity", "activity-alias", "service", "receiver", "provider");
    private static final List<String> FLAGS = Arrays.asList("allowBackup", "debuggable", "testOnly", "directBootAware",
            "defaultToDeviceProtectedStorage", "minSdkVersion", "targetSdkVersion", "usesCleartextTraffic", "sharedUserId");

    private static final TreeSet<String> LINES = new TreeSet<>();

    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String element = "";
        Map<String, String> attributes = new TreeMap<>();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Matcher m = ELEMENT.matcher(line);
            Matcher a = ATTRIBUTE.matcher(line);
            if (m.matches()) {
                note(element, attributes);
                element = m.group(1);
                attributes.clear();
            } else if (a.matches()) {
                attributes.put(a.group(1), a.group(2).replaceAll("^\"([^\"]*)\".*", "$1"));
            }
        }
        note(element, attributes);
        LINES.forEach(System.out::println);
    }

    private static void note(String element, Map<String, String> a) {
        if (element.startsWith("uses-permission") || element.startsWith("permission")) {
            LINES.add(element + " " + a.get("name"));
        } else if (COMPONENTS.contains(element) && !"false".equals(a.get("exported"))) {
            LINES.add("exported " + element + " " + a.get("name") + " guarded by " + a.getOrDefault("permission", "nothing"));
        }
        for (String flag : FLAGS) {
            if (a.containsKey(flag) && (element.equals("application") || element.equals("uses-sdk") || element.equals("manifest"))) {
                LINES.add("flag " + flag + " " + a.get(flag));
            }
        }
    }
}

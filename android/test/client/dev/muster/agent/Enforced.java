package dev.muster.agent;

import android.content.ComponentName;
import android.os.Build;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Enforced is what Android's DevicePolicyManagerService enforces in one method, by rules.tsv. */
final class Enforced {
    private static final File LIST = new File(System.getProperty("muster.tests"), "rules.tsv");
    private static final ComponentName ADMIN = new ComponentName("dev.muster.agent", "dev.muster.agent.AdminReceiver");
    /** OPEN are the checks that every app passes which asks about its own user. */
    private static final List<String> OPEN =
            Arrays.asList("enforceUserUnlocked", "enforceFullCrossUsersPermission", "enforceManageUsers", "enforceCrossUsersPermission");

    final String method;
    final List<String> steps;

    private Enforced(String method, List<String> steps) {
        this.method = method;
        this.steps = steps;
    }

    /** all returns the methods of an API level. */
    static Map<String, Enforced> all(int level) {
        Map<String, Enforced> all = new TreeMap<>();
        try {
            for (String line : Files.readAllLines(LIST.toPath(), StandardCharsets.UTF_8)) {
                String[] cells = line.split("\t", -1);
                if (cells[0].equals(String.valueOf(level))) {
                    all.put(cells[1], new Enforced(cells[1], cells.length < 3 ? List.of() : Arrays.asList(cells[2].split(" "))));
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return all;
    }

    /** here returns the methods of the Android under the test. */
    static Map<String, Enforced> here() {
        return all(Build.VERSION.SDK_INT);
    }

    boolean names(String step) {
        return steps.contains(step);
    }

    /** open reports a method that tells every app about its own user. */
    private boolean open() {
        return names("hasFullCrossUsersPermission") || names("hasCallingOrSelfPermission");
    }

    /** isOwnersAlone reports whether a step refuses a caller that is not the device's owner. */
    private boolean isOwnersAlone(String step) {
        if (step.startsWith("enforce") && !OPEN.contains(step) || step.startsWith("getActiveAdmin")) {
            return true;
        }
        boolean asks = step.equals("checkCallAuthorization") && steps.stream().anyMatch(s -> s.matches("is.*Owner.*"));
        return !open() && (asks || step.equals("throws:SecurityException"));
    }

    /** ownersAlone reports whether only the device's owner may call it. */
    boolean ownersAlone() {
        return steps.stream().anyMatch(this::isOwnersAlone);
    }

    /** affiliated reports whether it takes a device on which every user is the organization's. */
    boolean affiliated() {
        return steps.stream().anyMatch(s -> s.contains("Affiliated"));
    }

    /** refuse throws what Android throws, by the first step that refuses. */
    void refuse(FakeDpms device, Class<?>[] types, Object[] arguments) {
        for (String step : steps) {
            if (step.startsWith("nonnull:") && lacks(step.substring("nonnull:".length()), types, arguments)) {
                throw new NullPointerException(method + ": " + step);
            }
            if (step.equals("enforceUserUnlocked") && device.locked) {
                throw new IllegalStateException("User must be running and unlocked");
            }
            if (isOwnersAlone(step) && !(device.owner && ownAdmin(arguments))) {
                throw new SecurityException("Admin does not own the profile: " + method + " " + step);
            }
            if (step.contains("Affiliated") && !device.affiliated) {
                throw new SecurityException("there are users that are not affiliated: " + method);
            }
        }
    }

    private static boolean lacks(String type, Class<?>[] types, Object[] arguments) {
        for (int i = 0; i < types.length; i++) {
            if (types[i].getSimpleName().equals(type) && arguments[i] == null) {
                return true;
            }
        }
        return false;
    }

    private static boolean ownAdmin(Object[] arguments) {
        for (Object a : arguments) {
            if (a instanceof ComponentName && !a.equals(ADMIN)) {
                return false;
            }
        }
        return true;
    }
}

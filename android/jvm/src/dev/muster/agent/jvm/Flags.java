package dev.muster.agent.jvm;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Flags are a command line: a command, flags with values ("--state DIR" or "--state=DIR"), and the switches "--once" and "--again". */
final class Flags {
    static final class UsageException extends Exception {
        private static final long serialVersionUID = 1;

        UsageException(String message) {
            super(message);
        }
    }

    private static final List<String> KNOWN =
            Arrays.asList("--state", "--serial", "--server", "--token", "--role", "--pin", "--command-key", "--alg",
                    "--driver", "--bundle");

    private final Map<String, List<String>> values = new HashMap<>();
    final String command;
    final boolean once;
    final boolean again;

    Flags(String[] args) throws UsageException {
        String name = "";
        boolean isOnce = false;
        boolean isAgain = false;
        for (int i = 0; i < args.length; i++) {
            String flag = args[i];
            int equals = flag.startsWith("--") ? flag.indexOf('=') : -1;
            String value = equals < 0 ? null : flag.substring(equals + 1);
            flag = equals < 0 ? flag : flag.substring(0, equals);
            if (!flag.startsWith("--") && name.isEmpty()) {
                name = flag;
            } else if (flag.equals("--once")) {
                isOnce = true;
            } else if (flag.equals("--again")) {
                isAgain = true;
            } else if (!KNOWN.contains(flag)) {
                throw new UsageException("unexpected argument " + flag);
            } else {
                if (value == null && ++i == args.length) {
                    throw new UsageException(flag + ": missing value");
                }
                if (!values.containsKey(flag)) {
                    values.put(flag, new ArrayList<String>());
                }
                values.get(flag).add(value == null ? args[i] : value);
            }
        }
        command = name;
        once = isOnce;
        again = isAgain;
    }

    List<String> all(String flag) {
        return values.containsKey(flag) ? values.get(flag) : new ArrayList<String>();
    }

    String get(String flag, String otherwise) {
        List<String> all = all(flag);
        return all.isEmpty() ? otherwise : all.get(all.size() - 1);
    }

    String need(String flag) throws UsageException {
        String value = get(flag, "");
        if (value.isEmpty()) {
            throw new UsageException("missing flags: " + flag);
        }
        return value;
    }
}

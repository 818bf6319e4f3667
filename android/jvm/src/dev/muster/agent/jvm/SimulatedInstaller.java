package dev.muster.agent.jvm;

import dev.muster.agent.core.Installer;
import dev.muster.agent.core.RestartException;
import dev.muster.agent.core.Update;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Arrays;

/**
 * SimulatedInstaller is a model of Android's package installer. What is installed is the file
 * program in a folder, and the number of its version the file program-code. Files that begin with "evil" are
 * another signer's, and those that begin with "bad" are refused by Android.
 */
final class SimulatedInstaller implements Installer {
    private final File program;
    private final File number;

    private SimulatedInstaller(File directory) {
        program = new File(directory, "program");
        number = new File(directory, "program-code");
    }

    /** of returns the installer of a folder's device, or null where that has no version. */
    static SimulatedInstaller of(File directory) {
        SimulatedInstaller made = new SimulatedInstaller(directory);
        return made.number.exists() ? made : null;
    }

    @Override
    public String packageName() {
        return "dev.muster.agent";
    }

    @Override
    public long code() {
        try {
            return Long.parseLong(new String(Files.readAllBytes(number.toPath()), StandardCharsets.UTF_8).trim());
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    private static boolean begins(File file, String text) throws IOException {
        byte[] want = text.getBytes(StandardCharsets.UTF_8);
        return Arrays.equals(Arrays.copyOf(Files.readAllBytes(file.toPath()), want.length), want);
    }

    @Override
    public void check(File file, Update update) throws IOException {
        if (begins(file, "evil")) {
            throw new IOException("another key signed the file");
        }
    }

    @Override
    public void install(File file, Update update) throws IOException {
        if (begins(file, "bad")) {
            throw new IOException("INSTALL_FAILED_SIMULATED\nno");
        }
        byte[] before = program.exists() ? Files.readAllBytes(program.toPath()) : new byte[0];
        byte[] added = Files.readAllBytes(file.toPath());
        byte[] all = Arrays.copyOf(before, before.length + added.length); // twice would be seen
        System.arraycopy(added, 0, all, before.length, added.length);
        Files.write(program.toPath(), all);
        Files.write(number.toPath(), Long.toString(update.code).getBytes(StandardCharsets.UTF_8));
        throw new RestartException();
    }
}

package dev.muster.agent.core;

import java.io.File;
import java.io.IOException;

/** Installer installs updates of the agent. */
public interface Installer {
    /** packageName is what it installs: updates for another are refused. */
    String packageName();

    /** code is the number of the version that runs. */
    long code();

    /** check refuses a file that must not be installed: of another signer, for another package, or not the version that was named. */
    void check(File file, Update update) throws IOException;

    /**
     * install begins. It throws RestartException where this process must end so that the new version
     * runs, and any other exception where the version before runs on. The process may end in it.
     */
    void install(File file, Update update) throws IOException;
}

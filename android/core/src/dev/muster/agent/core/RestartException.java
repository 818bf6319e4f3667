package dev.muster.agent.core;

import java.io.IOException;

/**
 * RestartException says that the agent is to be started again in another version. An Installer throws
 * it, and who runs the agent ends the process.
 */
public final class RestartException extends IOException {
    private static final long serialVersionUID = 1;

    public RestartException() {
        super("the agent is to be started again in another version");
    }
}

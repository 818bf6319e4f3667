package dev.muster.agent.core;

import java.io.IOException;

/**
 * EndedException is thrown once the service, or a command of it, has ended the enrollment: there is
 * nothing left to run.
 */
public final class EndedException extends IOException {
    private static final long serialVersionUID = 1;

    EndedException() {
        super("this device is no longer managed");
    }
}

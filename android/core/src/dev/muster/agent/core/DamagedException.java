package dev.muster.agent.core;

import java.io.IOException;

/** DamagedException says that a file is not what was written. */
final class DamagedException extends IOException {
    private static final long serialVersionUID = 1;

    DamagedException(String message, Throwable cause) {
        super(message, cause);
    }
}

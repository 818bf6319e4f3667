package dev.muster.agent.core;

import java.io.IOException;

/** LostException says that the device has lost its key or its identity: it takes a code of the same service. */
public final class LostException extends IOException {
    private static final long serialVersionUID = 1;

    LostException(String message, Throwable cause) {
        super(message, cause);
    }

    /** in finds the loss that an error comes of, or returns null. */
    public static LostException in(Throwable e) {
        for (Throwable at = e; at != null; at = at.getCause()) {
            if (at instanceof LostException) {
                return (LostException) at;
            }
        }
        return null;
    }
}

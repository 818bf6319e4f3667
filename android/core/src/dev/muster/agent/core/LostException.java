package dev.muster.agent.core;

import java.io.IOException;

/** LostException says that the device has lost its key or its identity: it takes a code of the same service. */
public final class LostException extends IOException {
    private static final long serialVersionUID = 1;

    LostException(String message, Throwable cause) {
        super(message, cause);
    }

    /** of returns the error e of a request as the loss of the key, if the service does not know the key that signed it. */
    static IOException of(IOException e) {
        Refusal refused = Refusal.in(e);
        return refused == null || !refused.error.equals(Refusal.BAD_SIGNATURE) ? e : new LostException(
                "the service does not know this device's key: its database or this device is older than the last change of the key", e);
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

package dev.muster.agent.core;

import java.io.IOException;

/** NotEnrolledException says that the state directory holds no identity. */
public final class NotEnrolledException extends IOException {
    private static final long serialVersionUID = 1;

    NotEnrolledException() {
        super("this device is not enrolled");
    }
}

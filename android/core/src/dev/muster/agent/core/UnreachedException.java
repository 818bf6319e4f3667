package dev.muster.agent.core;

import java.io.IOException;

/**
 * UnreachedException is an error of the way to the service, which may pass. It says nothing about
 * what the device was asked to do.
 */
final class UnreachedException extends IOException {
    private static final long serialVersionUID = 1;

    UnreachedException(IOException cause) {
        super(cause.getMessage(), cause);
    }
}

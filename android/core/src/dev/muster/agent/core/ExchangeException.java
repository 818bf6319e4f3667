package dev.muster.agent.core;

import java.io.IOException;

/**
 * ExchangeException wraps the failure of a request to the service: there was no answer, the service
 * refused (Refusal.in), or the agent could not write its state before the request. The command that
 * made the request stays open.
 */
final class ExchangeException extends IOException {
    private static final long serialVersionUID = 1;

    ExchangeException(IOException cause) {
        super(cause.getMessage(), cause);
    }
}

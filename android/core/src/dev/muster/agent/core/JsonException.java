package dev.muster.agent.core;

import java.io.IOException;

/** JsonException says that a text is not the JSON that was expected. */
public final class JsonException extends IOException {
    private static final long serialVersionUID = 1;

    public JsonException(String message) {
        super(message);
    }
}

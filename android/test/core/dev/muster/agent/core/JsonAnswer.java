package dev.muster.agent.core;

import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.util.Map;

/** JsonAnswer is an answer of the service with a JSON object. */
final class JsonAnswer implements Transport.Answer {
    private final int status;
    private final byte[] text;
    private final String retryAfter;

    JsonAnswer(int status, Map<String, Object> answer) {
        this(status, Json.write(answer));
    }

    JsonAnswer(int status, String answer) {
        this(status, answer, "");
    }

    JsonAnswer(int status, String answer, String retryAfter) {
        this.status = status;
        text = Text.bytes(answer);
        this.retryAfter = retryAfter;
    }

    @Override
    public int status() {
        return status;
    }

    @Override
    public String header(String name) {
        return name.equals("Retry-After") ? retryAfter : "";
    }

    @Override
    public InputStream body() {
        return new ByteArrayInputStream(text);
    }

    @Override
    public void abort() {}

    @Override
    public void close() {}
}
